"""Networks with liars: each is found down to the primitive step, and pays."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case
from identic.node.demo.network import LocalNetwork, Member
from identic.proofs.transcript import replay
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.state import Ruling
from identic.protocol.errors import ProtocolError
from identic.protocol.ids import JobId
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.state import Phase
from identic.protocol.settlement.ledger import Reason, TransactionId
from tests.network.town import GRANT, PRICES, Ask, Town, expected, identic, members, roots, running

pytestmark = pytest.mark.xdist_group("liars")

STEP, VALUE, ELEMENT, PATH, FLIP = 5, 44, 0, (2,), 1 << 30
LIE = {"step": STEP, "value": VALUE, "element": ELEMENT, "path": list(PATH), "flip": FLIP}
ASK = Ask()
FIRST_FALSE = -(-(STEP + 1) // ASK.cadence)


def lying(name: str) -> Member:
    """A solver that makes one primitive step wrong, in every job."""
    return Member(name, "solver", {"max_jobs": 8, "stake": "1000", "forced_error": LIE})


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A network whose only solver lies; an honest one is started later."""
    folder = tmp_path_factory.mktemp("liars")
    party = [*members(ann="verifier", bob="verifier", hon="solver"), lying("liar")]
    yield from running(LocalNetwork(folder, party), later=("hon",))


def judged(job: JobId, count: int = 1) -> Callable[[Board], Case | None]:
    """Finds a job's dispute number ``count`` once its ruling is in the log."""

    def found(board: Board) -> Case | None:
        # What a solver that fell elsewhere still played has no ruling.
        cases = [case for case in board.cases.values() if case.job == job and not case.void]
        whole = len(cases) >= count and cases[count - 1].transcript is not None
        return cases[count - 1] if whole else None

    return found


def moved(job: JobId) -> Callable[[Board], Case | None]:
    """Finds a job's dispute once somebody has moved in it."""
    return lambda board: next((c for c in board.cases.values() if c.moves and c.job == job), None)


def check_lie(case: Case) -> Ruling:
    """The ruling names the one wrong step."""
    ruling = case.dispute.ruling
    assert ruling is not None
    assert (ruling.verdict, ruling.loser) == (Verdicts.WRONG, Side.DEFENDER)
    assert (ruling.rule, ruling.step, ruling.value) == ("REF-12", STEP, VALUE)
    assert (ruling.element, tuple(ruling.path)) == (ELEMENT, PATH)
    claimed, computed = (int.from_bytes(w, "big") for w in (ruling.defender, ruling.computed))
    assert claimed ^ computed == FLIP
    return ruling


def slashed(board: Board, job: JobId) -> list[TransactionId]:
    """Bonds that were taken over a job."""
    return [t for t in board.ledger.transactions if t.reason is Reason.SLASH and t.subject == job]


async def test_a_lie_is_found_to_the_primitive_step_and_costs_the_solver_its_bond(
    town: Town,
) -> None:
    job = await town.post(ASK)
    await town.until_job(job, lambda now: now.phase is Phase.DISPUTED)
    # While the solver cannot answer, each honest verifier sees the lie by itself, at one mark.
    town.net.signal("liar", signal.SIGSTOP)
    for name in ("ann", "bob"):
        seen = await town.until_said(name, "run differs")
        assert (seen["job"], seen["mark"]) == (job.name, FIRST_FALSE)
    town.net.signal("liar", signal.SIGCONT)
    case = await town.until(judged(job))
    ruling = check_lie(case)
    assert ruling.primitive == "fma"
    opened = await town.until_job(job, lambda now: now.attempt == 2)
    assert (opened.phase, opened.barred) == (Phase.OPEN, (town.party("liar"),))
    board = await town.board()
    assert [t.party for t in slashed(board, job)] == [town.party("liar")]
    ledger, bond = board.ledger, int(PRICES.solver_bond)
    assert ledger.balance(town.party("liar")) == GRANT - bond
    winner = case.opened.challenger
    assert winner in {town.party("ann"), town.party("bob")}
    assert ledger.balance(winner) == GRANT + bond // 2
    assert sum(ledger.balances.values()) == 0


async def test_the_dispute_replays_from_its_transcript_alone(town: Town, tmp_path: Path) -> None:
    # Where both verifiers challenged, the other's dispute may have become void.
    case = next(c for c in (await town.board()).cases.values() if c.transcript is not None)
    assert case.transcript is not None
    async with town.remote() as remote:
        await remote.blobs.download(town.blobs, case.transcript, 1 << 27)
    data = town.blobs.read(case.transcript, 1 << 27)
    assert replay(data).ruling == case.dispute.ruling
    for at in range(0, len(data), len(data) // 7):
        with pytest.raises(ProtocolError):
            replay(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    file = tmp_path / "dispute.identic"
    file.write_bytes(data)
    done = await asyncio.to_thread(identic, "dispute", "replay", file)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["ruling"], said["loser"], said["step"]) == ("wrong", "defender", STEP)


@pytest.mark.long
async def test_exe_10__a_dispute_whose_parties_are_all_killed_ends_alike(town: Town) -> None:
    # The solver is frozen until its challenger has made the first move, so that the dispute is
    # at its middle when everybody is killed.
    job = await town.post(ASK)
    await town.until_job(job, lambda now: now.phase is Phase.DISPUTED)
    town.net.signal("liar", signal.SIGSTOP)
    case = await town.until(moved(job))
    for name in ("hub", "liar", "ann", "bob"):
        town.net.kill(name)
    await town.net.up("hub")
    board = await town.board()
    assert board.cases[case.id].moves[: len(case.moves)] == case.moves
    await town.net.up("liar", "ann", "bob")
    check_lie(await town.until(judged(job)))
    await town.until_job(job, lambda now: now.attempt == 2)
    after = (await town.board()).cases[case.id]
    assert after.void or after.transcript is not None
    assert [t.party for t in slashed(await town.board(), job)] == [town.party("liar")]


async def test_an_honest_solver_takes_the_jobs_over(town: Town) -> None:
    jobs = list((await town.board()).jobs)
    assert jobs
    await town.net.up("hon")
    for job in jobs:
        done = await town.settled(job)
        assert (done.attempt, done.solver) == (2, town.party("hon"))
        assert roots(done) == expected(ASK)
    # What the liar lost is nobody's to give back.
    board = await town.board()
    assert board.ledger.balance(town.party("liar")) == GRANT - len(jobs) * PRICES.solver_bond
    assert sum(board.ledger.balances.values()) == 0


# ---- a verifier that looks at nothing -------------------------------------------------------


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A lying solver, a verifier that vouches for anything, and a whistleblower."""
    folder = tmp_path_factory.mktemp("careless")
    party = [
        Member("hub", "coordinator"),
        lying("liar"),
        Member("laz", "verifier", program=("-m", "tests.network.lazy")),
        Member("wat", "whistleblower", {"intervals": 0}),
    ]
    yield from running(LocalNetwork(folder, party))


@pytest.mark.long
async def test_a_lazy_verifier_falls_with_the_liar_it_vouched_for(careless: Town) -> None:
    town = careless
    job = await town.post(replace(ASK, verifiers=1, window_ms=120_000))
    first, second = [await town.until(judged(job, number)) for number in (1, 2)]
    assert first.opened.defender == town.party("liar")
    assert second.opened.defender == town.party("laz")
    assert {first.opened.challenger, second.opened.challenger} == {town.party("wat")}
    check_lie(first)
    # Repeating the liar's moves keeps its claim up to the same wrong step.
    check_lie(second)
    await town.until_job(job, lambda now: now.attempt == 2)
    board = await town.board()
    assert {t.party for t in slashed(board, job)} == {town.party("liar"), town.party("laz")}
    gain = PRICES.solver_bond // 2 + PRICES.verifier_bond // 2
    assert board.ledger.balance(town.party("wat")) == GRANT + gain
    assert board.ledger.balance(town.party("laz")) == GRANT - PRICES.verifier_bond
    assert sum(board.ledger.balances.values()) == 0
