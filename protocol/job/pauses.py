"""What the coordinator's absence changes about jobs: their clocks, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from identic.protocol.dispute.clocks import Pause
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Millis
from identic.protocol.job.state import Job


def check_pause(before: Millis, pause: Pause) -> None:
    """Refuse a pause that is none, or that began before the log's last entry.

    Args:
        before: time of that entry.
        pause: what the next entry says.

    Raises:
        ProtocolError: JOB-27.
    """
    # JOB-27: a pause begins at the entry before or later, and ends with its own entry.
    if not before <= pause.since < pause.at:
        raise ProtocolError(
            "JOB-27",
            Code.OUT_OF_RANGE,
            got=f"a pause from {pause.since} to {pause.at}",
            want=f"from {before} on",
        )


def after_pause(job: Job, pause: Pause) -> Job:
    """The job after a pause: what it awaits may take as much longer, and so may entry."""

    def later(time: Millis | None) -> Millis | None:
        return None if time is None else Millis(time + pause.length_ms)

    contest = job.contest
    if contest is not None:
        contest = replace(contest, entry_until=Millis(contest.entry_until + pause.length_ms))
    ask = job.ask
    if ask is not None:
        began, ends = (Millis(time + pause.length_ms) for time in (ask.at, ask.deadline))
        ask = replace(ask, at=began, deadline=ends)
    # JOB-27: all clocks of a job are moved on.
    return replace(
        job,
        deadline=later(job.deadline),
        entry_until=later(job.entry_until),
        contest=contest,
        ask=ask,
    )
