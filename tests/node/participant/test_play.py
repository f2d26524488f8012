"""Many disputes of one party at a time: one worker, the most urgent answer first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import pytest

from identic.kernels.cuda.device import DeviceFault
from identic.node.logging import get_logger
from identic.node.participant import play
from identic.node.participant.play import Desk, Player, Turns
from identic.node.worker.devices import CPU
from identic.node.worker.frames import Answer, Answered, OwnRun, Request
from identic.protocol.dispute.moves import Side
from identic.protocol.errors import LocalError
from identic.protocol.ids import Count
from identic.protocol.job.messages import DisputeId
from tests.protocol.job.world import HONEST, SOLVER, digest, judged


async def test_whoever_is_due_first_is_let_in_first() -> None:
    turns, order = Turns(), []

    async def take(due: int) -> None:
        await turns.take(due)
        order.append(due)
        await asyncio.sleep(0)
        turns.give()

    await turns.take(0)
    waiting = [asyncio.create_task(take(due)) for due in (30, 10, 20, 40)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    turns.give()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert order == [10, 20, 40]
    await turns.take(0)


async def test_a_turn_that_comes_to_somebody_who_has_gone_is_passed_on() -> None:
    turns = Turns()
    await turns.take(0)
    gone, next_ = (asyncio.create_task(turns.take(due)) for due in (1, 2))
    await asyncio.sleep(0)
    turns.give()
    gone.cancel()
    await asyncio.wait_for(next_, 5)
    with pytest.raises(asyncio.CancelledError):
        await gone


class FakeWorker:
    """A worker that says what it was asked, when it is let."""

    made: ClassVar[list[FakeWorker]] = []

    def __init__(self, assignment: object) -> None:
        del assignment
        self.asked: list[Answer] = []
        self.ready: object = None
        self.alive = False
        self.go = asyncio.Event()
        FakeWorker.made.append(self)

    async def __aenter__(self) -> Self:
        self.ready, self.alive = object(), True
        return self

    async def ask(self, request: Request) -> Answered:
        assert isinstance(request, Answer)
        self.asked.append(request)
        await self.go.wait()
        if not self.alive:
            raise LocalError("the worker has ended", remedy="none")
        return Answered(None)

    async def close(self) -> None:
        self.alive = False
        self.go.set()


class FakeParty:
    """A party with disputes that wait for its first move."""

    def __init__(self, *deadlines: int) -> None:
        self.context = None
        self.party = SOLVER
        self.log = get_logger("party")
        self.loads = 0
        self.cases: dict[DisputeId, Any] = {}
        self.mirror: Any = SimpleNamespace(board=SimpleNamespace(cases=self.cases))
        self.ended = asyncio.Event()
        for deadline in deadlines:
            clock = SimpleNamespace(deadline=lambda _, at=deadline: at)
            dispute = SimpleNamespace(due=(Side.DEFENDER,), clock=clock)
            opened = SimpleNamespace(defender_head=SimpleNamespace(marks=Count(3)))
            self.cases[self.name(deadline)] = SimpleNamespace(
                id=deadline, moves=(), played=True, dispute=dispute, opened=opened
            )

    @staticmethod
    def name(deadline: int) -> DisputeId:
        return DisputeId(digest(f"dispute {deadline}"))

    async def fetch_job(self, job: object) -> None:
        """Everything is here."""

    async def brought_near(self, job: object, run: OwnRun, case: object) -> OwnRun:
        """So is the nearest state."""
        del job, case
        return run

    async def until(self, condition: Any) -> Any:
        while (found := condition()) is None:
            await self.ended.wait()
        return found

    def end(self) -> None:
        """All disputes are over."""
        for case in self.cases.values():
            case.played = False
        self.ended.set()

    def load(self, job: object) -> OwnRun:
        del job
        self.loads += 1
        return OwnRun(HONEST, ())


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeWorker.made.clear()
    monkeypatch.setattr(play, "Worker", FakeWorker)
    monkeypatch.setattr(play, "assignment", lambda *_: None)
    monkeypatch.setattr(play, "side_of", lambda *_: Side.DEFENDER)
    monkeypatch.setattr(play, "record_of", lambda case: case.id)


async def settle() -> None:
    """Let every task go on as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def started(party: FakeParty, player: Player) -> list[asyncio.Task[None]]:
    """Play all disputes of a party."""
    job = judged().job
    return [asyncio.create_task(player.play(job, name)) for name in party.cases]


async def test_all_disputes_about_a_run_share_a_worker_and_are_answered_by_urgency() -> None:
    party = FakeParty(50, 40, 10, 30)
    player = Player(party, party.load)  # type: ignore[arg-type]
    games = started(party, player)
    await settle()
    (worker,) = FakeWorker.made
    worker.go.set()
    await settle()
    # The first was at work already when the others came.
    records: list[Any] = [request.record for request in worker.asked]
    assert records == [50, 10, 30, 40]
    assert party.loads == 1
    party.end()
    await asyncio.gather(*games)
    assert not worker.alive


async def test_a_dispute_that_is_void_in_the_middle_of_an_answer_harms_no_other() -> None:
    party = FakeParty(1, 2)
    player = Player(party, party.load)  # type: ignore[arg-type]
    first, second = started(party, player)
    await settle()
    (worker,) = FakeWorker.made
    first.cancel()
    await settle()
    assert len(worker.asked) == 1
    worker.go.set()
    await settle()
    assert len(worker.asked) == 2
    party.end()
    await asyncio.gather(second)


async def test_after_the_end_of_a_worker_the_next_try_has_another() -> None:
    party = FakeParty(1, 2)
    player = Player(party, party.load)  # type: ignore[arg-type]
    games = started(party, player)
    await settle()
    FakeWorker.made[0].alive = False
    FakeWorker.made[0].go.set()
    ends = await asyncio.gather(*games, return_exceptions=True)
    assert all(isinstance(end, LocalError) for end in ends)
    games = started(party, player)
    await settle()
    assert [worker.alive for worker in FakeWorker.made] == [False, True]
    party.end()
    FakeWorker.made[1].go.set()
    await asyncio.gather(*games)


async def test_a_run_that_is_too_short_for_a_dispute_is_read_again() -> None:
    party = FakeParty(1)
    job = judged().job
    short = OwnRun(HONEST[:2], ())
    reads = iter([short, OwnRun(HONEST, ())])
    desk = Desk(party, job, lambda _: next(reads), None)  # type: ignore[arg-type]
    desk._worker.go.set()  # type: ignore[attr-defined]
    (case,) = party.cases.values()
    for _ in range(3):
        await desk.answer(case, Side.DEFENDER)
    assert [len(r.own.roots) for r in desk._worker.asked] == [2, 5, 5]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Told:
    """What a worker is told, as far as it matters here."""

    device: str


async def test_exe_23__a_side_of_a_dispute_goes_on_without_its_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices: list[str] = []

    class Ending(FakeWorker):
        """A worker that ends with its device, and is well on the CPU."""

        def __init__(self, told: Told) -> None:
            super().__init__(told)
            self.told = told
            devices.append(told.device)

        async def __aenter__(self) -> Self:
            self.ready, self.alive = self.told, True
            return self

        async def ask(self, request: Request) -> Answered:
            if self.told.device != CPU:
                raise DeviceFault("it has gone", remedy="")
            return await super().ask(request)

    monkeypatch.setattr(play, "Worker", Ending)
    monkeypatch.setattr(play, "assignment", lambda *_: Told("cuda:1"))
    party = FakeParty(1)
    desk = Desk(party, judged().job, party.load, None)  # type: ignore[arg-type]
    (case,) = party.cases.values()
    answers = [asyncio.create_task(desk.answer(case, Side.DEFENDER)) for _ in range(2)]
    await settle()
    FakeWorker.made[-1].go.set()
    assert await asyncio.gather(*answers) == [None, None]
    # The second answer comes from the CPU at once.
    assert devices == ["cuda:1", CPU]
    await desk.close()
