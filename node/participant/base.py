"""A party of the network: follows the log, and keeps one task for each thing it is at.

``react`` is called after every entry once the past has been read; it starts tasks by name,
each at most once at a time. A task waits for the log with ``until``. What must outlast a
restart is in the storage (``OwnRun``) or in the log itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, TypeVar

from identic.node.coordinator.programs import Programs
from identic.node.logging import get_logger
from identic.node.mirror import Mirror
from identic.node.participant.cases import program_of
from identic.node.role import Context
from identic.node.views import Progress
from identic.proofs.signatures import sign
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import IdenticError, LocalError, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import Digest, JobId, PartyId, Unsigned
from identic.protocol.job.entries import LogHead
from identic.protocol.job.messages import Message, SignedMessage, Statement
from identic.protocol.job.state import Job
from identic.protocol.program.validate import Limits

T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, None]]
"""Makes the coroutine of a task, anew for every try."""

ATTEMPTS = 6
"""Tries of a task that this machine could not do."""

FIRST_PAUSE_S = 1.0
"""Pause after the first failed try, in seconds; it doubles with each."""

REPORT_S = 0.25
"""Least time between two progress reports about a job, in seconds."""

MAX_BLOB_BYTES = 1 << 36


class Participant:
    """Base of the roles that take part in jobs."""

    name = "participant"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.remote = context.remote
        self.party: PartyId = context.identity.party
        self.network: PartyId = self.remote.connection.peer.party
        self.mirror = Mirror(self.network, Programs(context.blobs, Limits()).plan)
        self.log = get_logger(self.name)
        self._grown = asyncio.Condition()
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._done: set[Hashable] = set()
        self._reported: dict[JobId, float] = {}
        self._fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # ---- the role's life --------------------------------------------------------------------

    async def start(self) -> None:
        """Nothing to prepare: the log tells everything."""

    async def run(self) -> None:
        """Follow the log until cancelled; an unexpected error of a task ends the role."""
        following = asyncio.create_task(self._follow())
        try:
            await asyncio.wait({following, self._fault}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            following.cancel()
        await (self._fault if self._fault.done() else following)

    async def _follow(self) -> None:
        head = decode(LogHead, (await self.remote.log.head()).head).size
        if head == 0:
            self.react()
        async for _, entry in self.remote.log.follow(0, self._on_break):
            program = program_of(entry)
            if program is not None:
                await self.fetch(program)
            async with self._grown:
                self.mirror.take(entry)
                self._grown.notify_all()
            if self.mirror.size >= head:
                self.react()

    def _on_break(self, error: LocalError) -> None:
        self.log.warning("lost the coordinator", problem=error.problem, remedy=error.remedy)

    async def stop(self) -> None:
        """End every task."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def status(self) -> Mapping[str, str]:
        """What the role is at."""
        at_work = ", ".join(str(key) for key in self._tasks) or "nothing"
        return {"log": f"{self.mirror.size} entries", "at work on": at_work}

    def react(self) -> None:
        """Start what is to be done now; called after each new entry."""
        raise NotImplementedError

    # ---- tasks ------------------------------------------------------------------------------

    def begin(self, key: Hashable, work: Work) -> None:
        """Start a task under a name, unless it runs or has been done."""
        if key not in self._tasks and key not in self._done:
            task = asyncio.create_task(self._guarded(key, work), name=str(key))
            task.add_done_callback(self._ended)
            self._tasks[key] = task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None or self._fault.done():
            return
        self._fault.set_exception(error)

    async def _guarded(self, key: Hashable, work: Work) -> None:
        """Run a task; a fault of the job ends it, one of this machine is tried again."""
        pause_s = FIRST_PAUSE_S
        for attempt in range(ATTEMPTS):
            try:
                await work()
                break
            except ProtocolError as error:
                self.log.warning(
                    "refused", task=str(key), rule=error.rule, got=error.got, want=error.want
                )
                break
            except LocalError as error:
                again = "" if attempt + 1 == ATTEMPTS else f"trying again in {pause_s:.0f} s"
                self.log.error(  # noqa: TRY400 - said in words
                    "cannot", task=str(key), problem=error.problem, remedy=error.remedy, then=again
                )
            await asyncio.sleep(pause_s)
            pause_s *= 2
        self._done.add(key)
        self._tasks.pop(key, None)

    async def until(self, condition: Callable[[], T | None]) -> T:
        """Wait for entries until ``condition`` gives something other than ``None``."""
        async with self._grown:
            while (found := condition()) is None:
                await self._grown.wait()
            return found

    # ---- statements, blobs, reports ---------------------------------------------------------

    async def say(self, statement: Statement) -> int:
        """Sign a statement and hand it in; returns the index of its entry.

        Raises:
            ProtocolError: the coordinator refuses it.
        """
        nonce = Unsigned(secrets.randbits(64))
        message = Message(self.network, self.party, nonce, statement)
        key = self.context.identity.signing_key
        signed = SignedMessage(message, sign(key, Domain.MESSAGE, message))
        return await self.remote.log.append(encode(signed))

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

    async def fetch(self, blob: Digest) -> None:
        """Have a blob in the local store."""
        await self.remote.blobs.download(self.context.blobs, blob, MAX_BLOB_BYTES)

    async def fetch_job(self, job: Job) -> None:
        """Have the program, the initial state and the data of a job."""
        parts = job.artifacts
        for blob in (parts.program, parts.state, *parts.data):
            await self.fetch(blob)

    async def upload(self, blob: Digest) -> None:
        """Put a blob of the local store into the coordinator's."""
        await self.remote.blobs.upload(self.context.blobs, blob)

    async def report(
        self, job: JobId, step: int, loss: float | None, rate: float, activity: str
    ) -> None:
        """Tell how far the work on a job is; reports in quick succession are left out."""
        now = asyncio.get_running_loop().time()
        if now - self._reported.get(job, 0.0) < REPORT_S:
            return
        self._reported[job] = now
        progress = Progress(Digest(job), self.name, step, loss, rate, activity)
        try:
            await self.remote.jobs.report(progress)
        except IdenticError as error:
            self.log.debug("progress not reported", problem=str(error))
