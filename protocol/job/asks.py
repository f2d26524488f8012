"""Stored states that are asked for: the solver stores them again, or is late.

Asking costs the solver little and the asker nothing, so it is for what has been lost only: the
coordinator refuses it for a state that it has, and a party may ask twice an attempt.

Spec: docs/spec/jobs.md (JOB-30 to JOB-32).
"""

from __future__ import annotations

from dataclasses import replace

from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.ids import Digest, Millis
from identic.protocol.job.checks import check_attempt, check_sender
from identic.protocol.job.messages import Ask, Served
from identic.protocol.job.state import Awaiting, Event, Job, OpenAsk, Outcome

MAX_ASKS = 8
"""States that may be asked for in an attempt."""
MAX_ASKS_OF_PARTY = 2
"""States that one party may ask for in an attempt."""


def on_ask(job: Job, event: Event, said: Ask) -> Outcome:
    """A party waits for a stored state; the solver has to store it again."""
    check_attempt(job, said.attempt)
    party = event.party
    # JOB-30: a state is asked for by a party that does not have to store it.
    if party is None or party == job.solver:
        raise ProtocolError("JOB-30", Code.FORBIDDEN, got=party, want="another than the solver")
    # JOB-30: it is one that the solver has stored.
    blob_of(job, int(said.mark))
    # JOB-30: one state is asked for at a time.
    if job.ask is not None:
        raise IllegalMove("JOB-30", got=f"mark {said.mark}", want=f"mark {job.ask.mark} first")
    # JOB-32: asking has a limit for each party and for an attempt.
    if job.asked.count(party) >= MAX_ASKS_OF_PARTY or len(job.asked) >= MAX_ASKS:
        raise ProtocolError(
            "JOB-32",
            Code.FORBIDDEN,
            got=f"{job.asked.count(party)} of {len(job.asked)} states asked for",
            want=f"below {MAX_ASKS_OF_PARTY} of {MAX_ASKS}",
        )
    ask = OpenAsk(party, said.mark, event.at, Millis(event.at + job.terms.silence_ms))
    return replace(job, ask=ask, asked=(*job.asked, party)), ()


def on_served(job: Job, event: Event, said: Served) -> Outcome:
    """The solver has stored the state again; clocks go on."""
    check_sender(event, job.solver, "solver")
    check_attempt(job, said.attempt)
    ask = job.ask
    # JOB-31: what is stored again is what was asked for.
    if ask is None or said.mark != ask.mark:
        want = "nothing" if ask is None else f"mark {ask.mark}"
        raise ProtocolError("JOB-31", Code.MISMATCH, got=f"mark {said.mark}", want=want)
    served = replace(job, ask=None)
    if job.awaiting is Awaiting.MARKS:
        return served, ()
    waited = min(event.at, ask.deadline) - ask.at

    def later(time: Millis | None) -> Millis | None:
        return None if time is None else Millis(time + waited)

    contest = job.contest
    if contest is not None:
        contest = replace(contest, entry_until=Millis(contest.entry_until + waited))
    # JOB-31: clocks stood still meanwhile, for those who could not go on; so did the time of entry.
    return (
        replace(
            served,
            deadline=later(job.deadline),
            entry_until=later(job.entry_until),
            contest=contest,
        ),
        (),
    )


def blob_of(job: Job, mark: int) -> Digest:
    """SHA-256 of the state that the solver has stored at a mark.

    Raises:
        ProtocolError: JOB-30, it has stored none there.
    """
    found = next((s.blob for s in job.stored if s.mark == mark), None)
    if found is None:
        raise ProtocolError(
            "JOB-30",
            Code.OUT_OF_RANGE,
            got=f"mark {mark}",
            want=[int(s.mark) for s in job.stored],
        )
    return found
