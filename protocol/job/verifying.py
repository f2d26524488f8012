"""The job machine from the drawn verifiers to the settlement."""

from __future__ import annotations

from dataclasses import replace

from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.ids import Millis, PartyId
from identic.protocol.job.checks import (
    await_next,
    check_attempt,
    check_awaiting,
    check_time,
    expire,
)
from identic.protocol.job.contest import vouch
from identic.protocol.job.draws import draw_beacon
from identic.protocol.job.entries import BeaconDrawn, Settled, TimeCalled, VerifiersAssigned
from identic.protocol.job.messages import (
    CallTime,
    CannotTell,
    CommitVerdict,
    RevealVerdict,
    Verdict,
    verdict_digest,
)
from identic.protocol.job.state import Awaiting, Event, Job, Outcome, Phase, Seat
from identic.protocol.job.training import solver_late
from identic.protocol.settlement.ledger import Transaction
from identic.protocol.settlement.movements import lock_bond, refund, release_bond, reward


def can_verify(job: Job, party: PartyId) -> bool:
    """Whether a party may be drawn for the job, its balance apart."""
    # JOB-13: a verifier is neither the submitter nor a solver of the job.
    # JOB-33: who could not tell is not drawn again in the attempt.
    return party not in (job.terms.submitter, job.solver, *job.barred, *job.recused)


def wants_verifiers(job: Job) -> bool:
    """Whether verifiers are to be drawn: nobody has a seat, and they were not drawn anew before."""
    waits = job.awaiting in (Awaiting.MARKS, Awaiting.VERDICTS)
    # JOB-33: verifiers are drawn anew once an attempt, when all have given their seats back.
    return waits and not job.verifiers and len(job.recused) <= job.terms.verifiers


def on_assigned(job: Job, event: Event, said: VerifiersAssigned) -> Outcome:
    """The drawn verifiers take their seats; their bonds are locked."""
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.MARKS, Awaiting.VERDICTS)
    fit = all(can_verify(job, party) for party in said.parties)
    count = len(set(said.parties))
    # JOB-13: the verifiers of an attempt are drawn once, as many as the terms say, all different.
    drawn = not wants_verifiers(job)
    if drawn or not fit or not count == len(said.parties) == job.terms.verifiers:
        raise ProtocolError(
            "JOB-13",
            Code.MISMATCH,
            got=f"{count} of {len(said.parties)} parties for {len(job.verifiers)} seats taken",
            want=f"{job.terms.verifiers} different parties, once",
        )
    bond = job.terms.prices.verifier_bond
    posts = tuple(lock_bond(job.id, job.attempt, party, bond) for party in said.parties)
    seated = replace(job, verifiers=tuple(Seat(party) for party in said.parties))
    if job.awaiting is Awaiting.VERDICTS:
        seated = await_next(seated, Awaiting.VERDICTS, event.at)
    return seated, posts


def on_sealed(job: Job, event: Event, said: CommitVerdict) -> Outcome:
    """A verifier fixes its verdict; after the last one the beacon is due."""
    seat = _seat(job, event)
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.VERDICTS)
    # JOB-14: a verifier fixes its verdict once.
    if seat.sealed is not None:
        raise IllegalMove("JOB-14", got="a second verdict", want="one from each verifier")
    sealed = job.with_seat(replace(seat, sealed=said.digest))
    if all(s.sealed is not None for s in sealed.verifiers):
        return await_next(sealed, Awaiting.BEACON, event.at), ()
    return sealed, ()


def on_cannot_tell(job: Job, event: Event, said: CannotTell) -> Outcome:
    """A verifier whose data or machine are not sound gives its seat back, with its bond."""
    seat = _seat(job, event)
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.MARKS, Awaiting.VERDICTS)
    # JOB-33: who has fixed a verdict could tell.
    if seat.sealed is not None:
        raise IllegalMove("JOB-33", got="cannot tell after a sealed verdict", want="the verdict")
    back = release_bond(job.id, job.attempt, seat.party, job.terms.prices.verifier_bond)
    seats = tuple(s for s in job.verifiers if s.party != seat.party)
    left = replace(job, verifiers=seats, recused=(*job.recused, seat.party))
    if seats and all(s.sealed is not None for s in seats):
        left = await_next(left, Awaiting.BEACON, event.at)
    return left, (back,)


def on_beacon(job: Job, event: Event, said: BeaconDrawn) -> Outcome:
    """The beacon's step is known; verdicts may be told."""
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.BEACON)
    want = draw_beacon(said.seed, job.id, job.attempt, job.terms.steps)
    # JOB-15: the beacon's step follows from the root of the log before it.
    if said.step != want:
        raise ProtocolError("JOB-15", Code.MISMATCH, got=f"step {said.step}", want=f"step {want}")
    return await_next(replace(job, beacon=said.step), Awaiting.REVEALS, event.at), ()


def on_reveal(job: Job, event: Event, said: RevealVerdict) -> Outcome:
    """A verifier tells its verdict; after the last one the window for challenges opens."""
    seat = _seat(job, event)
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.REVEALS)
    verdict = Verdict(job.id, job.attempt, seat.party, said.head, said.agrees, said.salt)
    # JOB-14: the verdict told is the one that was fixed, and is told once.
    if seat.verdict is not None or verdict_digest(verdict) != seat.sealed:
        raise ProtocolError(
            "JOB-14", Code.MISMATCH, got=verdict_digest(verdict), want=f"sealed {seat.sealed}"
        )
    # JOB-14: a verdict agrees exactly when its run log is the solver's.
    if said.agrees != (said.head == job.head):
        raise ProtocolError("JOB-14", Code.MISMATCH, got=said.head, want=job.head)
    # JOB-14: who claims another run in a contest does not vouch for the solver's.
    if said.agrees and job.contest is not None and job.contest.doubts(seat.party):
        raise ProtocolError("JOB-14", Code.FORBIDDEN, got="agreement", want="one word")
    told = job.with_seat(replace(seat, verdict=said))
    if said.agrees and job.contest is not None:
        # JOB-23: who vouches during a contest faces the claims that stand.
        told = replace(told, contest=vouch(job.contest, seat.party))
    if all(s.verdict is not None or s.late for s in told.verifiers):
        return await_next(told, Awaiting.WINDOW, event.at), ()
    return told, ()


def on_time(job: Job, event: Event, _: TimeCalled | CallTime) -> Outcome:
    """The clock of whatever the job waits for has run down."""
    check_time(job, event.at)
    # JOB-31: a solver that does not store a state again is late.
    withheld = job.ask is not None and event.at >= job.ask.deadline
    if withheld or job.awaiting is Awaiting.MARKS:
        return solver_late(job)
    if job.awaiting is Awaiting.VERDICTS:
        return _close_verdicts(job, event.at), ()
    if job.awaiting is Awaiting.REVEALS:
        return _close_reveals(job, event.at), ()
    # JOB-21: at the end of the window a run that a verifier vouches for is settled, not expired.
    if job.attesters:
        raise IllegalMove("JOB-21", got="time called", want="settlement")
    return expire(job, (_solver_bond_back(job), *_verifier_bonds_back(job)))


def on_settled(job: Job, event: Event, said: Settled) -> Outcome:
    """Rewards are paid, bonds and the rest of the escrow go back."""
    check_attempt(job, said.attempt)
    check_awaiting(job, Awaiting.WINDOW)
    check_time(job, event.at)
    # JOB-31: nothing is settled while somebody waits for a state.
    if job.ask is not None:
        raise IllegalMove("JOB-31", got="settlement", want=f"the state of mark {job.ask.mark}")
    # JOB-21: a run is settled when at least one verifier vouches for it.
    if not job.attesters or job.solver is None:
        raise IllegalMove("JOB-21", got="settlement", want="a verifier that agrees")
    prices, terms = job.terms.prices, job.terms
    paid = [reward(job.id, job.attempt, job.solver, prices.solver_reward)]
    paid += [reward(job.id, job.attempt, p, prices.verifier_reward) for p in job.attesters]
    left = terms.escrow - prices.solver_reward - len(job.attesters) * prices.verifier_reward
    posts = (
        *paid,
        _solver_bond_back(job),
        *_verifier_bonds_back(job),
        refund(job.id, terms.submitter, left),
    )
    done = replace(
        job, phase=Phase.SETTLED, awaiting=Awaiting.NOTHING, deadline=None, receipt=said.receipt
    )
    return done, posts


def _close_verdicts(job: Job, at: Millis) -> Job:
    seats = tuple(replace(s, late=s.sealed is None) for s in job.verifiers)
    closed = replace(job, verifiers=seats)
    some = any(s.sealed is not None for s in seats)
    return await_next(closed, Awaiting.BEACON if some else Awaiting.WINDOW, at)


def _close_reveals(job: Job, at: Millis) -> Job:
    seats = tuple(replace(s, late=s.verdict is None) for s in job.verifiers)
    return await_next(replace(job, verifiers=seats), Awaiting.WINDOW, at)


def _seat(job: Job, event: Event) -> Seat:
    seat = job.seat(event.party)
    # JOB-6: a verdict comes from a verifier of the attempt that is not late.
    if seat is None or seat.late:
        raise ProtocolError("JOB-6", Code.FORBIDDEN, got=event.party, want="a verifier in time")
    return seat


def _solver_bond_back(job: Job) -> Transaction:
    if job.solver is None:
        raise RuntimeError("a job that is verified has a solver")
    return release_bond(job.id, job.attempt, job.solver, job.terms.prices.solver_bond)


def _verifier_bonds_back(job: Job) -> tuple[Transaction, ...]:
    bond = job.terms.prices.verifier_bond
    return tuple(release_bond(job.id, job.attempt, s.party, bond) for s in job.verifiers)
