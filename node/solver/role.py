"""The solver role.

For each job it holds: train in a worker, commit to marks as they come, store checkpoints,
finish, and defend the run in a dispute. After a restart the log says what was committed to;
the run is taken up from the last stored state and repeats those marks first.
"""

from __future__ import annotations

import asyncio
from functools import partial

from identic.node.execution.forced import ForcedError
from identic.node.participant.base import Participant
from identic.node.participant.play import play
from identic.node.participant.runs import (
    RunStore,
    assignment,
    float_of,
    latest,
    with_root,
    with_state,
)
from identic.node.role import Context, Role
from identic.node.worker.frames import MarkDone, OwnRun, StateStored, Train, Trained
from identic.node.worker.handle import Worker
from identic.protocol.commitments import RunHead, run_leaf
from identic.protocol.errors import LocalError, ProtocolError
from identic.protocol.ids import Count, JobId, StepIndex, Unsigned
from identic.protocol.job.messages import AcceptJob, Commit, DisputeId, Finish, Mark, Stored
from identic.protocol.job.state import Awaiting, Job, Phase
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load
from identic.protocol.program.validate import Limits

COMMIT_S = 0.5
"""Least time between two commitments of a run, in seconds."""

MAX_MARKS = 2048
"""Most marks of one commitment (JOB-9)."""


def make(context: Context) -> Role:
    """Make the role."""
    return Solver(context)


class Solver(Participant):
    """Trains jobs."""

    name = "solver"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.settings = context.config.solver
        self.runs = RunStore(context, self.name)

    @property
    def forced(self) -> ForcedError | None:
        """The deliberate error of this solver's runs, if it rehearses one."""
        section = self.settings.forced_error if self.settings else None
        if section is None:
            return None
        return ForcedError(
            StepIndex(section.step),
            Count(section.value),
            Count(section.element),
            tuple(Count(entry) for entry in section.path),
            Unsigned(section.flip),
        )

    def react(self) -> None:
        """Take open jobs, go on with held ones, defend disputed ones."""
        for job in self.mirror.board.jobs.values():
            held = job.solver == self.party
            if job.phase is Phase.OPEN and self._wanted(job):
                self.begin(("accept", job.id, job.attempt), partial(self._accept, job))
            if held and job.awaiting is Awaiting.MARKS:
                self.begin(("train", job.id, job.attempt), partial(self._train, job))
        for case in self.mirror.board.cases.values():
            if case.opened.defender == self.party and not case.over:
                job = self.mirror.board.jobs[case.job]
                self.begin(("defend", case.id), partial(self._defend, job, case.id))

    def _wanted(self, job: Job) -> bool:
        """Whether this node may take a job and has room for it."""
        held = sum(
            j.solver == self.party and not j.phase.over for j in self.mirror.board.jobs.values()
        )
        room = self.settings is not None and held < self.settings.max_jobs
        own = job.terms.submitter == self.party or self.party in job.barred
        board, bond = self.mirror.board, job.terms.prices.solver_bond
        # A party that is new to the network is given its first money with its first statement.
        affordable = self.party not in board.known or board.ledger.balance(self.party) >= bond
        staked = self.settings is not None and bond <= self.settings.stake
        return room and affordable and staked and not own

    async def _accept(self, job: Job) -> None:
        """Take a job if this machine can run it."""
        await self.fetch(job.artifacts.program)
        limits = Limits(max_bytes=int(self.context.config.limits.memory_bytes))
        blob = self.context.blobs.read(job.artifacts.program, MAX_PROGRAM_BYTES)
        try:
            await asyncio.to_thread(load, blob, limits)
        except ProtocolError as error:
            where = self.context.config.where("limits.memory_bytes")
            self.log.warning(
                "job not taken", job=job.id.name, got=error.got, want=error.want, limit=where
            )
            return
        if await self.try_to_say(AcceptJob(job.id, job.attempt)):
            self.log.info("job taken", job=job.id.name, attempt=int(job.attempt))

    async def _train(self, job: Job) -> None:
        """Train to the last mark, from the last stored state."""
        await self.fetch_job(job)
        run = self.runs.load(job)
        roots = tuple(record.state_root for record in job.marks)
        stored = tuple(s for s in run.stored if s.mark < len(roots))
        effort = Effort(self, job, OwnRun(roots, stored))
        start = latest(effort.run)
        last = Count(job.terms.last_mark)
        request = Train(start.mark, start.blob, roots[start.mark], last)
        async with Worker(assignment(self.context, job, self.forced)) as worker:
            async for reply in worker.train(request):
                if isinstance(reply, MarkDone):
                    await effort.reached(int(reply.index), reply.mark)
                elif isinstance(reply, StateStored):
                    await effort.stored(reply)
                elif isinstance(reply, Trained):
                    await effort.finished(reply)

    async def _defend(self, job: Job, dispute: DisputeId) -> None:
        """Play a dispute about a run of this solver."""
        run = self.runs.load(job)
        roots = tuple(record.state_root for record in job.marks)
        own = OwnRun(roots, tuple(s for s in run.stored if s.mark < len(roots)))
        await play(self, job, dispute, own, self.forced)


class Effort:
    """One attempt at a job while it is being trained."""

    def __init__(self, solver: Solver, job: Job, run: OwnRun) -> None:
        self.run = run
        self._solver = solver
        self._job = job
        self._frontier = job.frontier
        self._pending: list[Mark] = []
        self._checkpoints: list[Stored] = []
        self._known_stored = {int(s.mark) for s in job.stored}
        self._loop = asyncio.get_running_loop()
        self._committed_at = self._loop.time()
        self._began = (self._loop.time(), 0)

    @property
    def job(self) -> JobId:
        """The job."""
        return self._job.id

    async def reached(self, index: int, mark: Mark) -> None:
        """Note a mark; commit to it with the next ones."""
        if index < len(self._job.marks):
            if self._job.marks[index].state_root != mark.state_root:
                raise LocalError(
                    f"this machine does not reproduce its own commitment to mark {index}",
                    remedy="run `identic doctor`; the hardware or the installation has changed",
                )
            return
        self.run = with_root(self.run, index, mark.state_root)
        self._frontier = self._frontier.append(run_leaf(index, mark.step, mark.state_root))
        self._pending.append(mark)
        await self._report(mark)
        due = self._loop.time() - self._committed_at >= COMMIT_S
        if due or len(self._pending) >= MAX_MARKS:
            await self._commit()

    async def stored(self, reply: StateStored) -> None:
        """Remember a stored state; a checkpoint goes to the coordinator after its commitment."""
        state = reply.state
        self.run = with_state(self.run, state)
        self._solver.runs.save(self._job, self.run)
        mark = int(state.mark)
        if mark in self._job.checkpoints and mark not in self._known_stored:
            await self._solver.upload(state.blob)
            self._checkpoints.append(Stored(self.job, self._job.attempt, state.mark, state.blob))

    async def finished(self, reply: Trained) -> None:
        """Commit to the rest and hand in the result."""
        await self._commit()
        if reply.model is None:
            raise RuntimeError("the run stopped before its last mark")
        for blob in (reply.state, reply.model):
            await self._solver.upload(blob)
        head = self._head()
        await self._solver.say(Finish(self.job, self._job.attempt, head, reply.model, reply.state))
        self._solver.log.info("job finished", job=self.job.name, marks=int(head.marks))

    def _head(self) -> RunHead:
        return RunHead(self.job, Count(self._frontier.size), self._frontier.root)

    async def _commit(self) -> None:
        """Extend the committed run log by the pending marks."""
        if self._pending:
            first = Count(self._frontier.size - len(self._pending))
            marks, self._pending = tuple(self._pending), []
            self._committed_at = self._loop.time()
            await self._solver.say(Commit(self.job, self._job.attempt, first, marks, self._head()))
        committed = self._frontier.size
        ready = [c for c in self._checkpoints if c.mark < committed]
        self._checkpoints = [c for c in self._checkpoints if c.mark >= committed]
        for statement in ready:
            await self._solver.say(statement)

    async def _report(self, mark: Mark) -> None:
        began, first = self._began
        if first == 0:
            self._began = (self._loop.time(), int(mark.step))
        elapsed = self._loop.time() - began
        rate = (int(mark.step) - first) / elapsed if first and elapsed > 0 else 0.0
        await self._solver.report(self.job, int(mark.step), float_of(mark.loss), rate, "training")
