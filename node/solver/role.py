"""The solver role.

For each job it holds: train in a worker, commit to marks as they come, store checkpoints,
finish, and defend the run in a dispute. After a restart the log says what was committed to;
the run is taken up from the last stored state and repeats those marks first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from identic.node.execution.forced import ForcedError
from identic.node.participant.base import Participant
from identic.node.participant.doubt import Alarms
from identic.node.participant.play import Player
from identic.node.participant.runs import (
    RunStore,
    assignment,
    cut,
    examination,
    float_of,
    with_root,
    with_state,
)
from identic.node.role import Context, Role
from identic.node.worker.devices import AUTO, CPU
from identic.node.worker.frames import (
    MarkDone,
    OwnRun,
    StateStored,
    StoredState,
    Train,
    Trained,
)
from identic.node.worker.handle import Worker
from identic.protocol.commitments import RunHead, run_leaf
from identic.protocol.errors import LocalError, ProtocolError, Unsound
from identic.protocol.ids import Count, JobId, StepIndex, Unsigned
from identic.protocol.job.asks import blob_of
from identic.protocol.job.messages import AcceptJob, Commit, Finish, Mark, Served, Stored
from identic.protocol.job.state import Awaiting, Job, Phase
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load
from identic.protocol.program.unroll import unroll

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
        self._player = Player(self, self._own, self.forced)
        self._alarms = Alarms(self)

    def status(self) -> Mapping[str, str]:
        """What the role is at, and what it could not tell."""
        return {**super().status(), **self._alarms.details}

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
            alive = partial(self._open, job)
            if job.phase is Phase.OPEN and self._wanted(job):
                self.begin(("accept", job.id, job.attempt), partial(self._accept, job), alive)
            alive = partial(self.attempted, job)
            if held and job.awaiting is Awaiting.MARKS:
                self.begin(("train", job.id, job.attempt), partial(self._train, job), alive)
            if held and job.ask is not None:
                key = ("serve", job.id, job.attempt, len(job.asked))
                self.begin(key, partial(self._serve, job), partial(self._asked, job))
        self.play_as(lambda opened: opened.defender, "defend", self._player.play)

    def _asked(self, job: Job) -> bool:
        now = self.current(job)
        return now is not None and now.ask == job.ask

    async def _serve(self, job: Job) -> None:
        """Store a state again that was asked for; make it again if it is lost here as well."""
        if job.ask is None:
            raise RuntimeError("nothing was asked for")
        mark = int(job.ask.mark)
        blob = blob_of(job, mark)
        if not await asyncio.to_thread(self.context.blobs.sound, blob):
            self.log.warning("a state is made again", job=job.id.name, mark=mark)
            await self.fetch_job(job)
            roots = tuple(record.state_root for record in job.marks)
            before = cut(self.runs.load(job), roots, mark - 1)
            async with Worker(assignment(self.context, job, self.forced)) as worker:
                async for _ in worker.train(Train(before, Count(mark), keep=True)):
                    pass
        await self.upload(blob)
        await self.try_to_say(Served(job.id, job.attempt, Count(mark)))
        self.log.info("a state was stored again", job=job.id.name, mark=mark)

    def _open(self, job: Job) -> bool:
        now = self.current(job)
        return now is not None and now.phase is Phase.OPEN

    def _wanted(self, job: Job) -> bool:
        """Whether this node may take a job and has room for it."""
        board, settings = self.mirror.board, self.settings
        own = job.terms.submitter == self.party or self.party in job.barred
        if settings is None or own:
            return False
        # What is being taken counts like what is held.
        taking = [j for j in board.jobs.values() if self.at(("accept", j.id, j.attempt))]
        held = [j for j in board.jobs.values() if j.solver == self.party and not j.phase.over]
        bonds = [j.terms.prices.solver_bond for j in (*taking, job)]
        at_risk = board.ledger.at_risk(self.party) + sum(bonds)
        # A party that is new to the network is given its first money with its first statement.
        new = self.party not in board.known
        affordable = new or board.ledger.balance(self.party) >= sum(bonds)
        room = len(held) + len(taking) < settings.max_jobs
        return room and affordable and at_risk <= settings.stake

    async def _accept(self, job: Job) -> None:
        """Take a job if this machine can run it."""
        await self.fetch(job.artifacts.program, MAX_PROGRAM_BYTES)
        limits = self.context.config.limits.programs
        blob = self.context.blobs.read(job.artifacts.program, MAX_PROGRAM_BYTES)
        try:
            program = await asyncio.to_thread(load, blob, limits)
            if self.forced is not None:
                plan = await asyncio.to_thread(unroll, program)
                self.forced.check(plan, job.terms.steps)
            await self._examine(job)
        except LocalError as error:
            self.log.warning("job not taken", job=job.id.name, problem=error.problem)
            return
        except ProtocolError as error:
            where = self.context.config.where("limits")
            self.log.warning(
                "job not taken", job=job.id.name, got=error.got, want=error.want, limit=where
            )
            return
        await self.try_to_say(AcceptJob(job.id, job.attempt))

    async def _examine(self, job: Job) -> None:
        """See that the device has room for a job before it is promised; the CPU always stands in.

        Raises:
            LocalError: it has none, or is not there, or not sound.
        """
        # EXE-24: a job is not taken for a device that has no room for it.
        if self.context.config.device not in {AUTO, CPU}:
            async with Worker(examination(self.context, job)):
                pass

    async def _train(self, job: Job) -> None:
        """Train, unless this machine turns out not to be sound."""
        try:
            await self._trained(job)
        except Unsound as error:
            # EXE-23: nothing more is committed to; a later try starts from the last stored state.
            self._alarms.give(job, "the machine of this solver is not sound", error)
            raise

    async def _trained(self, job: Job) -> None:
        """Train to the last mark, from the last stored state that is of use."""
        self.log.info("training", job=job.id.name, attempt=int(job.attempt))
        self.runs.begin(job)
        await self.fetch_job(job)
        # Since an earlier try the log may have grown.
        now = self.current(job)
        if now is None or now.awaiting is not Awaiting.MARKS:
            return
        roots = tuple(record.state_root for record in now.marks)
        effort = Effort(self, now, cut(self.runs.load(now), roots, _missing(now, self.runs)))
        await effort.take_up()
        await effort.make_room()
        request = Train(effort.run, Count(now.terms.last_mark), keep=True)
        async with Worker(assignment(self.context, now, self.forced)) as worker:
            async for reply in worker.train(request):
                if isinstance(reply, MarkDone):
                    await effort.reached(int(reply.index), reply.mark)
                elif isinstance(reply, StateStored):
                    await effort.stored(reply)
                elif isinstance(reply, Trained):
                    await effort.finished(reply)

    def _own(self, job: Job) -> OwnRun:
        """The run as far as it is committed to, to answer from in disputes."""
        now = self.current(job) or job
        roots = tuple(record.state_root for record in now.marks)
        return cut(self.runs.load(now), roots, now.terms.last_mark)


def _missing(job: Job, runs: RunStore) -> int:
    """First checkpoint that is stored nowhere, to start at or before; else the last mark."""
    there = {int(s.mark) for s in job.stored} | {int(s.mark) for s in runs.load(job).stored}
    return next((mark for mark in job.checkpoints if mark not in there), job.terms.last_mark)


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

    async def take_up(self) -> None:
        """Hand in the checkpoints that an earlier try stored and did not tell."""
        for state in self.run.stored:
            await self._checkpoint(state)

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
        self._report(mark)
        due = self._loop.time() - self._committed_at >= COMMIT_S
        if due or len(self._pending) >= MAX_MARKS:
            await self._commit()

    async def stored(self, reply: StateStored) -> None:
        """Remember a stored state; a checkpoint goes to the coordinator after its commitment."""
        self.run = with_state(self.run, reply.state)
        self._solver.runs.save(self._job, self.run)
        await self._checkpoint(reply.state)
        await self.make_room()

    async def make_room(self) -> None:
        """Let go of states that the coordinator has, as far as the disk needs it."""
        job = self._solver.current(self._job)
        told = {int(s.mark) for s in job.stored} if job is not None else set[int]()
        keeping = self._solver.keeping
        self.run = await asyncio.to_thread(keeping.thinned, self._job, self.run, told)
        self._solver.runs.save(self._job, self.run)

    async def _checkpoint(self, state: StoredState) -> None:
        """Bring a state to the coordinator, once, if it is one of those that it must have."""
        mark = int(state.mark)
        if mark in self._job.checkpoints and mark not in self._known_stored:
            self._known_stored.add(mark)
            await self._solver.upload(state.blob)
            self._checkpoints.append(Stored(self.job, self._job.attempt, state.mark, state.blob))

    async def finished(self, reply: Trained) -> None:
        """Commit to the rest and hand in the result."""
        await self._commit()
        if reply.model is None or reply.state is None:
            raise RuntimeError("the run stopped before its last mark")
        for blob in (reply.state, reply.model):
            await self._solver.upload(blob)
        head = self._head()
        await self._solver.say(Finish(self.job, self._job.attempt, head, reply.model, reply.state))
        self._solver.report(self.job, int(self._job.terms.steps), None, 0.0, "finished")
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

    def _report(self, mark: Mark) -> None:
        began, first = self._began
        if first == 0:
            self._began = (self._loop.time(), int(mark.step))
        elapsed = self._loop.time() - began
        rate = (int(mark.step) - first) / elapsed if first and elapsed > 0 else 0.0
        self._solver.report(self.job, int(mark.step), float_of(mark.loss), rate, "training")
