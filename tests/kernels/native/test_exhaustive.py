"""The sweep over all operands goes on where it was, and tells what is wrong."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kernels.native import exhaustive
from tests.kernels.native.exhaustive import DEVICE, Piece
from tests.vectors import functions

PIECES = 16


@pytest.fixture(autouse=True)
def few_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "PIECES", PIECES)


def told(paths: Sequence[str], wrong: int = 0) -> str:
    """What the program says last about a piece."""
    counts = {"operands": 16777216, "hard": 7, "usual": 3000, "in_binary64": 2}
    return json.dumps({**counts, "wrong": dict.fromkeys(paths, wrong)}) + "\n"


class Checking:
    """Notes what it is asked for; stopped after some pieces."""

    def __init__(self, stop: int = 1 << 30) -> None:
        self.seen: list[Piece] = []
        self._stop = stop

    def __call__(self, piece: Piece) -> str:
        if len(self.seen) == self._stop:
            raise KeyboardInterrupt
        self.seen.append(piece)
        return told(piece[2])


def arguments(folder: Path, *more: str) -> list[str]:
    return ["--jobs", "1", "--out", str(folder), *more]


def test_a_sweep_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    exp = arguments(tmp_path, "--only", "exp")
    paths = exhaustive.paths_of("exp")
    first = Checking(5)
    with pytest.raises(KeyboardInterrupt):
        exhaustive.main(exp, first)
    assert first.seen == [("exp", number, paths) for number in range(5)]
    rest = Checking()
    assert exhaustive.main(exp, rest) == 0
    assert rest.seen == [("exp", number, paths) for number in range(5, PIECES)]
    # Everything is known: nothing is checked again.
    assert exhaustive.main(exp, Checking(0)) == 0


def test_a_path_is_swept_by_itself_and_the_others_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = arguments(tmp_path, "--only", "log")
    alone, rest = Checking(), Checking()
    assert exhaustive.main([*log, "--path", DEVICE], alone) == 0
    assert {piece[2] for piece in alone.seen} == {(DEVICE,)}
    said = capsys.readouterr().out
    assert "log on device: 2^32 operands, 112 settled in 113 bits" in said
    assert "binary64 decides one in 1,500 of 48,000 usual ones" in said
    assert exhaustive.main(log, rest) == 0
    assert {piece[2] for piece in rest.seen} == {exhaustive.paths_of("log")[1:]}


def test_a_wrong_result_is_told_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "log(3f800001) on device: got 00000001, want 34000000"

    def check(piece: Piece) -> str:
        if piece[1] != 3:
            return told(piece[2])
        return f"{line}\n{told(piece[2], 1)}"

    log = arguments(tmp_path, "--only", "log")
    assert exhaustive.main(log, check) == 1
    assert exhaustive.main(log, check) == 1
    said = capsys.readouterr().out
    assert said.count(line) == 2
    assert "1 wrong results" in said


def test_other_kernels_are_checked_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cos = arguments(tmp_path, "--only", "cos")
    before = exhaustive.identity
    assert exhaustive.main(cos, Checking()) == 0
    # A device's text has changed: what was found on other paths still stands.
    monkeypatch.setattr(exhaustive, "identity", lambda p: "new" if p == DEVICE else before(p))
    again = Checking()
    assert exhaustive.main(cos, again) == 0
    assert again.seen == [("cos", number, (DEVICE,)) for number in range(PIECES)]
    (tmp_path / "exhaustive.json").write_text("{damaged")
    anew = Checking()
    assert exhaustive.main(cos, anew) == 0
    assert len(anew.seen) == PIECES


def test_what_a_result_depends_on_is_known() -> None:
    assert exhaustive.FUNCTIONS == functions.FUNCTIONS
    device, native = (
        {path.name for path in exhaustive.with_headers(exhaustive.sources(path))}
        for path in (DEVICE, "avx2")
    )
    assert {"pair_log.h", "pair_circular.h", "pair_sigmoid.h", "pairs.h", "shim.h"} <= device
    assert {"circular.h", "functions.h", "path_body.h", "path_scalar.cpp"} <= native
    assert "pair_log.h" not in native


@pytest.mark.long
def test_num_7__the_program_is_built_and_checks_every_path(tmp_path: Path) -> None:
    program = exhaustive.build(tmp_path)
    for function in exhaustive.FUNCTIONS:
        paths = exhaustive.paths_of(function)
        # A block beside 1/2, 1 and 2; and beside -1.
        for block in (0x3F000, 0x3F800, 0x40000, 0xBF800):
            found = subprocess.run(
                [str(program), function, str(block), "2", *paths],
                capture_output=True,
                text=True,
                check=True,
            )
            assert json.loads(found.stdout)["wrong"] == dict.fromkeys(paths, 0)
