"""What the coordinator's store may let go of some time after the end of jobs: data and states.

Programs, models, receipts and transcripts stay for ever: the log is read again with the
programs, and the others are what a job is about. Spec: docs/spec/execution.md (EXE-12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from identic.node.coordinator.board import Board
from identic.protocol.ids import Digest
from identic.protocol.job.state import Job

EndedAt = Callable[[Job], int]
"""Unix time in milliseconds at which a job ended, or of what was said about it last."""


def forgettable(board: Board, ended_at: EndedAt, before: int) -> set[Digest]:
    """Blobs that only jobs name which ended before a time.

    Args:
        board: everything that the log says.
        ended_at: tells when a job ended.
        before: Unix time in milliseconds.
    """
    old = {job.id for job in board.jobs.values() if job.phase.over and ended_at(job) < before}
    gone = {blob for name in old for blob in _bulky(board.jobs[name])}
    kept = {blob for job in board.jobs.values() for blob in _kept(job)}
    for job in board.jobs.values():
        if job.id not in old:
            kept.update(_bulky(job))
    # EXE-12: what another job names, or a job keeps for ever, stays.
    return gone - kept


def _bulky(job: Job) -> Iterator[Digest]:
    """Initial state, data and states of a job."""
    yield job.artifacts.state
    yield from job.artifacts.data
    yield from (stored.blob for stored in job.stored)
    if job.finish is not None:
        yield job.finish.state


def _kept(job: Job) -> Iterator[Digest]:
    """What is never let go."""
    yield job.artifacts.program
    if job.finish is not None:
        yield job.finish.model
    if job.receipt is not None:
        yield job.receipt
