"""Checks and moves that the handlers of the job machine share."""

from __future__ import annotations

from dataclasses import replace

from identic.protocol.commitments import run_leaf
from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.ids import Count, Millis, PartyId, StepIndex, Unsigned
from identic.protocol.job.run import Frontier
from identic.protocol.job.state import Awaiting, Event, Job, MarkRecord, Outcome, Phase
from identic.protocol.job.terms import JobTerms
from identic.protocol.settlement.ledger import Transaction
from identic.protocol.settlement.movements import refund, release_bond

MAX_ATTEMPTS = 8
"""Solvers that may fail at a job before it expires."""


def check_sender(event: Event, allowed: PartyId | None, role: str) -> None:
    """Refuse a statement that is for another party to make."""
    # JOB-6: a statement comes from the party whose part it is.
    if event.party is None or event.party != allowed:
        raise ProtocolError("JOB-6", Code.FORBIDDEN, got=event.party, want=f"the {role} {allowed}")


def check_attempt(job: Job, attempt: int) -> None:
    """Refuse what is about another attempt."""
    # JOB-7: a statement or entry names the present attempt.
    if attempt != job.attempt:
        raise ProtocolError(
            "JOB-7", Code.MISMATCH, got=f"attempt {attempt}", want=f"attempt {job.attempt}"
        )


def check_awaiting(job: Job, *wanted: Awaiting) -> None:
    """Refuse what the job does not wait for."""
    # JOB-5: an event comes when the job waits for it.
    if job.awaiting not in wanted:
        raise IllegalMove(
            "JOB-5",
            got=f"an event while the job awaits {job.awaiting.value}",
            want=" or ".join(state.value for state in wanted),
        )


def check_time(job: Job, at: Millis) -> None:
    """Refuse an end that is called before the clock has run down."""
    # JOB-20: time is called at the deadline or after it, and there is one.
    if job.due_at is None or at < job.due_at:
        raise IllegalMove("JOB-20", got=f"time called at {at}", want=f"not before {job.due_at}")


def allowance_ms(job: Job, awaiting: Awaiting) -> int | None:
    """Time for what is awaited (JOB-20), in milliseconds; nothing where nobody is waited for."""
    clocks = job.terms.clocks
    allowances = {
        Awaiting.MARKS: job.terms.silence_ms,
        Awaiting.VERDICTS: clocks.rerun_ms + 2 * job.trained_ms,
        Awaiting.REVEALS: clocks.rerun_ms + clocks.move_ms,
        Awaiting.WINDOW: clocks.window_ms,
    }
    return allowances.get(awaiting)


def await_next(job: Job, awaiting: Awaiting, at: Millis) -> Job:
    """Let the job wait for something, with its deadline; clocks stand still in a contest."""
    allowance = None if job.phase is Phase.DISPUTED else allowance_ms(job, awaiting)
    deadline = None if allowance is None else Millis(at + allowance)
    return replace(job, awaiting=awaiting, deadline=deadline)


def start_of_run(terms: JobTerms) -> tuple[tuple[MarkRecord, ...], Frontier]:
    """Mark 0, on which everybody agrees."""
    record = MarkRecord(StepIndex(0), terms.initial_state, Unsigned(0))
    return (record,), Frontier().append(run_leaf(0, 0, record.state_root))


def reopen(job: Job, failed: PartyId, kept: tuple[PartyId, ...]) -> Outcome:
    """End the attempt of a solver that failed; the next one begins with nothing from it.

    ``kept`` are the verifiers whose bonds go back. After the last attempt the job expires.
    """
    posts = tuple(
        release_bond(job.id, job.attempt, party, job.terms.prices.verifier_bond) for party in kept
    )
    marks, frontier = start_of_run(job.terms)
    fresh = Job(
        job.id,
        job.terms,
        job.artifacts,
        job.posted_at,
        attempt=Count(job.attempt + 1),
        marks=marks,
        frontier=frontier,
        contests=job.contests,
        disputes=job.disputes,
        barred=(*job.barred, failed),
    )
    # JOB-19: a job whose solvers failed eight times expires.
    if job.attempt >= MAX_ATTEMPTS:
        return expire(fresh, posts)
    return fresh, posts


def expire(job: Job, posts: tuple[Transaction, ...]) -> Outcome:
    """End a job without a result: the escrow goes back."""
    ended = replace(job, phase=Phase.EXPIRED, awaiting=Awaiting.NOTHING, deadline=None)
    return ended, (*posts, refund(job.id, job.terms.submitter, job.terms.escrow))
