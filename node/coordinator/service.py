"""The coordinator in the event loop: calls in order, clocks, and news for whoever watches.

One message at a time is judged and appended, in a thread of its own, so that the services
always answer; a caller that goes away does not stop what was begun. Slow checks of blobs run
before, several at once, those of postings apart from those of runs. Answers the job, log and
dispute services of ``node/rpc/handlers.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeVar

from identic.node.coordinator.heart import BEAT_MS
from identic.node.coordinator.host import Clock, Host
from identic.node.coordinator.inspection import Inspector
from identic.node.coordinator.screens import (
    dispute_detail,
    dispute_summary,
    job_detail,
    job_summary,
)
from identic.node.views import (
    Consistency,
    DisputeDetail,
    DisputeSummary,
    Inclusion,
    JobDetail,
    JobSummary,
    PartyProgress,
    Progress,
    SignedHead,
)
from identic.protocol.encoding import decode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Digest, Millis, PartyId
from identic.protocol.job.messages import DisputeMove, SignedMessage, SubmitJob
from identic.protocol.job.terms import job_id

MAX_PROGRESS = 4_096
"""Progress reports kept, over all jobs."""
INSPECTIONS = 2
"""Statements of solvers whose blobs are checked at the same time; of postings, one."""
LONGEST_SLEEP_S = 60.0
RETRY_S = 1.0

T = TypeVar("T")


class Coordinator:
    """The services of a coordinator over its host."""

    def __init__(self, host: Host, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._order = ThreadPoolExecutor(max_workers=1, thread_name_prefix="board")
        # Threads of its own: those of the loop may all be at the blobs of somebody.
        self._quick = ThreadPoolExecutor(max_workers=2, thread_name_prefix="messages")
        self._slow = ThreadPoolExecutor(max_workers=INSPECTIONS + 1, thread_name_prefix="blobs")
        self._begun: set[asyncio.Task[object]] = set()
        self._news = asyncio.Condition()
        self._inspections = asyncio.Semaphore(INSPECTIONS)
        self._postings = asyncio.Semaphore(1)
        self._progress: dict[tuple[Digest, PartyId, str], PartyProgress] = {}

    @property
    def host(self) -> Host:
        """Board and log."""
        return self._host

    # ---- messages ---------------------------------------------------------------------------

    async def append(self, peer: PartyId, message: bytes) -> int:
        """Judge and append a signed message; return its index, the old one when repeated."""
        return await self._take(peer, _read(message))

    async def submit_job(self, peer: PartyId, message: bytes) -> tuple[Digest, int]:
        """Judge and append a posting; return the job's id and the index of the entry."""
        signed = _read(message)
        said = signed.message.statement
        # JOB-5: a service takes the statements that it is for.
        if not isinstance(said, SubmitJob):
            raise _other(said, "SubmitJob")
        return Digest(job_id(said.terms)), await self._take(peer, signed)

    async def submit_move(self, peer: PartyId, message: bytes) -> int:
        """Judge and append a move; return the index of the entry."""
        signed = _read(message)
        # JOB-5: a service takes the statements that it is for.
        if not isinstance(signed.message.statement, DisputeMove):
            raise _other(signed.message.statement, "DisputeMove")
        return await self._take(peer, signed)

    async def _take(self, peer: PartyId, signed: SignedMessage) -> int:
        host = self._host
        loop = asyncio.get_running_loop()
        known = await loop.run_in_executor(self._quick, host.find, signed)
        if known is not None:
            return known
        if signed.message.party == peer:
            await self._in_order(lambda: host.welcome(peer))
        slow = Inspector.concerns(signed.message.statement)
        async with self._turn(signed):
            await loop.run_in_executor(self._slow if slow else self._quick, host.inspect, signed)
        return await self._in_order(lambda: host.submit(signed))

    def _turn(self, signed: SignedMessage) -> AbstractAsyncContextManager[object]:
        """Whose checks a statement's own have to wait for."""
        said = signed.message.statement
        if isinstance(said, SubmitJob):
            # Anybody may post what takes long to check, so postings wait for each other only.
            return self._postings
        # JOB-20: a statement that concerns no blob waits for no check of blobs.
        return self._inspections if Inspector.concerns(said) else nullcontext()

    async def _in_order(self, action: Callable[[], T]) -> T:
        """Do something to the board after everything before it, whatever becomes of the caller."""
        task = asyncio.create_task(self._perform(action))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return await asyncio.shield(task)

    async def _perform(self, action: Callable[[], T]) -> T:
        def both() -> T:
            self._host.wake()
            result = action()
            self._host.settle_duties()
            return result

        size = self._host.log.size
        try:
            return await asyncio.get_running_loop().run_in_executor(self._order, both)
        finally:
            if self._host.log.size != size:
                async with self._news:
                    self._news.notify_all()

    async def close(self) -> None:
        """Finish what was begun; nothing may be asked afterwards."""
        await asyncio.gather(*self._begun, return_exceptions=True)
        for threads in (self._order, self._quick, self._slow):
            threads.shutdown()

    # ---- clocks -----------------------------------------------------------------------------

    async def tick(self) -> int:
        """Append what is owed by now; return how many entries that were."""
        return await self._in_order(self._host.settle_duties)

    async def forget(self, keep_ms: int) -> int:
        """Remove data and states of jobs that ended longer ago; return how many blobs."""
        # A posting whose blobs were checked is on the board before anything is removed.
        async with self._postings:
            return await self._in_order(lambda: self._host.forget(keep_ms))

    async def run(self) -> None:
        """Call time whenever a clock has run down, until cancelled."""
        while True:
            await self.tick()
            await self._until_deadline()

    async def _until_deadline(self) -> None:
        host, seconds = self._host, LONGEST_SLEEP_S
        deadline = host.next_deadline()
        if deadline is not None:
            left = (int(deadline) - self._clock()) / 1000
            # What is overdue after a tick is in trouble, and is tried again at leisure.
            seconds = min(left, BEAT_MS / 1000) if left > 0 else RETRY_S
        size = host.log.size
        async with self._news:
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait_for(lambda: host.log.size != size)
            except TimeoutError:
                return

    # ---- the log ----------------------------------------------------------------------------

    async def watch(self, peer: PartyId, from_index: int) -> AsyncIterator[tuple[int, bytes]]:
        """Yield index and encoding of every entry from an index on, without an end."""
        del peer
        log, index = self._host.log, from_index
        # JOB-4: who watches starts within the log or at its end.
        if index > log.size:
            raise ProtocolError("JOB-4", Code.OUT_OF_RANGE, got=index, want=f"at most {log.size}")
        while True:
            if index < log.size:
                for data in await asyncio.to_thread(log.read, index):
                    yield index, data
                    index += 1
                continue
            async with self._news:
                await self._news.wait_for(lambda at=index: at < log.size)  # type: ignore[misc]

    async def head(self, peer: PartyId) -> SignedHead:
        """Return the newest signed head."""
        del peer
        host = self._host
        return await self._in_order(
            lambda: host.log.head(Millis(max(self._clock(), int(host.board.now))))
        )

    async def inclusion(self, peer: PartyId, index: int, size: int) -> Inclusion:
        """Return an entry with its path in the log of a size, 0 for the present one."""
        del peer
        return await asyncio.to_thread(self._host.log.inclusion, index, size)

    async def consistency(self, peer: PartyId, first: int, second: int) -> Consistency:
        """Return the proof from one size to another, 0 for the present one."""
        del peer
        return await asyncio.to_thread(self._host.log.consistency, first, second)

    # ---- screens ----------------------------------------------------------------------------

    async def list_jobs(self, peer: PartyId, limit: int, phase: str) -> Sequence[JobSummary]:
        """Return at most ``limit`` jobs, newest first, in one phase or, with "", in any."""
        del peer
        board = self._host.board
        jobs = [
            job for job in reversed(list(board.jobs.values())) if phase in ("", job.phase.value)
        ]
        return [job_summary(board, job) for job in jobs[:limit]]

    async def get_job(self, peer: PartyId, job: Digest) -> JobDetail:
        """Return all about one job."""
        del peer
        board = self._host.board
        parties = [kept for (name, _, _), kept in self._progress.items() if name == job]
        return job_detail(board, board.job(job), tuple(parties))

    async def report_progress(self, peer: PartyId, progress: Progress) -> None:
        """Keep the last report of a party."""
        self._host.board.job(progress.job_id)
        key = (progress.job_id, peer, progress.role)
        self._progress.pop(key, None)
        if len(self._progress) >= MAX_PROGRESS:
            del self._progress[next(iter(self._progress))]
        self._progress[key] = PartyProgress(
            peer,
            progress.role,
            progress.step,
            progress.loss,
            progress.rate,
            progress.activity,
            self._clock(),
        )

    async def get_dispute(self, peer: PartyId, dispute: Digest) -> DisputeDetail:
        """Return all about one dispute."""
        del peer
        board = self._host.board
        return dispute_detail(board, board.case(dispute))

    async def list_disputes(
        self, peer: PartyId, job: Digest | None, limit: int, *, open_only: bool
    ) -> Sequence[DisputeSummary]:
        """Return at most ``limit`` disputes, newest first."""
        del peer
        cases = [
            case
            for case in reversed(list(self._host.board.cases.values()))
            if (job is None or case.job == job) and (case.played or not open_only)
        ]
        return [dispute_summary(case) for case in cases[:limit]]


def _read(message: bytes) -> SignedMessage:
    return decode(SignedMessage, message)


def _other(said: object, want: str) -> ProtocolError:
    return ProtocolError("JOB-5", Code.UNSUPPORTED, got=type(said).__name__, want=want)
