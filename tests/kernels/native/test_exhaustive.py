"""The sweep over all operands goes on where it was, and tells what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.native import exhaustive
from tests.vectors import functions


def test_a_sweep_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def stopping(function: str, piece: int) -> str:
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append((function, piece))
        return "16777216 7 0 0\n"

    arguments = ["--only", "exp", "--jobs", "1", "--out", str(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        exhaustive.main(arguments, stopping)
    assert seen == [("exp", piece) for piece in range(5)]

    def going(function: str, piece: int) -> str:
        seen.append((function, piece))
        return "16777216 7 0 0\n"

    assert exhaustive.main(arguments, going) == 0
    assert seen == [("exp", piece) for piece in range(exhaustive.PIECES)]
    # Everything is known: nothing is checked again.
    assert exhaustive.main(arguments, stopping) == 0


def test_a_wrong_result_is_told_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "log(3f800001) on avx2: got 00000001, want 34000000"

    def check(function: str, piece: int) -> str:
        return f"{line}\n16777216 7 1 0\n" if (function, piece) == ("log", 3) else "1 0 0 0\n"

    arguments = ["--only", "log", "--out", str(tmp_path)]
    assert exhaustive.main(arguments, check) == 1
    assert exhaustive.main(arguments, check) == 1
    said = capsys.readouterr().out
    assert said.count(line) == 2
    assert "1 wrong results" in said


def test_other_kernels_are_checked_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def check(_: str, piece: int) -> str:
        seen.append(piece)
        return "1 0 0 0\n"

    arguments = ["--only", "cos", "--jobs", "1", "--out", str(tmp_path)]
    assert exhaustive.main(arguments, check) == 0
    monkeypatch.setattr(exhaustive, "identity", lambda: "another")
    assert exhaustive.main(arguments, check) == 0
    assert len(seen) == 2 * exhaustive.PIECES
    (tmp_path / "exhaustive.json").write_text("{damaged")
    assert exhaustive.main(arguments, check) == 0
    assert len(seen) == 3 * exhaustive.PIECES


def test_the_sweep_and_the_sample_are_over_the_same_functions() -> None:
    assert exhaustive.FUNCTIONS == functions.FUNCTIONS
    assert all(path.exists() for path in exhaustive.sources())
