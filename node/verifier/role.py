"""The verifier role.

Drawn for a job, it executes the whole run itself while the solver still trains, compares
every mark, and challenges at the first that differs. When the run is finished and equal it
seals its verdict, waits for the beacon, and tells the verdict with a digest that only
somebody who executed the beacon's step can make. When its data or its machine are not sound it
gives its seat back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from identic.node.participant.base import Participant
from identic.node.participant.doubt import Alarms, fetch_reference, is_unsound, look_again
from identic.node.participant.play import Player
from identic.node.participant.runs import (
    RunStore,
    assignment,
    cut,
    float_of,
    with_root,
    with_state,
)
from identic.node.role import Context, Role
from identic.node.worker.frames import (
    MarkDone,
    OwnRun,
    StateStored,
    TraceRoot,
    TraceRooted,
    Train,
    Trained,
)
from identic.node.worker.handle import Worker
from identic.proofs.runlog import run_root
from identic.proofs.signatures import SigningKey
from identic.protocol.commitments import RunHead
from identic.protocol.errors import IdenticError, ProtocolError, Unsound
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, Digest, StepIndex
from identic.protocol.job.messages import (
    CannotTell,
    CommitVerdict,
    Enrol,
    RevealVerdict,
    Verdict,
    verdict_digest,
    work_digest,
)
from identic.protocol.job.state import Awaiting, Job


def make(context: Context) -> Role:
    """Make the role."""
    return Verifier(context)


class Verifier(Participant):
    """Re-executes jobs."""

    name = "verifier"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.runs = RunStore(context, self.name)
        self._player = Player(self, self.runs.load)
        self._alarms = Alarms(self)

    def status(self) -> Mapping[str, str]:
        """What the role is at, and what it could not tell."""
        return {**super().status(), **self._alarms.details}

    def react(self) -> None:
        """Enrol, take up the jobs drawn for, and play own disputes."""
        if self.party not in self.mirror.board.enrolled:
            self.begin("enrol", self._enrol)
        for job in self.mirror.board.jobs.values():
            if not job.phase.over and job.seat(self.party) is not None:
                alive = partial(self.attempted, job)
                self.begin(("verify", job.id, job.attempt), partial(self._verify, job), alive)
        self.play_as(lambda opened: opened.challenger, "challenge", self._player.play)
        self.play_as(lambda opened: opened.defender, "defend", self._player.play)

    async def _enrol(self) -> None:
        await self.try_to_say(Enrol())

    async def _verify(self, job: Job) -> None:
        """Execute the run and act on what comes out."""
        now = self.current(job)
        seat = None if now is None else now.seat(self.party)
        if seat is None or seat.late or seat.verdict is not None:
            # Its word is given, or would not be heard any more.
            return
        self.runs.begin(job)
        check = Check(self, job, self.runs.load(job))
        try:
            await fetch_reference(self, job)
            await check.make_room()
            async with Worker(assignment(self.context, job)) as worker:
                if await check.execute(worker):
                    await check.judge(worker)
        except (ProtocolError, Unsound) as error:
            if not is_unsound(error):
                raise
            await self._cannot_tell(job, error, int(job.terms.step_of(len(check.run.roots) - 1)))

    async def _cannot_tell(self, job: Job, error: IdenticError, step: int) -> None:
        """Give the seat back: what this node has is no evidence against anybody."""
        # EXE-21: who has no sound data or machine accuses nobody, and says so.
        self._alarms.give(job, "data or machine of this verifier are not sound", error, step)
        now = self.current(job)
        seat = None if now is None else now.seat(self.party)
        if seat is not None and seat.sealed is None:
            await self.try_to_say(CannotTell(job.id, job.attempt))


class Check:
    """The re-execution of one attempt."""

    def __init__(self, verifier: Verifier, job: Job, run: OwnRun) -> None:
        self.run = run
        self._verifier = verifier
        self._job = job
        self._loop = asyncio.get_running_loop()
        self._began = (self._loop.time(), 0)

    @property
    def present(self) -> Job | None:
        """The job as it is now, or nothing when this attempt is over."""
        return self._verifier.current(self._job)

    async def execute(self, worker: Worker) -> bool:
        """Execute to the last mark; tells whether the run is still of interest."""
        request = Train(self.run, Count(self._job.terms.last_mark), keep=True)
        async for reply in worker.train(request):
            if self.present is None:
                return False
            if isinstance(reply, MarkDone):
                self.run = with_root(self.run, int(reply.index), reply.mark.state_root)
                self._report(int(reply.mark.step), float_of(reply.mark.loss))
            elif isinstance(reply, StateStored):
                self.run = with_state(self.run, reply.state)
                await self.make_room()
            elif isinstance(reply, Trained):
                self._verifier.runs.save(self._job, self.run)
            if await self.challenged():
                return False
        return True

    async def make_room(self) -> None:
        """Let go of states between others, as far as the disk needs it."""
        free = {int(s.mark) for s in self.run.stored}
        keeping = self._verifier.keeping
        self.run = await asyncio.to_thread(keeping.thinned, self._job, self.run, free)
        self._verifier.runs.save(self._job, self.run)

    def difference(self) -> int | None:
        """First mark on which this run and the solver's differ, as far as both have come."""
        job = self.present
        if job is None:
            return None
        pairs = zip(self.run.roots, (m.state_root for m in job.marks), strict=False)
        return next((i for i, (own, claimed) in enumerate(pairs) if own != claimed), None)

    async def challenged(self) -> bool:
        """Challenge the solver's run if it differs; tells whether it does."""
        mark, job = self.difference(), self.present
        if mark is None or job is None:
            return False
        self._verifier.runs.save(self._job, self.run)
        before = cut(self.run, self.run.roots[:mark], mark - 1)
        await look_again(self._verifier, job, before, mark, self.run.roots[mark])
        self._verifier.log.warning(
            "run differs",
            job=job.id.name,
            attempt=int(job.attempt),
            mark=mark,
            solver=job.marks[mark].state_root.short,
            own=self.run.roots[mark].short,
        )
        await self._verifier.challenge(job, mark, self.run.roots[mark])
        return True

    async def judge(self, worker: Worker) -> None:
        """Compare what is still to come, seal the verdict, and tell it after the beacon."""
        job = await self._verifier.until(self._due(Awaiting.VERDICTS, Awaiting.REVEALS))
        if await self.challenged() or not isinstance(job, Job):
            return
        verdict = Verdict(
            job.id,
            job.attempt,
            self._verifier.party,
            self._head(job.terms.marks),
            agrees=True,
            salt=self._salt(),
        )
        seat = job.seat(self._verifier.party)
        if seat is None or seat.late:
            return
        if seat.sealed is None:
            await self._verifier.say(CommitVerdict(job.id, job.attempt, verdict_digest(verdict)))
        self._report(int(job.terms.steps), None, "verdict sealed")
        job = await self._verifier.until(self._due(Awaiting.REVEALS))
        if not isinstance(job, Job) or job.beacon is None:
            return
        work = await self._work(worker, job.beacon)
        await self._verifier.say(
            RevealVerdict(job.id, job.attempt, verdict.head, verdict.agrees, verdict.salt, work)
        )
        self._verifier.log.info("verdict told", job=job.id.name, agrees=verdict.agrees)

    def _due(self, *what: Awaiting) -> Callable[[], Job | bool | None]:
        """A condition: the job awaits one of these (the job), or there is no verdict to give.

        ``False`` when the attempt is over, the time for verdicts is, or the run differs.
        """

        def condition() -> Job | bool | None:
            job = self.present
            if job is None or job.awaiting is Awaiting.WINDOW or self.difference() is not None:
                return False
            return job if job.awaiting in what else None

        return condition

    async def _work(self, worker: Worker, step: StepIndex) -> Digest:
        reply = await worker.ask(TraceRoot(step, self.run))
        if not isinstance(reply, TraceRooted):
            raise TypeError(f"the worker answered {type(reply).__name__}")
        return work_digest(self._verifier.party, reply.root)

    def _head(self, marks: int) -> RunHead:
        terms = self._job.terms
        root = run_root(self.run.roots[:marks], terms.cadence, terms.steps)
        return RunHead(self._job.id, Count(marks), root)

    def _salt(self) -> Digest:
        """A secret that only this identity can make, the same after a restart."""
        key: SigningKey = self._verifier.context.identity.signing_key
        about = self._job.id + int(self._job.attempt).to_bytes(8, "big")
        return sha256(key.sign(Domain.VERDICT, about))

    def _report(self, step: int, loss: float | None, activity: str = "re-executing") -> None:
        began, first = self._began
        if first == 0:
            self._began = (self._loop.time(), step)
        elapsed = self._loop.time() - began
        rate = (step - first) / elapsed if first and elapsed > 0 else 0.0
        self._verifier.report(self._job.id, step, loss, rate, activity)
