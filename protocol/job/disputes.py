"""The job machine around a dispute: what opens one, and what its ruling changes."""

from __future__ import annotations

from dataclasses import replace

from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.ids import Millis, PartyId
from identic.protocol.job.checks import await_next, check_attempt, reopen
from identic.protocol.job.entries import DisputeOpened, Loser, Ruled, Verdicts
from identic.protocol.job.messages import Challenge, DisputeId
from identic.protocol.job.state import Awaiting, Event, Job, OpenDispute, Outcome, Phase
from identic.protocol.settlement.movements import lock_bond, release_bond, slash_bond


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
    opened = OpenDispute(dispute, said.against, party, said.head)
    disputed = replace(
        job, phase=Phase.DISPUTED, dispute=opened, disputes=(*job.disputes, dispute), deadline=None
    )
    return disputed, (lock_bond(dispute, 0, party, job.terms.prices.challenger_bond),)


def on_opened(job: Job, _: Event, said: DisputeOpened) -> Outcome:
    """The coordinator has set the dispute up as it was called for."""
    check_attempt(job, said.attempt)
    dispute = _dispute(job, said.dispute)
    want = DisputeOpened(
        dispute.id,
        job.id,
        job.attempt,
        dispute.defender,
        dispute.challenger,
        job.head_at(dispute.head.marks),
        dispute.head,
    )
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
    bond = job.terms.prices.challenger_bond
    back = release_bond(dispute.id, 0, dispute.challenger, bond)
    if said.loser is Loser.NOBODY:
        return resume(job, event.at), (back,)
    if said.loser is Loser.CHALLENGER:
        slash = slash_bond(dispute.id, 0, dispute.challenger, bond, dispute.defender)
        return resume(job, event.at), (slash,)
    if said.verdict is Verdicts.WRONG:
        convicted = {dispute.defender, *job.attesters, job.solver} - {None}
    else:
        # JOB-18: a party that loses by its silence falls alone.
        convicted = {dispute.defender}
    job, posts = _convict(job, event.at, dispute.challenger, convicted)
    return job, (back, *posts)


def _convict(job: Job, at: Millis, winner: PartyId, convicted: set[PartyId | None]) -> Outcome:
    """Slash the convicted; without its solver the attempt is over."""
    prices, posts = job.terms.prices, []
    if job.solver is not None and job.solver in convicted:
        posts.append(slash_bond(job.id, job.attempt, job.solver, prices.solver_bond, winner))
    posts.extend(
        slash_bond(job.id, job.attempt, seat.party, prices.verifier_bond, winner)
        for seat in job.verifiers
        if seat.party in convicted
    )
    kept = tuple(seat for seat in job.verifiers if seat.party not in convicted)
    if job.solver is not None and job.solver in convicted:
        fresh, released = reopen(job, job.solver, tuple(seat.party for seat in kept))
        return fresh, (*posts, *released)
    left = replace(job, verifiers=kept)
    if job.awaiting is Awaiting.REVEALS and all(s.verdict or s.late for s in kept):
        left = replace(left, awaiting=Awaiting.WINDOW)
    return resume(left, at), tuple(posts)


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
