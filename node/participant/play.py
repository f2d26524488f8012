"""Playing disputes: whenever the record of one has grown, ask the worker for the move due.

All disputes of a party about one run share a worker, and with it one execution: what was
computed for one of them answers the others. Requests are answered in the order in which
their moves are due.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from identic.node.coordinator.cases import Case
from identic.node.execution.forced import ForcedError
from identic.node.participant.base import Participant
from identic.node.participant.cases import record_of, side_of
from identic.node.participant.runs import assignment
from identic.node.worker.devices import CPU
from identic.node.worker.frames import Answer, Answered, ChosenMove, OwnRun, Reply
from identic.node.worker.handle import Worker
from identic.proofs.signatures import sign
from identic.protocol.dispute.moves import MoveBody, Side, SignedMove
from identic.protocol.errors import Unsound
from identic.protocol.hashing import Domain
from identic.protocol.ids import Count, Digest, JobId
from identic.protocol.job.messages import DisputeId, DisputeMove
from identic.protocol.job.state import Job

LoadRun = Callable[[Job], OwnRun]
"""Reads what this party has computed of a job."""


class Turns:
    """A lock that lets in whoever is due first."""

    def __init__(self) -> None:
        self._busy = False
        self._numbers = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    async def take(self, due: int) -> None:
        """Wait for the turn of somebody who is due at Unix time ``due``, in milliseconds."""
        if not self._busy:
            self._busy = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (due, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()
            raise

    def give(self) -> None:
        """End a turn; the next begins."""
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False


class Desk:
    """A party's worker for all its disputes about one run, with the run that it answers from.

    Attributes:
        users: disputes that are played at it.
    """

    def __init__(
        self, party: Participant, job: Job, load: LoadRun, forced: ForcedError | None
    ) -> None:
        """Start nothing yet.

        Args:
            party: whose desk.
            job: what the run is of.
            load: reads the run.
            forced: the deliberate error of the run, if it had one.
        """
        self.users = 0
        self._party = party
        self._job = job
        self._load = load
        self._own: OwnRun | None = None
        self._assignment = assignment(party.context, job, forced)
        self._worker = Worker(self._assignment)
        self._turns = Turns()
        self._asked: set[asyncio.Task[Reply]] = set()

    @property
    def broken(self) -> bool:
        """Whether its worker was started and has ended."""
        return self._worker.ready is not None and not self._worker.alive

    async def answer(self, case: Case, side: Side) -> ChosenMove | None:
        """The move that is due in a dispute.

        Who is cancelled while the worker is at its request leaves it to end by itself.

        Raises:
            ProtocolError: what the worker was given breaks a rule.
            LocalError: this machine cannot answer.
        """
        await self._turns.take(int(case.dispute.clock.deadline(side)))
        request = asyncio.create_task(self._ask(case, side))
        self._asked.add(request)
        request.add_done_callback(self._answered)
        reply = await asyncio.shield(request)
        return reply.move if isinstance(reply, Answered) else None

    async def _ask(self, case: Case, side: Side) -> Reply:
        """Ask the worker; the CPU, if the device turns out not to be there or not sound."""
        try:
            return await self._ask_worker(case, side)
        except Unsound as error:
            ready = self._worker.ready
            if CPU in {self._assignment.device, ready.device if ready else None}:
                raise
            # EXE-23: whoever is in a dispute answers without its device, before it is late.
            self._party.log.warning("a dispute goes on without the device", problem=str(error))
        await self._worker.close()
        self._assignment = replace(self._assignment, device=CPU)
        self._worker = Worker(self._assignment)
        return await self._ask_worker(case, side)

    async def _ask_worker(self, case: Case, side: Side) -> Reply:
        if self._worker.ready is None:
            await self._party.fetch_job(self._job)
            await self._worker.__aenter__()
        # The run is read again only when it must have grown, so that what is cached stays of use.
        if self._own is None or len(self._own.roots) < case.opened.defender_head.marks:
            self._own = await self._party.brought_near(self._job, self._load(self._job), case)
        return await self._worker.ask(Answer(record_of(case), side, self._own))

    def _answered(self, request: asyncio.Task[Reply]) -> None:
        self._asked.discard(request)
        self._turns.give()
        if not request.cancelled():
            # Whoever asked may be gone; the error is then nobody's.
            request.exception()

    async def close(self) -> None:
        """End the worker, and what it is at."""
        await self._worker.close()
        await asyncio.gather(*self._asked, return_exceptions=True)
        await self._worker.close()


class Player:
    """Plays the disputes of a party, many at a time."""

    def __init__(
        self, party: Participant, load: LoadRun, forced: ForcedError | None = None
    ) -> None:
        """Play nothing yet.

        Args:
            party: who plays.
            load: reads what it has computed of a job, over at least the marks that it claimed.
            forced: the deliberate error of its runs, if it rehearses one.
        """
        self._party = party
        self._load = load
        self._forced = forced
        self._desks: dict[tuple[JobId, Count], Desk] = {}

    async def play(self, job: Job, dispute: DisputeId) -> None:
        """Play a dispute to its end, as the side that the party is.

        Args:
            job: what the dispute is about.
            dispute: set up, with the party as a side.
        """
        key, party, seen = (job.id, job.attempt), self._party, -1
        desk = self._desks.get(key)
        if desk is None or desk.broken:
            desk = self._desks[key] = Desk(party, job, self._load, self._forced)
        desk.users += 1
        try:
            while True:
                case = await party.until(partial(_news, party, dispute, seen))
                if not case.played:
                    return
                side = side_of(case, party.party)
                if side is None:
                    raise RuntimeError("playing somebody else's dispute")
                seen = len(case.moves)
                if side in case.dispute.due:
                    # An answer that came too late, or twice after a restart, changes nothing.
                    chosen = await desk.answer(case, side)
                    if chosen is not None:
                        await _move(party, case, chosen)
        finally:
            desk.users -= 1
            if not desk.users:
                if self._desks.get(key) is desk:
                    del self._desks[key]
                await desk.close()


def _news(party: Participant, dispute: DisputeId, seen: int) -> Case | None:
    """The dispute once it has more moves than ``seen``, or its end."""
    case = party.mirror.board.cases.get(dispute)
    if case is None:
        return None
    return case if not case.played or len(case.moves) > seen else None


async def _move(party: Participant, case: Case, chosen: ChosenMove) -> None:
    """Sign a move and make it; one that came too late changes nothing."""
    body = MoveBody(Digest(case.id), chosen.turn, party.party, chosen.move)
    key = party.context.identity.signing_key
    signed = SignedMove(body, sign(key, Domain.MOVE, body))
    await party.try_to_say(DisputeMove(case.id, signed))
