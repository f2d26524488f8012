"""The job machine from the posting to the finished run."""

from __future__ import annotations

from dataclasses import replace

from identic.protocol.commitments import run_leaf
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Count, Millis
from identic.protocol.job.checks import (
    await_next,
    check_attempt,
    check_awaiting,
    check_sender,
    expire,
    reopen,
)
from identic.protocol.job.messages import Abandon, AcceptJob, CancelJob, Commit, Finish, Stored
from identic.protocol.job.run import RunHead
from identic.protocol.job.state import Awaiting, Event, Job, MarkRecord, Outcome, Phase, StoredState
from identic.protocol.settlement.movements import charge_late, lock_bond

MAX_MARKS = 2048
"""Marks of one commitment."""
LOSS_LIMIT = 1 << 32


def on_cancel(job: Job, event: Event, _: CancelJob) -> Outcome:
    """The submitter takes the job back; the escrow returns."""
    check_sender(event, job.terms.submitter, "submitter")
    return expire(job, ())


def on_accept(job: Job, event: Event, said: AcceptJob) -> Outcome:
    """A solver takes the job; its bond is locked."""
    check_attempt(job, said.attempt)
    party = event.party
    # JOB-8: the solver is neither the submitter nor a party that failed at the job before.
    if party is None or party == job.terms.submitter or party in job.barred:
        raise ProtocolError("JOB-8", Code.FORBIDDEN, got=party, want="a party new to the job")
    taken = replace(job, phase=Phase.TRAINING, solver=party, accepted_at=event.at)
    bond = lock_bond(job.id, job.attempt, party, job.terms.prices.solver_bond)
    return await_next(taken, Awaiting.MARKS, event.at), (bond,)


def on_commit(job: Job, event: Event, said: Commit) -> Outcome:
    """The run log grows by the next marks."""
    check_sender(event, job.solver, "solver")
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.MARKS)
    room = job.terms.marks - len(job.marks)
    # JOB-9: a commitment goes on where the last one ended and stays within the run.
    if said.first_mark != len(job.marks) or not 1 <= len(said.marks) <= min(room, MAX_MARKS):
        raise ProtocolError(
            "JOB-9",
            Code.MISMATCH,
            got=f"{len(said.marks)} marks from {said.first_mark}",
            want=f"1 to {min(room, MAX_MARKS)} marks from {len(job.marks)}",
        )
    records, frontier = list(job.marks), job.frontier
    for mark in said.marks:
        want = job.terms.step_of(len(records))
        # JOB-9: each mark stands at its step and carries a float32 loss.
        if mark.step != want or mark.loss >= LOSS_LIMIT:
            raise ProtocolError(
                "JOB-9",
                Code.MISMATCH,
                got=f"step {mark.step}, loss {mark.loss}",
                want=f"step {want}",
            )
        frontier = frontier.append(run_leaf(len(records), mark.step, mark.state_root))
        records.append(MarkRecord(mark.step, mark.state_root, mark.loss))
    grown = replace(job, marks=tuple(records), frontier=frontier, committed_at=event.at)
    _check_head(grown, said.head)
    return await_next(grown, Awaiting.MARKS, event.at), ()


def on_stored(job: Job, event: Event, said: Stored) -> Outcome:
    """A checkpoint of the run is in the blob store."""
    check_sender(event, job.solver, "solver")
    check_attempt(job, said.attempt)
    # JOB-11: a stored state belongs to a committed checkpoint that is not stored yet.
    known = {stored.mark for stored in job.stored}
    if int(said.mark) not in job.checkpoints or said.mark >= len(job.marks) or said.mark in known:
        raise ProtocolError(
            "JOB-11", Code.MISMATCH, got=f"mark {said.mark}", want="a committed checkpoint, once"
        )
    return replace(job, stored=(*job.stored, StoredState(said.mark, said.blob))), ()


def on_finish(job: Job, event: Event, said: Finish) -> Outcome:
    """The run is complete and every checkpoint stored; the verifiers are to judge."""
    check_sender(event, job.solver, "solver")
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.MARKS)
    # Stored states are checkpoints, each once (JOB-11), so that counting them is enough.
    missing = len(job.checkpoints) - len(job.stored)
    # JOB-12: a run is finished with its last mark, and with every checkpoint stored.
    if len(job.marks) != job.terms.marks or missing:
        raise ProtocolError(
            "JOB-12",
            Code.MISMATCH,
            got=f"{len(job.marks)} marks, {missing} states not stored",
            want=f"{job.terms.marks} marks, every checkpoint stored",
        )
    _check_head(job, said.head)
    phase = job.phase if job.phase is Phase.DISPUTED else Phase.VERIFYING
    final = StoredState(Count(job.terms.last_mark), said.state)
    done = replace(
        job,
        phase=phase,
        finish=said,
        stored=(*job.stored, final),
        trained_ms=Millis(event.at - job.accepted_at),
    )
    return await_next(done, Awaiting.VERDICTS, event.at), ()


def on_abandon(job: Job, event: Event, said: Abandon) -> Outcome:
    """The solver gives up: late at once, and the job is open again."""
    check_sender(event, job.solver, "solver")
    check_attempt(job, said.attempt)
    return solver_late(job)


def solver_late(job: Job) -> Outcome:
    """Part of the late solver's bond goes to the submitter; the next attempt begins."""
    if job.solver is None:
        raise RuntimeError("a job that trains has a solver")
    terms = job.terms
    charge = charge_late(job.id, job.attempt, job.solver, terms.prices.solver_bond, terms.submitter)
    fresh, posts = reopen(job, job.solver, tuple(seat.party for seat in job.verifiers))
    return fresh, (charge, *posts)


def _check_head(job: Job, claimed: RunHead) -> None:
    # JOB-3: a head is the root over all marks of the run so far.
    if claimed != job.head:
        raise ProtocolError("JOB-3", Code.MISMATCH, got=claimed, want=job.head)
