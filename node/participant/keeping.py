"""What a party keeps on its disk: of a run's states as many as fit, and nothing of what is over.

* While a run goes on its states stay within ``limits.states_bytes``, and leave room for the next
  ones; the states that stay are spread evenly, so that any step is near to one.
* When a job is over, or an attempt at it, whatever was stored for it is removed, unless another
  job of the board names the same blob.

A node that is the coordinator as well shares its store with it, and leaves both to the
coordinator. Spec: docs/spec/execution.md (EXE-12).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from identic.node.blobs import Blobs
from identic.node.coordinator.board import Board
from identic.node.logging import get_logger
from identic.node.participant.runs import SPACE
from identic.node.storage.base import Storage
from identic.node.worker.frames import OwnRun, StoredState
from identic.protocol.encoding import decode
from identic.protocol.ids import Digest, JobId
from identic.protocol.job.state import Job

NEXT_BLOBS = 3
"""Blobs as large as a state that a run may store next: a state, the last one, and the model."""

log = get_logger("keeping")


@dataclass(frozen=True)
class Record:
    """An own run in the storage."""

    name: bytes
    job: JobId
    attempt: int
    run: OwnRun


def sparse(marks: Sequence[int], free: Collection[int], most: int) -> tuple[int, ...]:
    """The marks to keep, when no more than ``most`` are to be kept.

    Args:
        marks: in order.
        free: those that may go; the first and the last never do.
        most: how many are to be left, if enough may go.
    """
    kept = list(marks)
    while len(kept) > most:
        gaps = [(kept[i + 1] - kept[i - 1], i) for i in range(1, len(kept) - 1) if kept[i] in free]
        if not gaps:
            break
        # EXE-12: the state goes that leaves the smallest gap.
        del kept[min(gaps)[1]]
    return tuple(kept)


def nearer(job: Job, run: OwnRun, disputed: int) -> StoredState | None:
    """The solver's stored state nearest before a mark, if one's own run has none so near.

    The run must have its root.

    Args:
        job: as it is now.
        run: one's own.
        disputed: the mark.
    """
    own = max((s.mark for s in run.stored if s.mark < disputed), default=0)
    there = [
        s
        for s in job.stored
        if own < s.mark < min(disputed, len(run.roots))
        and job.marks[s.mark].state_root == run.roots[s.mark]
    ]
    nearest = max(there, key=lambda s: s.mark, default=None)
    return None if nearest is None else StoredState(nearest.mark, nearest.blob)


class Keeping:
    """What one node keeps for its parts in jobs."""

    def __init__(
        self, storage: Storage, blobs: Blobs, states_bytes: int, *, shared: bool = False
    ) -> None:
        """Remove nothing yet.

        Args:
            storage: where own runs are noted.
            blobs: the node's store.
            states_bytes: most bytes of stored states of one run.
            shared: whether the store is a coordinator's, too.
        """
        self._storage = storage
        self._blobs = blobs
        self._states_bytes = states_bytes
        self._shared = shared

    def thinned(self, job: Job, run: OwnRun, free: Collection[int]) -> OwnRun:
        """The run with as many stored states as there is room for; the others are removed.

        Args:
            job: whose run.
            run: all of it.
            free: marks whose states may go.

        Raises:
            LocalError: the disk does not do its part.
        """
        own = tuple(s for s in run.stored if s.mark)
        size = max((self._size(s.blob) for s in own), default=0)
        if self._shared or not size:
            return run
        short = max(0, NEXT_BLOBS * size - self._blobs.room_bytes)
        most = min(self._states_bytes // size, len(own) - -(-short // size))
        marks = sorted(int(s.mark) for s in run.stored)
        kept = set(sparse(marks, free, 1 + max(1, most)))
        thin = replace(run, stored=tuple(s for s in run.stored if int(s.mark) in kept))
        gone = {s.blob for s in run.stored} - {s.blob for s in thin.stored}
        used = {s.blob for r in self._records() if r.job != job.id for s in r.run.stored}
        for blob in gone - used:
            self._blobs.remove(blob)
        if gone:
            log.info("states let go", job=job.id.name, states=len(gone), kept=len(thin.stored))
        return thin

    def let_go(self, board: Board) -> int:
        """Remove what was stored for jobs and attempts that are over; how many runs those were.

        Raises:
            LocalError: the disk does not do its part.
        """
        if self._shared:
            return 0
        records = list(self._records())
        over = [r for r in records if _over(board.jobs.get(r.job), r)]
        if not over:
            return 0
        used = {s.blob for r in records if r not in over for s in r.run.stored}
        used |= {blob for job in board.jobs.values() if not job.phase.over for blob in named(job)}
        for record in over:
            job = board.jobs[record.job]
            mine = {s.blob for s in record.run.stored} | set(named(job))
            for blob in mine - used:
                self._blobs.remove(blob)
            self._storage.put(SPACE, record.name, None)
            log.info("job let go", job=job.id.name, attempt=record.attempt)
        return len(over)

    def _records(self) -> Iterator[Record]:
        for name, value in self._storage.items(SPACE):
            _, job, attempt = name.decode().split("/")
            yield Record(name, JobId(bytes.fromhex(job)), int(attempt), decode(OwnRun, value))

    def _size(self, blob: Digest) -> int:
        path = self._blobs.path(blob)
        return path.stat().st_size if path.exists() else 0


def named(job: Job) -> Iterator[Digest]:
    """Blobs that the log names as parts or results of a job, the program excepted.

    Programs stay: whoever reads the log again needs those of jobs with disputes.
    """
    yield job.artifacts.state
    yield from job.artifacts.data
    yield from (stored.blob for stored in job.stored)
    if job.finish is not None:
        yield job.finish.state
        yield job.finish.model


def _over(job: Job | None, record: Record) -> bool:
    return job is not None and (job.phase.over or job.attempt != record.attempt)
