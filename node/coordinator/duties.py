"""What the coordinator owes next, from the board and the time alone.

Since nothing has to be remembered, a coordinator that was killed between two entries goes on
with exactly the entry that it would have written.

Spec: docs/spec/jobs.md (JOB-4, JOB-20).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case
from identic.protocol.ids import Millis
from identic.protocol.job.entries import Ruled, TimeCalled
from identic.protocol.job.machine import due
from identic.protocol.job.state import Job


@dataclass(frozen=True)
class Duty:
    """An entry that is owed."""

    kind: type
    """Class of the entry."""
    job: Job
    case: Case | None = None
    """The dispute, when the entry is about one."""


def owed(board: Board, at: int) -> Iterator[Duty]:
    """What is owed at Unix time ``at`` (ms): the next entry of each job that has one."""
    for job in board.jobs.values():
        if not job.phase.over:
            duty = _next(board, job, at)
            if duty is not None:
                yield duty


def _next(board: Board, job: Job, at: int) -> Duty | None:
    played = _played(board, job)
    names = {case.id for case in played}
    for name in board.ended:
        if name in names:
            return Duty(Ruled, job, board.cases[name])
    for case in played:
        if at > case.dispute.deadline:
            return Duty(TimeCalled, job, case)
    kind = due(job, at, can_draw=len(board.pool(job)) >= job.terms.verifiers)
    return None if kind is None else Duty(kind, job)


def next_deadline(board: Board) -> Millis | None:
    """Unix time at which something may be owed next, if nobody says anything before."""
    times = []
    for job in board.jobs.values():
        if job.phase.over:
            continue
        if job.due_at is not None:
            times.append(int(job.due_at))
        # A side is late after the deadline, not at it.
        times += [int(c.dispute.deadline) + 1 for c in _played(board, job) if not c.over]
    return Millis(min(times)) if times else None


def _played(board: Board, job: Job) -> list[Case]:
    """The disputes that are played about a job."""
    games = () if job.contest is None else job.contest.games
    return [board.cases[game.id] for _, game in games if game.opened]
