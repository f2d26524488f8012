"""A party of the network: follows the log, and keeps one task for each thing it is at.

* ``react`` is called after every entry once the past has been read; it starts tasks by name,
  each at most once at a time. A task ends early when what it is for is over.
* Whatever the coordinator is asked is asked until it answers: it may be starting again.
* What must outlast a restart is in the storage (``OwnRun``, the last head) or in the log.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

from identic.node.coordinator.cases import Case
from identic.node.coordinator.programs import Programs
from identic.node.logging import get_logger
from identic.node.mirror import Mirror
from identic.node.participant.cases import program_of
from identic.node.participant.heads import Heads
from identic.node.participant.keeping import Keeping, nearer
from identic.node.participant.runs import with_state
from identic.node.role import Context
from identic.node.rpc.client import Unreachable, pause_s
from identic.node.views import Progress
from identic.node.worker.frames import OwnRun
from identic.proofs.signatures import sign
from identic.protocol.encoding import encode
from identic.protocol.errors import Code, IdenticError, LocalError, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import Count, Digest, JobId, PartyId, Unsigned
from identic.protocol.job.contest import Contest
from identic.protocol.job.entries import DisputeOpened, LogHead
from identic.protocol.job.messages import (
    Challenge,
    DisputeId,
    Message,
    SignedMessage,
    Statement,
)
from identic.protocol.job.state import Job, Phase
from identic.protocol.program.codec import MAX_PROGRAM_BYTES
from identic.protocol.program.validate import Limits

T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, None]]
"""Makes the coroutine of a task, anew for every try."""

Alive = Callable[[], bool]
"""Whether a task is still of use."""

REFUSALS: Final = 6
"""Tries of a task whose statement was refused while the board changed."""

FIRST_PAUSE_S: Final = 1.0
"""Pause after the first failed try, in seconds; it doubles with each."""

LONGEST_PAUSE_S: Final = 60.0

REPORT_S: Final = 0.25
"""Least time between two progress reports about the same activity, in seconds."""

MOST_REPORTS: Final = 4
"""Progress reports on their way at the same time."""

MAX_BLOB_BYTES: Final = 1 << 36


class Entry(Enum):
    """How it stands with a claim."""

    OPEN = "it can be entered"
    IN = "it was entered and stands"
    OVER = "there is nothing to claim any more"


class Participant:
    """Base of the roles that take part in jobs."""

    name = "participant"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.remote = context.remote
        self.party: PartyId = context.identity.party
        self.network: PartyId = self.remote.connection.peer.party
        self._programs = Programs(context.blobs, Limits())
        self.mirror = Mirror(self.network, self._programs.plan)
        self.log = get_logger(self.name)
        self._heads = Heads(context.storage, self.network)
        self.keeping = Keeping(
            context.storage,
            context.blobs,
            int(context.config.limits.states_bytes),
            shared=context.config.coordinator is not None,
        )
        self._over = -1
        self._grown = asyncio.Condition()
        self._tasks: dict[Hashable, tuple[asyncio.Task[None], Alive]] = {}
        self._done: set[Hashable] = set()
        self._troubles: dict[Hashable, str] = {}
        self._lost = ""
        self._reported: dict[tuple[JobId, str], float] = {}
        self._reports: set[asyncio.Task[None]] = set()
        self._fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # ---- the role's life --------------------------------------------------------------------

    async def start(self) -> None:
        """Nothing to prepare: the log tells everything."""

    async def run(self) -> None:
        """Follow the log until cancelled; an unexpected error of a task ends the role."""
        following = asyncio.create_task(self._follow())
        try:
            await asyncio.wait({following, self._fault}, return_when=asyncio.FIRST_COMPLETED)
            await (self._fault if self._fault.done() else following)
        finally:
            following.cancel()
            await asyncio.wait({following})

    async def _follow(self) -> None:
        head = await self._head()
        if head.size == 0:
            self._review()
        attempt = 0
        stream = self.remote.log.follow(0, self._on_break)
        while True:
            try:
                _, entry = await anext(stream)
            except LocalError as error:
                self._on_break(error)
                await asyncio.sleep(pause_s(attempt))
                attempt += 1
                stream = self.remote.log.follow(self.mirror.size, self._on_break)
                continue
            attempt, self._lost = 0, ""
            await self._take(entry)
            if self.mirror.size >= head.size:
                self._review()

    async def _take(self, entry: bytes) -> None:
        """Apply an entry, with the program that it needs."""
        program = program_of(entry, self.mirror.board)
        if program is not None:
            await self.fetch(program[0], MAX_PROGRAM_BYTES)
            # A large one takes long to unroll; other disputes are played meanwhile.
            await asyncio.to_thread(self._programs.plan, *program)
        async with self._grown:
            self.mirror.take(entry)
            self._grown.notify_all()
        self._heads.compare(self.mirror.size, self.mirror.root)

    async def _head(self) -> LogHead:
        """The coordinator's newest head; the log must lead to it."""
        return self._heads.expect(await self._patiently(self.remote.log.head), self.mirror)

    def _on_break(self, error: LocalError) -> None:
        if self._lost != str(error):
            self.log.warning("lost the coordinator", problem=error.problem, remedy=error.remedy)
        self._lost = str(error)

    async def stop(self) -> None:
        """End every task."""
        tasks = [*(task for task, _ in self._tasks.values()), *self._reports]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._heads.keep()

    def status(self) -> Mapping[str, str]:
        """What the role is at, and what keeps it from it."""
        at_work = ", ".join(_words(key) for key in self._tasks) or "nothing"
        found = {"log": f"{self.mirror.size} entries", "at work on": at_work}
        if self._lost:
            found["coordinator"] = self._lost
        troubles = {f"trouble with {_words(key)}": text for key, text in self._troubles.items()}
        return {**found, **troubles}

    def react(self) -> None:
        """Start what is to be done now; called after each new entry."""
        raise NotImplementedError

    def _review(self) -> None:
        """End what is over, and start what is to be done."""
        for task, alive in self._tasks.values():
            if not alive() and not task.cancelling():
                task.cancel()
        self.react()
        over = sum(job.attempt - 1 + job.phase.over for job in self.mirror.board.jobs.values())
        if over != self._over:
            # Once at the start, and whenever a job or an attempt has ended.
            self._over = over
            self.begin(("let go", over), self._let_go)

    async def _let_go(self) -> None:
        await asyncio.to_thread(self.keeping.let_go, self.mirror.board)

    # ---- tasks ------------------------------------------------------------------------------

    def begin(self, key: Hashable, work: Work, alive: Alive = lambda: True) -> None:
        """Start a task under a name, unless it runs or has been done.

        Args:
            key: its name.
            work: what it does; tried again after a fault of this machine.
            alive: asked after each entry; the task is cancelled when it says no.
        """
        if key not in self._tasks and key not in self._done and alive():
            task = asyncio.create_task(self._guarded(key, work), name=_words(key))
            task.add_done_callback(partial(self._ended, key))
            self._tasks[key] = (task, alive)

    def _ended(self, key: Hashable, task: asyncio.Task[None]) -> None:
        self._tasks.pop(key, None)
        self._troubles.pop(key, None)
        self._done.add(key)
        if task.cancelled() or (error := task.exception()) is None or self._fault.done():
            return
        self._fault.set_exception(error)

    async def _guarded(self, key: Hashable, work: Work) -> None:
        """Run a task to its end.

        A fault of this machine is tried again as long as the task is of use. So is a refusal,
        a few times, if the board has changed meanwhile: what was said may have been right before.
        """
        refusals, wait_s = 0, FIRST_PAUSE_S
        while True:
            size = self.mirror.size
            try:
                await work()
            except ProtocolError as error:
                self.log.warning(
                    "refused", task=_words(key), rule=error.rule, got=error.got, want=error.want
                )
                refusals += 1
                await self.catch_up()
                if refusals == REFUSALS or self.mirror.size == size:
                    return
                self._troubles[key] = str(error)
            except LocalError as error:
                again = f"trying again in {wait_s:.0f} s"
                self.log.error(  # noqa: TRY400 - said in words
                    "cannot",
                    task=_words(key),
                    problem=error.problem,
                    remedy=error.remedy,
                    then=again,
                )
                self._troubles[key] = str(error)
            else:
                return
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_PAUSE_S)
            await self.catch_up()

    def at(self, key: Hashable) -> bool:
        """Whether a task of this name is at work."""
        return key in self._tasks

    def play_as(
        self,
        part: Callable[[DisputeOpened], PartyId],
        name: str,
        work: Callable[[Job, DisputeId], Coroutine[Any, Any, None]],
    ) -> None:
        """Play the open disputes in which this party has a part.

        Args:
            part: who has that part in a dispute.
            name: first word of the tasks' names.
            work: plays a dispute about a job.
        """
        for case in self.mirror.board.cases.values():
            if case.played and part(case.opened) == self.party:
                job = self.mirror.board.jobs[case.job]
                alive = partial(self._undecided, case.id)
                self.begin((name, case.id), partial(work, job, case.id), alive)

    def _undecided(self, dispute: DisputeId) -> bool:
        return self.mirror.board.cases[dispute].played

    def attempted(self, job: Job) -> bool:
        """Whether the attempt is still going on."""
        return self.current(job) is not None

    async def until(self, condition: Callable[[], T | None]) -> T:
        """Wait for entries until ``condition`` gives something other than ``None``."""
        async with self._grown:
            while (found := condition()) is None:
                await self._grown.wait()
            return found

    async def catch_up(self) -> None:
        """Wait until the mirror has every entry that the coordinator has now."""
        head = await self._head()
        await self.until(lambda: True if self.mirror.size >= head.size else None)

    def current(self, job: Job) -> Job | None:
        """The job as it is now, or nothing when this attempt is over."""
        now = self.mirror.board.jobs[job.id]
        return None if now.phase.over or now.attempt != job.attempt else now

    # ---- the coordinator --------------------------------------------------------------------

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call, which is safe to repeat, until the coordinator answers it."""
        attempt = 0
        while True:
            try:
                answer = await call()
            except Unreachable as error:
                if attempt == 0:
                    self._on_break(error)
            except ProtocolError as error:
                # EXE-10: a coordinator that is starting again is waited for.
                if error.code is not Code.UNAVAILABLE:
                    raise
            else:
                self._lost = ""
                return answer
            await asyncio.sleep(pause_s(attempt))
            attempt += 1

    async def say(self, statement: Statement) -> int:
        """Sign a statement and hand it in; returns the index of its entry.

        Raises:
            ProtocolError: the coordinator refuses it.
        """
        nonce = Unsigned(secrets.randbits(64))
        message = Message(self.network, self.party, nonce, statement)
        key = self.context.identity.signing_key
        signed = encode(SignedMessage(message, sign(key, Domain.MESSAGE, message)))
        return await self._patiently(partial(self.remote.log.append, signed))

    async def try_to_say(self, statement: Statement) -> bool:
        """Hand in a statement that others may have made needless; tells whether it counted."""
        try:
            await self.say(statement)
        except ProtocolError as error:
            self.log.info(
                "statement not taken",
                statement=type(statement).__name__,
                rule=error.rule,
                got=error.got,
                want=error.want,
            )
            return False
        return True

    async def challenge(self, job: Job, mark: int, root: Digest) -> bool:
        """Claim another state at a mark, in a contest that runs or a new one.

        Args:
            job: whose run is doubted.
            mark: first mark on which this party and the solver differ.
            root: state root that this party has there.

        Returns:
            Whether the party stands for its claim.
        """
        refusals, closed = 0, None
        while refusals < REFUSALS:
            entered = await self.until(partial(self._entry, job, closed))
            if entered is not Entry.OPEN:
                return entered is Entry.IN
            size = self.mirror.size
            if await self.try_to_say(Challenge(job.id, job.attempt, Count(mark), root)):
                return True
            await self.catch_up()
            now = self.current(job)
            if now is not None and now.contest is not None:
                # It lets nobody in any more, as friends of a liar may see to again and again.
                closed = now.contest
                continue
            refusals += 1
            if self.mirror.size == size:
                break
        self.log.error("cannot challenge", job=job.id.name, mark=mark)
        return False

    def _entry(self, job: Job, closed: Contest | None) -> Entry | None:
        """Whether this party can enter a claim now; nothing while it has to wait.

        Args:
            job: whose run is doubted.
            closed: a contest that lets nobody in any more.
        """
        now = self.current(job)
        if now is None or now.phase is Phase.OPEN:
            return Entry.OVER
        if now.contest is None:
            return Entry.OPEN
        if now.contest.doubts(self.party):
            return Entry.IN
        same = closed is not None and now.contest.opened_at == closed.opened_at
        return None if same else Entry.OPEN

    # ---- blobs and reports ------------------------------------------------------------------

    async def fetch(self, blob: Digest, limit: int = MAX_BLOB_BYTES) -> None:
        """Have a blob in the local store, whole; a damaged one is fetched again.

        Raises:
            ProtocolError: NET-7, it is longer than ``limit``; NET-8, the coordinator has none.
        """
        store = self.context.blobs
        if not await asyncio.to_thread(store.sound, blob):
            await self._patiently(lambda: self.remote.blobs.download(store, blob, limit))

    async def fetch_job(self, job: Job) -> None:
        """Have the program, the initial state and the data of a job."""
        parts = job.artifacts
        for blob in (parts.program, parts.state, *parts.data):
            await self.fetch(blob)

    async def brought_near(self, job: Job, run: OwnRun, case: Case) -> OwnRun:
        """The run with the stored state nearest to what is disputed; fetched, if it is not here.

        The solver's checkpoints are with the coordinator. One whose root is one's own serves like
        a state that one stored oneself; it is checked against that root before it is used.
        """
        disputed = case.opened.defender_head.marks - 1
        state = nearer(self.mirror.board.jobs[job.id], run, disputed)
        if state is None:
            return run
        try:
            await self.fetch(state.blob)
        except ProtocolError as error:
            # EXE-12: without it execution starts from an earlier state.
            self.log.warning("a state is not there", mark=int(state.mark), problem=str(error))
            return run
        return with_state(run, state)

    async def upload(self, blob: Digest) -> None:
        """Put a blob of the local store into the coordinator's."""
        await self._patiently(lambda: self.remote.blobs.upload(self.context.blobs, blob))

    def report(self, job: JobId, step: int, loss: float | None, rate: float, activity: str) -> None:
        """Tell how far the work on a job is; reports in quick succession are left out."""
        now = asyncio.get_running_loop().time()
        if now - self._reported.get((job, activity), 0.0) < REPORT_S:
            return
        if len(self._reports) >= MOST_REPORTS:
            # The coordinator is slow to answer; the work is not to wait for it.
            return
        self._reported[job, activity] = now
        progress = Progress(Digest(job), self.name, step, loss, rate, activity)
        task = asyncio.create_task(self._send(progress))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _send(self, progress: Progress) -> None:
        try:
            await self.remote.jobs.report(progress)
        except IdenticError as error:
            self.log.debug("progress not reported", problem=str(error))


def _words(key: Hashable) -> str:
    """A task's name for people."""
    parts = key if isinstance(key, tuple) else (key,)
    return " ".join(getattr(part, "name", None) or str(part) for part in parts)
