"""The whistleblower role.

When a run is finished, whatever the verifiers say of it, it executes some intervals between
stored states again, chosen at random. If a mark differs it executes what lies before as well,
since only the first difference is a true claim (JOB-16), and challenges the run there.
Whoever vouched for that run without looking falls with it. A stored state that does not
have its committed root, or cannot be had, is no evidence against anyone: *cannot tell*.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial

from identic.kernels.cuda.device import DeviceFault
from identic.node.config import WhistleblowerSection
from identic.node.participant.base import Participant
from identic.node.participant.doubt import (
    Alarms,
    fetch_reference,
    fetch_stored,
    is_unsound,
    look_again,
)
from identic.node.participant.play import Player
from identic.node.participant.runs import RunStore, assignment, float_of
from identic.node.role import Context, Role
from identic.node.worker.frames import MarkDone, OwnRun, StoredState, Train
from identic.node.worker.handle import Worker
from identic.protocol.errors import IdenticError, ProtocolError, Unsound
from identic.protocol.ids import Count
from identic.protocol.job.state import Awaiting, Job


def make(context: Context) -> Role:
    """Make the role."""
    return Whistleblower(context)


class Whistleblower(Participant):
    """Audits finished runs."""

    name = "whistleblower"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.settings = context.config.whistleblower or WhistleblowerSection()
        self.runs = RunStore(context, self.name)
        self._player = Player(self, self.runs.load)
        self._audited = 0
        self._alarms = Alarms(self)

    def status(self) -> Mapping[str, str]:
        """What the role is at, and what it found."""
        found = {"audited": f"{self._audited} intervals"}
        return {**super().status(), **found, **self._alarms.details}

    def react(self) -> None:
        """Audit finished runs of others, and play own disputes."""
        for job in self.mirror.board.jobs.values():
            involved = self.party in (job.solver, job.terms.submitter) or job.seat(self.party)
            if job.finish is not None and not job.phase.over and not involved:
                alive = partial(self.attempted, job)
                self.begin(("audit", job.id, job.attempt), partial(self._audit, job), alive)
        self.play_as(lambda opened: opened.challenger, "challenge", self._player.play)
        self.play_as(lambda opened: opened.defender, "defend", self._player.play)

    async def _audit(self, job: Job) -> None:
        """Execute some intervals again; the first difference is challenged."""
        bond = job.terms.prices.challenger_bond
        if self.mirror.board.ledger.at_risk(self.party) + bond > self.settings.stake:
            where = self.context.config.where("whistleblower.stake")
            self.log.warning("not audited: the bond is too high", job=job.id.name, limit=where)
            return
        self.runs.begin(job)
        intervals = self._chosen(job)
        try:
            await fetch_reference(self, job)
            async with Worker(assignment(self.context, job)) as worker:
                await self._look(worker, job, intervals)
        except (ProtocolError, Unsound) as error:
            # EXE-21: who has no sound data or machine accuses nobody, and says so.
            if not is_unsound(error):
                raise
            self._alarms.give(job, "data or machine of this node are not sound", error)

    async def _look(
        self, worker: Worker, job: Job, intervals: list[tuple[StoredState, int]]
    ) -> None:
        """Execute intervals until one differs, which is challenged."""
        for start, last in intervals:
            try:
                await fetch_stored(self, job, start)
                differs = await self._interval(worker, job, start, last)
            except DeviceFault:
                raise
            except IdenticError as error:
                if not worker.alive:
                    raise
                step = int(job.terms.step_of(int(start.mark)))
                what = f"the stored state of mark {int(start.mark)} cannot be used"
                self._alarms.give(job, what, error, step)
                continue
            self._audited += 1
            if differs is not None:
                await self._challenge(job, start, await self._first(worker, job, start, differs))
                return
        self.log.info("nothing found", job=job.id.name, intervals=len(intervals))

    def _chosen(self, job: Job) -> list[tuple[StoredState, int]]:
        """Stored states to start from, with the mark to stop at; in random order."""
        states = [StoredState(Count(0), job.artifacts.state)]
        states += [StoredState(s.mark, s.blob) for s in job.stored]
        states.sort(key=lambda s: s.mark)
        ends = [int(s.mark) for s in states[1:]] + [job.terms.last_mark]
        intervals = [pair for pair in zip(states, ends, strict=True) if pair[0].mark < pair[1]]
        secrets.SystemRandom().shuffle(intervals)
        return intervals[: self.settings.intervals or len(intervals)]

    async def _interval(
        self, worker: Worker, job: Job, start: StoredState, last: int
    ) -> MarkDone | None:
        """Execute one interval; returns the first mark that differs from the commitment."""
        found: MarkDone | None = None
        async for reply in self._marks(worker, job, start, last):
            if found is None and reply.mark.state_root != job.marks[reply.index].state_root:
                found = reply
        return found

    async def _marks(
        self, worker: Worker, job: Job, start: StoredState, last: int
    ) -> AsyncIterator[MarkDone]:
        """Execute from a stored state of the solver to a mark."""
        claimed = OwnRun(tuple(m.state_root for m in job.marks[: start.mark + 1]), (start,))
        async for reply in worker.train(Train(claimed, Count(last), keep=False)):
            if isinstance(reply, MarkDone):
                step, loss = int(reply.mark.step), float_of(reply.mark.loss)
                self.report(job.id, step, loss, 0.0, "auditing")
                yield reply

    async def _first(
        self, worker: Worker, job: Job, start: StoredState, differs: MarkDone
    ) -> MarkDone:
        """The first mark of the run that differs: ``differs``, or one before ``start``.

        The run is executed from its beginning, which asks nobody for a state. If claims will
        not be taken for much longer, what is known by then must do. The worker may be left in
        the middle of its work.
        """
        initial = StoredState(Count(0), job.artifacts.state)
        if start.mark:
            async for reply in self._marks(worker, job, initial, int(start.mark)):
                if reply.mark.state_root != job.marks[reply.index].state_root:
                    return reply
                if self._pressed(job):
                    self.log.warning("no time to look at all that is before", job=job.id.name)
                    break
        return differs

    def _pressed(self, job: Job) -> bool:
        """Whether less than a quarter of the time for claims is left."""
        now = self.current(job)
        if now is None:
            return True
        end = now.deadline if now.awaiting is Awaiting.WINDOW else None
        if now.contest is not None:
            end = now.contest.entry_until
        return end is not None and time.time() * 1000 > end - job.terms.clocks.window_ms // 4

    async def _challenge(self, job: Job, start: StoredState, differs: MarkDone) -> None:
        """Challenge at a mark, and keep what is needed to play: all before it is agreed."""
        mark = int(differs.index)
        claimed = tuple(m.state_root for m in job.marks[:mark])
        roots = (*claimed, differs.mark.state_root)
        initial = StoredState(Count(0), job.artifacts.state)
        known = {s.mark: s for s in (initial, start) if s.mark < mark}
        self.runs.save(job, OwnRun(roots, tuple(known.values())))
        before = OwnRun(claimed, tuple(known.values()))
        await look_again(self, job, before, mark, differs.mark.state_root)
        self.log.warning("run differs", job=job.id.name, attempt=int(job.attempt), mark=mark)
        await self.challenge(job, mark, differs.mark.state_root)
