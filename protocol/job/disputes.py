"""The job machine around a dispute: what opens one, and what its ruling changes."""

from __future__ import annotations

from dataclasses import replace

from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.ids import Count, Millis, PartyId
from identic.protocol.job.checks import await_next, check_attempt, reopen
from identic.protocol.job.entries import DisputeOpened, Loser, Ruled, Verdicts
from identic.protocol.job.messages import Challenge, DisputeId, next_dispute_id
from identic.protocol.job.state import Awaiting, Event, Job, OpenDispute, Outcome, Phase
from identic.protocol.settlement.ledger import Transaction
from identic.protocol.settlement.movements import lock_bond, release_bond, slash_bond

MAX_UNTOLD = 3
"""Challenges of a party and an attempt that may end without an answer."""


def on_challenge(job: Job, event: Event, said: Challenge) -> Outcome:
    """A party claims another run log; its bond is locked and the job's clocks stand still."""
    check_attempt(job, said.attempt)
    if event.message is None:
        raise RuntimeError("a challenge comes in a message")
    party, dispute = event.party, DisputeId(event.message)
    vouching = (job.solver, *job.attesters)
    # JOB-16: a challenge is against a party that vouches for the run, by one that does not.
    if party is None or said.against not in vouching or party in vouching:
        raise ProtocolError(
            "JOB-16",
            Code.FORBIDDEN,
            got=f"{party} against {said.against}",
            want="a doubter against a voucher",
        )
    # JOB-16: a challenge claims another log over marks that are committed, mark 0 not alone.
    if said.head.job != job.id or not 2 <= said.head.marks <= len(job.marks):
        raise ProtocolError(
            "JOB-16",
            Code.OUT_OF_RANGE,
            got=said.head,
            want=f"2 to {len(job.marks)} marks of {job.id}",
        )
    if said.head == job.head_at(said.head.marks):
        raise ProtocolError("JOB-16", Code.MISMATCH, got="the solver's own log", want="another one")
    # JOB-16: a party whose challenges nobody could tell three times has no more in the attempt.
    if job.untold.count(party) >= MAX_UNTOLD:
        raise ProtocolError(
            "JOB-16",
            Code.FORBIDDEN,
            got=f"a challenge after {MAX_UNTOLD} that nobody could tell",
            want="the next attempt",
        )
    opened = OpenDispute(dispute, said.against, party, said.head, bond=dispute)
    disputed = replace(
        job, phase=Phase.DISPUTED, dispute=opened, disputes=(*job.disputes, dispute), deadline=None
    )
    return disputed, (lock_bond(dispute, 0, party, job.terms.prices.challenger_bond),)


def opening(job: Job) -> DisputeOpened:
    """The entry that sets up the dispute of a job that has one."""
    dispute = job.dispute
    if dispute is None:
        raise RuntimeError("a job without a dispute")
    return DisputeOpened(
        dispute.id,
        job.id,
        job.attempt,
        dispute.defender,
        dispute.challenger,
        job.head_at(dispute.head.marks),
        dispute.head,
        job.step_ms,
        Count(1),
    )


def on_opened(job: Job, _: Event, said: DisputeOpened) -> Outcome:
    """The coordinator has set the dispute up as it was called for."""
    check_attempt(job, said.attempt)
    dispute, want = _dispute(job, said.dispute), opening(job)
    # JOB-17: a dispute is opened once, about the claims that were made.
    if dispute.opened or said != want:
        raise IllegalMove("JOB-17", got=said, want=want)
    return replace(job, dispute=replace(dispute, opened=True)), ()


def on_ruled(job: Job, event: Event, said: Ruled) -> Outcome:
    """The ruling decides over bonds, and over the run when that is wrong."""
    check_attempt(job, said.attempt)
    dispute = _dispute(job, said.dispute)
    # JOB-18: somebody loses exactly when the referee can tell.
    if (said.loser is Loser.NOBODY) != (said.verdict is Verdicts.CANNOT_TELL):
        raise ProtocolError("JOB-18", Code.MISMATCH, got=said.loser.name, want=said.verdict.name)
    if said.loser is Loser.DEFENDER:
        return _defender_fell(job, dispute, event.at)
    bond = job.terms.prices.challenger_bond
    if said.loser is Loser.CHALLENGER:
        post = slash_bond(dispute.bond, 0, dispute.challenger, bond, dispute.defender)
    else:
        post = release_bond(dispute.bond, 0, dispute.challenger, bond)
        job = replace(job, untold=(*job.untold, dispute.challenger))
    return _end_challenge(job, dispute, event.at, (post,))


def _defender_fell(job: Job, dispute: OpenDispute, at: Millis) -> Outcome:
    """Slash the defender; the other vouchers answer the same challenge, the solver first."""
    prices, party = job.terms.prices, dispute.defender
    is_solver = party == job.solver
    bond = prices.solver_bond if is_solver else prices.verifier_bond
    slash = slash_bond(job.id, job.attempt, party, bond, dispute.challenger)
    left = replace(job, verifiers=tuple(s for s in job.verifiers if s.party != party))
    fell = dispute.solver_fell or is_solver
    rest = dispute.rest if dispute.id != dispute.bond else _others(left, fell=fell)
    # JOB-18: who vouches for the run answers for itself, since another may lose on purpose.
    if rest:
        name = next_dispute_id(dispute.id, rest[0])
        follow = replace(
            dispute, id=name, defender=rest[0], rest=rest[1:], solver_fell=fell, opened=False
        )
        return replace(left, dispute=follow, disputes=(*job.disputes, name)), (slash,)
    back = release_bond(dispute.bond, 0, dispute.challenger, prices.challenger_bond)
    return _end_challenge(left, replace(dispute, solver_fell=fell), at, (slash, back))


def _others(job: Job, *, fell: bool) -> tuple[PartyId, ...]:
    if fell or job.solver is None:
        return job.attesters
    return (job.solver, *job.attesters)


def _end_challenge(
    job: Job, dispute: OpenDispute, at: Millis, posts: tuple[Transaction, ...]
) -> Outcome:
    """Take the run up again, or end the attempt of a solver that fell."""
    if dispute.solver_fell and job.solver is not None:
        kept = tuple(seat.party for seat in job.verifiers)
        fresh, released = reopen(job, job.solver, kept)
        return fresh, (*posts, *released)
    seats = job.verifiers
    if job.awaiting is Awaiting.REVEALS and all(s.verdict or s.late for s in seats):
        job = replace(job, awaiting=Awaiting.WINDOW)
    return resume(job, at), posts


def resume(job: Job, at: Millis) -> Job:
    """Go on where the dispute interrupted, with the whole allowance from now on."""
    # JOB-17: after a dispute the clock of whatever is awaited starts anew.
    phase = Phase.TRAINING if job.finish is None else Phase.VERIFYING
    return await_next(replace(job, phase=phase, dispute=None), job.awaiting, at)


def _dispute(job: Job, named: DisputeId) -> OpenDispute:
    # JOB-17: a job has one dispute at a time, and what is said is about that one.
    if job.dispute is None or job.dispute.id != named:
        want = None if job.dispute is None else job.dispute.id
        raise ProtocolError("JOB-17", Code.MISMATCH, got=f"dispute {named}", want=f"dispute {want}")
    return job.dispute
