"""Kill -9 of either side and of the coordinator, early, in the middle and late in a dispute."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case
from identic.node.demo.network import LocalNetwork, Member
from identic.protocol.dispute.moves import Side
from identic.protocol.ids import JobId
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.state import Phase
from tests.network.stepping import FILE
from tests.network.test_liar import ELEMENT, FLIP, LIE, PATH, STEP, VALUE
from tests.network.town import Ask, Town, running

pytestmark = pytest.mark.xdist_group("killed")

STEPPING = ("-m", "tests.network.stepping")
SOLVER = {"max_jobs": 8, "stake": "1000", "forced_error": LIE}
KILLED = (
    (0, "liar"),
    (1, "ann"),
    (3, "hub"),
    (5, "ann"),
    (6, "liar"),
    (8, "hub"),
    (10, "liar"),
    (11, "ann"),
    (12, "hub"),
)
"""After so many of the thirteen moves, who is killed."""


@pytest.fixture
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A solver that lies and a verifier, both waiting for the test's word before each move."""
    folder = tmp_path_factory.mktemp("killed")
    folder.joinpath(FILE).write_text("0")
    party = [
        Member("hub", "coordinator"),
        Member("liar", "solver", SOLVER, program=STEPPING),
        Member("ann", "verifier", program=STEPPING),
    ]
    yield from running(LocalNetwork(folder, party))


def dispute(board: Board, job: JobId) -> Case | None:
    """The job's dispute, once it is set up."""
    return next((case for case in board.cases.values() if case.job == job), None)


@pytest.mark.long
async def test_exe_10__killed_at_any_move_everybody_goes_on_to_the_same_ruling(town: Town) -> None:
    job = await town.post(Ask(steps=20, verifiers=1))
    opened = await town.until(lambda board: dispute(board, job))
    for moves, name in KILLED:
        await asyncio.to_thread(town.net.folder.joinpath(FILE).write_text, str(moves))
        before = await town.until(lambda board, at=moves: reached(board, opened, at))  # type: ignore[misc]
        town.net.kill(name)
        await town.net.up(name)
        after = (await town.board()).cases[opened.id]
        assert after.moves[: len(before.moves)] == before.moves
    await asyncio.to_thread(town.net.folder.joinpath(FILE).write_text, "1000")
    case = await town.until(lambda board: ended(board, opened))
    ruling = case.dispute.ruling
    assert ruling is not None
    assert (ruling.verdict, ruling.loser) == (Verdicts.WRONG, Side.DEFENDER)
    assert (ruling.rule, ruling.step, ruling.value) == ("REF-12", STEP, VALUE)
    assert (ruling.element, tuple(ruling.path)) == (ELEMENT, PATH)
    claimed, computed = (int.from_bytes(w, "big") for w in (ruling.defender, ruling.computed))
    assert claimed ^ computed == FLIP
    # Nobody's moves were lost or made twice, and the coordinator's absences cost nobody time.
    assert len(case.moves) == 2 * len(ruling.rounds) + 1
    assert len(case.pauses) >= 3
    open_again = await town.until_job(job, lambda now: now.attempt == 2)
    assert (open_again.phase, open_again.barred) == (Phase.OPEN, (town.party("liar"),))


def reached(board: Board, opened: Case, moves: int) -> Case | None:
    """The dispute once it has so many moves."""
    case = board.cases.get(opened.id)
    return case if case is not None and len(case.moves) >= moves else None


def ended(board: Board, opened: Case) -> Case | None:
    """The dispute once its ruling is told."""
    case = board.cases.get(opened.id)
    return case if case is not None and case.transcript is not None else None
