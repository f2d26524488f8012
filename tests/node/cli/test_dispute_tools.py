"""A dispute as a tree, explained, and executed again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from identic.kernels import _native
from identic.node.cli import places
from identic.node.cli.folder import BLOBS, INDEX, PLACES
from identic.node.cli.screens import game
from identic.node.cli.screens.explained import exact_decimal
from identic.node.cli.trail import stages
from identic.proofs import transcript
from identic.protocol.dispute.moves import Side
from identic.protocol.dtypes import DType
from identic.protocol.hashing import sha256
from tests.helpers.execution import MemoryExecution, StateLie
from tests.helpers.signed_game import COORDINATOR, Played, finish, late, opened
from tests.helpers.small_run import small_run
from tests.node.cli import example, finished
from tests.node.cli.conftest import Command

RUN = small_run()
LEVELS = ["run", "interval", "step", "output", "chunk", "fold"]


def against(liar: MemoryExecution) -> Played:
    """A dispute of a lying defender with an honest challenger."""
    return finish(opened(RUN, liar.run_leaves(), RUN.good.run_leaves()), liar, RUN.good)


def kept(game_: Played, path: Path) -> Path:
    """The transcript as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(transcript.write(COORDINATOR, game_.transcript()))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The transcript of the example, in the folder of its job."""
    finished.write(RUN, tmp_path, marks=(0, 1))
    return kept(example.game(), tmp_path / "disputes" / "d.identic")


# ---- show -----------------------------------------------------------------------------------


def test_a_game_is_printed_as_a_tree(file: Path, identic: Command) -> None:
    ran = identic("dispute", "show", file)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    depths = [line.index("── ") for line in lines if "differ at" in line]
    assert depths == sorted(set(depths))
    assert len(depths) == len(LEVELS)
    assert sum(" after " in line for line in lines) == 2 * len(LEVELS) + 1
    assert "ruling: the defender" in ran.out


def test_the_tree_is_in_json(file: Path, identic: Command) -> None:
    value = identic("dispute", "show", file, "--json").value
    rounds = value["game"]["rounds"]
    assert [r["name"] for r in rounds] == LEVELS
    assert [r["differs_at"] for r in rounds] == [2, 0, RUN.value("matmul"), 0, 0, 1]
    for line in rounds:
        assert [m["side"] for m in line["moves"]] == ["challenger", "defender"]
        assert [m["after_ms"] for m in line["moves"]] == [40, 80]
    moves = [m["nbytes"] for line in rounds for m in line["moves"]]
    assert sum(moves) == value["bytes"]
    assert value["game"]["moves"][0]["nbytes"] == value["referee_bytes"]


def test_an_open_game_says_who_is_due() -> None:
    liar = RUN.lying(RUN.flipped(2, RUN.value("exp")))
    start = opened(RUN, liar.run_leaves(), RUN.good.run_leaves())
    found = stages(start.dispute, start.moves)
    view = game.describe(start.dispute, found, roles=("solver", "verifier"))
    assert (view.rounds, view.moves) == ((), ())
    assert view.end == "waiting for solver and verifier"
    assert "waiting for" in "\n".join(line.plain for line in game.lines(view))


@pytest.mark.parametrize("text", ["nothing.identic", "d-1"])
def test_a_missing_file_without_a_coordinator_is_a_usage_error(
    text: str, identic: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert identic("dispute", "show", text).code == 2


# ---- explain --------------------------------------------------------------------------------


def test_a_step_is_explained_with_its_numbers(file: Path, identic: Command) -> None:
    told = identic("dispute", "replay", file, "--explain", "--json").value["explained"]
    assert told["place"].startswith(f"value {RUN.value('matmul')} of ")
    assert "gradient section, shard 0" in told["place"]
    assert told["operator"] == "matmul(float32[2, 3], float32[3, 2]) -> float32[2, 2]"
    assert [o["label"] for o in told["operands"]] == ["a", "b", "acc"]
    assert [len(o["hex"]) for o in told["operands"]] == [8, 8, 8]
    # fma on the exact decimals, rounded, is what the referee computes.
    a, b, acc = (float(o["decimal"]) for o in told["operands"])
    assert float(told["exact"]) == pytest.approx(a * b + acc, rel=1e-12)
    computed = float(told["results"][2]["decimal"])
    assert computed == pytest.approx(float(told["exact"]), rel=1e-6)
    assert told["results"][0]["decimal"] == "0.75"


def test_the_source_line_is_shown_where_the_notes_are(file: Path, identic: Command) -> None:
    without = identic("dispute", "replay", file, "--explain").out
    assert "--notes FILE" in without
    spots = places.Places({RUN.value("matmul"): "hidden  (train.py:31)"})
    spots.lines[RUN.value("matmul")] = "h = self.hidden(x)"
    elsewhere = file.parent.parent / "notes" / "mine.json"
    places.save(elsewhere, spots)
    places.save(file.parent.parent / PLACES, spots)
    for arguments in ([], ["--notes", elsewhere], ["--job", file.parent.parent]):
        shown = identic("dispute", "replay", file, "--explain", *arguments).out
        assert "hidden  (train.py:31)" in shown
        assert "h = self.hidden(x)" in shown
    elsewhere.write_text(json.dumps({RUN.value("matmul"): "older  (train.py:31)"}))
    assert "older" in identic("dispute", "replay", file, "--explain", "--notes", elsewhere).out
    ran = identic("dispute", "replay", file, "--explain", "--notes", file)
    assert ran.code == 3
    assert "places.json" in ran.err


def other_start() -> MemoryExecution:
    """A run from another initial state."""
    liar = RUN.lying()
    liar.roots[0] = sha256(b"pretrained")
    return liar


@pytest.mark.parametrize(
    ("liar", "rule", "words"),
    [
        (RUN.lying(RUN.flipped(2, 0)), "REF-8", "a load, from the state before"),
        (RUN.lying(StateLie(3, 1, sha256(b"x"))), "REF-11", "value "),
        (RUN.lying(RUN.flipped(2, RUN.value("take_rows", -1))), "REF-12", "take_rows("),
        (other_start(), "REF-7", "explained"),
    ],
    ids=["load", "state", "copy", "start"],
)
def test_every_kind_of_question_is_explained(
    liar: MemoryExecution, rule: str, words: str, tmp_path: Path, identic: Command
) -> None:
    path = kept(against(liar), tmp_path / "d.identic")
    ran = identic("dispute", "replay", path, "--explain")
    assert ran.code == 0, ran.err
    assert rule in ran.out
    assert words in ran.out


def test_every_digit_of_a_number_is_shown() -> None:
    assert exact_decimal(DType.FLOAT32, 0x3F800001) == "1.00000011920928955078125"
    assert exact_decimal(DType.FLOAT32, 0x7FC00000) == "nan"
    assert exact_decimal(DType.FLOAT32, 0x80000000) == "-0"
    assert exact_decimal(DType.BFLOAT16, 0x3F80) == "1"
    assert exact_decimal(DType.INT64, (1 << 64) - 1) == "-1"
    assert exact_decimal(DType.FLOAT32, 1).startswith("1.40129846432481707")


# ---- execute --------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_execution_agrees_with_the_honest_side(backend: str, file: Path, identic: Command) -> None:
    ran = identic("dispute", "replay", file, "--execute", "--backend", backend, "--json")
    assert ran.code == 0, ran.err
    found = ran.value["executed"]
    assert found["agrees"] == "challenger"
    assert [r["level"] for r in found["rounds"]] == LEVELS[1:]
    for line in found["rounds"]:
        assert line["differs_from_defender_at"] == line["differs_at"]
        assert line["differs_from_challenger_at"] is None
        at = next(i for i in line["around"] if i["number"] == line["differs_at"])
        assert at["here"] == at["challenger"] != at["defender"]
    assert found["from_state"] == 2


@pytest.mark.parametrize("vector", ["auto", *_native.paths()])
def test_every_vector_path_gives_the_same(vector: str, file: Path, identic: Command) -> None:
    ran = identic("dispute", "replay", file, "--execute", "--vector", vector, "--threads", 1)
    assert ran.code == 0, ran.err
    assert "agrees with the challenger in every list" in ran.out
    assert "▸" in ran.out


def test_a_lying_challenger_is_told_from_an_honest_defender(
    tmp_path: Path, identic: Command
) -> None:
    finished.write(RUN, tmp_path, marks=(0,))
    liar = RUN.lying(StateLie(3, 1, sha256(b"other")))
    played = opened(RUN, RUN.good.run_leaves(), liar.run_leaves())
    path = kept(finish(played, RUN.good, liar), tmp_path / "d.identic")
    ran = identic("dispute", "replay", path, "--execute", "--json")
    assert (ran.code, ran.value["executed"]["agrees"]) == (0, "defender")
    assert ran.value["executed"]["from_state"] == 0


def test_two_liars_agree_with_nobody(tmp_path: Path, identic: Command) -> None:
    finished.write(RUN, tmp_path, marks=(0, 1))
    liars = [RUN.lying(RUN.flipped(2, RUN.value(op))) for op in ("exp", "log")]
    played = opened(RUN, liars[0].run_leaves(), liars[1].run_leaves())
    path = kept(finish(played, *liars), tmp_path / "d.identic")
    ran = identic("dispute", "replay", path, "--execute")
    # exp comes first: the defender is wrong there; the challenger is right about it, not later.
    assert ran.code == 1
    assert "agrees with neither side" in ran.out


def test_what_is_missing_for_an_execution_is_said(
    file: Path, tmp_path: Path, identic: Command
) -> None:
    folder = file.parent.parent
    alone = kept(example.game(), tmp_path / "alone" / "deep" / "d.identic")
    ran = identic("dispute", "replay", alone, "--execute")
    assert ran.code == 3
    assert "identic job fetch JOB --states" in ran.err
    assert identic("dispute", "replay", alone, "--execute", "--job", folder).code == 0
    shutil.move(folder / BLOBS, tmp_path / "elsewhere")
    moved = ["--execute", "--job", folder, "--blobs", tmp_path / "elsewhere"]
    assert identic("dispute", "replay", alone, *moved).code == 0
    assert identic("dispute", "replay", file, "--execute").code in {1, 3}
    (folder / INDEX).write_text("{}")
    assert identic("dispute", "replay", file, "--execute").code == 1


def test_a_dispute_without_a_step_cannot_be_executed(tmp_path: Path, identic: Command) -> None:
    finished.write(RUN, tmp_path, marks=(0,))
    liar = RUN.lying(RUN.flipped(2, RUN.value("exp")))
    start = opened(RUN, liar.run_leaves(), RUN.good.run_leaves())
    path = kept(late(start), tmp_path / "late.identic")
    assert identic("dispute", "replay", path, "--execute").code == 2
    assert identic("dispute", "replay", path, "--execute", "--backend", "abacus").code == 2


def test_an_unknown_backend_or_vector_path_is_named(file: Path, identic: Command) -> None:
    assert identic("dispute", "replay", file, "--execute", "--backend", "abacus").code == 2
    ran = identic("dispute", "replay", file, "--execute", "--vector", "abacus")
    assert ran.code == 3
    assert "auto" in ran.err


# ---- the process that judges ----------------------------------------------------------------


def test_judging_a_file_imports_no_kernel_numpy_or_torch(file: Path) -> None:
    code = (
        "import sys; from identic.node.cli import main; "
        "status = main.run(['dispute', 'replay', sys.argv[1], '--explain']); "
        "heavy = {n for n in sys.modules if n.split('.')[0] in ('numpy', 'torch', 'cupy')"
        " or n.startswith('identic.kernels')}; "
        "assert not heavy, heavy; sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ruling" in done.stdout


def test_stages_follow_the_record() -> None:
    played = example.game()
    found = stages(played.dispute, played.moves)
    assert [s.node.name for s in found] == [*LEVELS, "primitive"]
    assert all(s.of(Side.DEFENDER) is not None for s in found[:-1])
    assert found[-1].of(Side.DEFENDER) is None
    assert replace(found[0], said=()).of(Side.DEFENDER) is None
