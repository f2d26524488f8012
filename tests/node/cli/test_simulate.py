"""Predicting a dispute: the same rounds and bytes as the game that is then played."""

from __future__ import annotations

from pathlib import Path

import pytest

from identic.node.cli import places
from identic.node.cli.folder import PLACES, RECEIPT
from identic.proofs import transcript
from identic.protocol.dispute.clocks import longest_ms
from tests.helpers.execution import Lie
from tests.helpers.signed_game import COORDINATOR, Played, finish, opened
from tests.helpers.small_run import small_run
from tests.node.cli import finished
from tests.node.cli.conftest import Command

RUN = small_run()
MATMUL = RUN.value("matmul")


def played_out() -> Played:
    """A dispute about one partial sum of step 2."""
    liar = RUN.lying(Lie(2, MATMUL, 0, (1,), 0x3F400000))
    return finish(opened(RUN, liar.run_leaves(), RUN.good.run_leaves()), liar, RUN.good)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished job."""
    path = tmp_path_factory.mktemp("job")
    finished.write(RUN, path, marks=(0,))
    return path


def test_dsp_20__what_is_predicted_is_what_is_played(folder: Path, identic: Command) -> None:
    played = played_out()
    ruling = played.dispute.ruling
    assert ruling is not None
    place = ["--step", 2, "--value", MATMUL, "--element", 0, "--path", "1"]
    value = identic("dispute", "simulate", folder, *place, "--json").value
    assert [(r["level"], r["items"], r["nbytes"]) for r in value["rounds"]] == [
        (line.level, line.compared, line.defender_bytes) for line in ruling.rounds
    ]
    assert value["evidence_bytes"] == ruling.read_bytes
    assert value["most"]["rounds"] >= len(ruling.rounds)
    setup = played.dispute.setup
    assert value["longest_seconds"] == longest_ms(setup, value["most"]["rounds"]) / 1000


def test_a_receipt_and_a_transcript_say_the_same(
    folder: Path, tmp_path: Path, identic: Command
) -> None:
    played = played_out()
    path = tmp_path / "d.identic"
    path.write_bytes(transcript.write(COORDINATOR, played.transcript()))
    place = ["--step", 1, "--value", MATMUL, "--seed", 3, "--step-seconds", 0, "--json"]
    answers = [
        identic("dispute", "simulate", target, *place).value
        for target in (folder, folder / RECEIPT, path)
    ]
    assert answers[0] == answers[1] == answers[2]
    known = identic("dispute", "simulate", path, "--step", 1, "--json").value
    assert known["step_seconds"] == int(played.dispute.setup.opening.step_ms) / 1000


def test_chance_is_repeated_by_its_seed(folder: Path, identic: Command) -> None:
    first = identic("dispute", "simulate", folder, "--json").value
    again = identic("dispute", "simulate", folder, "--seed", first["seed"], "--json").value
    assert first == again
    others = {
        identic("dispute", "simulate", folder, "--seed", seed, "--json").value["lie"]["place"]
        for seed in range(8)
    }
    assert len(others) > 4
    lie = identic("dispute", "simulate", folder, "--operator", "exp", "--json").value["lie"]
    assert "exp" in lie["place"]


def test_the_command_that_is_printed_predicts_the_same(folder: Path, identic: Command) -> None:
    for arguments in (["--seed", 1], ["--start"], ["--part", 2], ["--value", 0]):
        shown = identic("dispute", "simulate", folder, *arguments).out
        command = shown.partition("the same again:  identic ")[2].split()
        again = identic(*command).out
        assert again == shown


def test_time_follows_from_steps_and_the_way(folder: Path, identic: Command) -> None:
    place = ["--step", 2, "--value", MATMUL, "--element", 0, "--path", "1", "--step-seconds", 10]
    value = identic("dispute", "simulate", folder, *place, "--rtt", 500, "--json").value
    assert value["about_seconds"] == 10 * value["steps_again"] + 0.5 * (len(value["rounds"]) + 1)
    clocks = [r["clock_s"] for r in value["rounds"]]
    busy = identic("dispute", "simulate", folder, *place, "--load", 4, "--json").value
    for line, clock in zip(busy["rounds"], clocks, strict=True):
        assert line["clock_s"] == (clock if line["again"] is None else 4 * clock)


def test_places_name_the_source(folder: Path, identic: Command) -> None:
    places.save(folder / PLACES, places.Places({MATMUL: "hidden  (train.py:31)"}))
    ran = identic("dispute", "simulate", folder, "--step", 0, "--value", MATMUL)
    assert "matmul  hidden  (train.py:31)" in ran.out


@pytest.mark.parametrize(
    "wrong",
    [
        ["--step", 4],
        ["--value", 10_000],
        ["--operator", "abacus"],
        ["--value", MATMUL, "--element", 4],
        ["--value", MATMUL, "--path", "9"],
        ["--value", MATMUL, "--path", "1,1"],
        ["--value", MATMUL, "--path", "x"],
        ["--part", 99],
        ["--load", 0],
    ],
)
def test_a_place_that_is_not_there_is_a_usage_error(
    wrong: list[object], folder: Path, identic: Command
) -> None:
    ran = identic("dispute", "simulate", folder, *wrong)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_what_cannot_be_read_is_said(tmp_path: Path, identic: Command) -> None:
    empty, wrong = tmp_path / "empty", tmp_path / "wrong.json"
    empty.mkdir()
    wrong.write_text("{}")
    assert identic("dispute", "simulate", empty).code == 3
    assert identic("dispute", "simulate", wrong).code == 1
    assert identic("dispute", "simulate", tmp_path / "none.json").code == 3
    assert identic("dispute", "simulate", "j-nothing").code == 2
    assert identic("dispute", "simulate", tmp_path / "none.py:job").code != 0
