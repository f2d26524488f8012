"""Judging a dispute again from its file alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from identic.node.identity import Identity
from identic.proofs import transcript
from tests.helpers.signed_game import COORDINATOR, Played, finish, late, opened
from tests.helpers.small_run import small_run
from tests.node.cli.conftest import Command, process


def game() -> Played:
    run = small_run()
    bad = run.lying(run.flipped(2, run.value("sum_first"), 0))
    return finish(opened(run, bad.run_leaves(), run.good.run_leaves()), bad, run.good)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "d.identic"
    path.write_bytes(transcript.write(COORDINATOR, game().transcript()))
    return path


def test_rcp_3__a_transcript_alone_gives_the_ruling(file: Path, identic: Command) -> None:
    run, ran = small_run(), identic("dispute", "replay", file, "--json")
    assert ran.code == 0, ran.err
    value = ran.value
    assert (value["ruling"], value["loser"]) == ("wrong", "defender")
    assert (value["step"], value["operator"], value["element"]) == (2, "sum_first", 0)
    assert value["value"] == run.value("sum_first")
    assert value["claims"]["computed"] == value["claims"]["challenger"]
    assert value["claims"]["computed"] != value["claims"]["defender"]
    assert all(check["passed"] for check in value["checks"])


def test_the_table_is_shown_for_people_and_in_a_pipe(file: Path, identic: Command) -> None:
    shown, piped = identic("dispute", "replay", file).out, process("dispute", "replay", file)
    assert "the step in dispute" in shown
    assert piped.code == 0
    assert piped.out == shown
    assert "\x1b" not in piped.out


def test_rcp_1__any_changed_byte_is_refused_with_1(file: Path, identic: Command) -> None:
    data = file.read_bytes()
    draw = random.Random(1)
    for at in [0, len(data) - 1, *(draw.randrange(len(data)) for _ in range(20))]:
        file.write_bytes(data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :])
        ran = identic("dispute", "replay", file, "--json")
        assert ran.code == 1
        assert ran.value["error"]["kind"] == "refused"
        assert "Traceback" not in ran.err


def test_rcp_1__a_transcript_of_another_coordinator_is_refused(
    file: Path, tmp_path: Path, identic: Command
) -> None:
    stranger = Identity.create(tmp_path / "stranger", "stranger")
    assert stranger.party != COORDINATOR.party
    ran = identic("dispute", "replay", file, "--card", tmp_path / "stranger" / "stranger.card")
    assert ran.code == 1


def test_a_ruling_by_time_is_shown(tmp_path: Path, identic: Command) -> None:
    run = small_run()
    bad = run.lying(run.flipped(2, run.value("exp"), 0))
    path = tmp_path / "late.identic"
    record = late(opened(run, bad.run_leaves(), run.good.run_leaves())).transcript()
    path.write_bytes(transcript.write(COORDINATOR, record))
    ran = identic("dispute", "replay", path, "--json")
    assert ran.code == 0
    assert (ran.value["ruling"], ran.value["loser"]) == ("cannot tell", None)


@pytest.mark.parametrize("content", [b"", b"noise", bytes(4096)])
def test_what_is_no_transcript_is_refused(content: bytes, tmp_path: Path, identic: Command) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    ran = identic("dispute", "replay", path)
    assert ran.code == 1
    assert ran.err.startswith("refused")


def test_a_missing_file_is_a_local_fault(tmp_path: Path, identic: Command) -> None:
    ran = identic("dispute", "replay", tmp_path / "nothing")
    assert ran.code == 3
    assert "No such file" in ran.err
