"""The job machine around a contest: who enters, what is set up, and what rulings change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from identic.protocol.commitments import run_leaf
from identic.protocol.dispute.setup import MAX_LOAD
from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.hashing import fold
from identic.protocol.ids import Count, Digest, Millis, PartyId
from identic.protocol.job import contest as contests
from identic.protocol.job.checks import await_next, check_attempt, reopen
from identic.protocol.job.contest import RUN, Contest, Member, Standing
from identic.protocol.job.entries import DisputeOpened, Loser, Ruled, Verdicts
from identic.protocol.job.messages import Challenge
from identic.protocol.job.run import RunHead
from identic.protocol.job.state import Awaiting, Event, Job, Outcome, Phase
from identic.protocol.settlement.ledger import Transaction
from identic.protocol.settlement.movements import lock_bond, release_bond, slash_bond

MAX_UNTOLD = 3
"""Challenges of a party and an attempt that may end without an answer."""


# ---- entering -------------------------------------------------------------------------------


def on_challenge(job: Job, event: Event, said: Challenge) -> Outcome:
    """A party claims another state at a mark; its bond is locked and clocks stand still."""
    check_attempt(job, said.attempt)
    if event.message is None:
        raise RuntimeError("a challenge comes in a message")
    party = _checked(job, event.party, said)
    contest = job.contest or _begun(job, event.at)
    # JOB-17: claims enter until the entry ends, and a party stands for one at a time.
    if event.at >= contest.entry_until or contest.doubts(party):
        raise IllegalMove(
            "JOB-17",
            got=f"a claim at {event.at}",
            want=f"one from each party, before {contest.entry_until}",
        )
    member = Member(party, event.message)
    heads = _heads(job, int(said.mark), said.root)
    entered = replace(
        job,
        phase=Phase.DISPUTED,
        contest=contests.enter(contest, member, int(said.mark), said.root, heads),
        entry_until=contest.entry_until if contest.final else None,
        deadline=None,
    )
    return entered, (lock_bond(member.stake, 0, party, job.terms.prices.challenger_bond),)


def _checked(job: Job, party: PartyId | None, said: Challenge) -> PartyId:
    """The challenger, when its claim is one."""
    # JOB-16: a challenge is made by a party that does not vouch for the run.
    if party is None or party in _vouchers(job):
        raise ProtocolError("JOB-16", Code.FORBIDDEN, got=party, want="a party that does not vouch")
    # JOB-16: a challenge names a mark that is committed, mark 0 excepted.
    if said.job != job.id or not 1 <= said.mark < len(job.marks):
        raise ProtocolError(
            "JOB-16",
            Code.OUT_OF_RANGE,
            got=f"mark {said.mark} of {said.job}",
            want=f"mark 1 to {len(job.marks) - 1} of {job.id}",
        )
    # JOB-16: it claims another state there than the solver.
    if said.root == job.marks[said.mark].state_root:
        raise ProtocolError("JOB-16", Code.MISMATCH, got="the solver's own state", want="another")
    # JOB-16: a party whose challenges nobody could tell three times has no more in the attempt.
    if job.untold.count(party) >= MAX_UNTOLD:
        raise ProtocolError(
            "JOB-16",
            Code.FORBIDDEN,
            got=f"a challenge after {MAX_UNTOLD} that nobody could tell",
            want="the next attempt",
        )
    return party


def _vouchers(job: Job) -> tuple[PartyId, ...]:
    """The parties that vouch for the run, the solver first."""
    if job.solver is None:
        raise RuntimeError("a run without a solver")
    return (job.solver, *job.attesters)


def _begun(job: Job, at: Millis) -> Contest:
    """A contest that begins now, without a challenger."""
    final = job.awaiting is Awaiting.WINDOW
    # JOB-17: what is left of an entry that began in the window is not renewed.
    until = job.entry_until or Millis(at + job.terms.clocks.window_ms)
    return contests.begin(job.id, job.attempt, _vouchers(job), at, until, final=final)


def _heads(job: Job, mark: int, root: Digest) -> tuple[RunHead, RunHead]:
    """The run log that is claimed up to a mark, and the solver's."""
    *agreed, own = (
        run_leaf(index, record.step, record.state_root)
        for index, record in enumerate(job.marks[: mark + 1])
    )
    claimed = run_leaf(mark, job.marks[mark].step, root)
    marks = Count(mark + 1)
    return RunHead(job.id, marks, fold([*agreed, claimed])), RunHead(
        job.id, marks, fold([*agreed, own])
    )


# ---- games ----------------------------------------------------------------------------------


def opening(job: Job) -> DisputeOpened:
    """The entry that sets up the next game of a job that has one to set up."""
    contest = _contest(job)
    match, game = next((m, g) for m, g in contest.games if not g.opened)
    ours, theirs = contest.heads(match)
    return DisputeOpened(
        game.id,
        job.id,
        job.attempt,
        contest.member(game.defender).party,
        contest.member(game.challenger).party,
        ours,
        theirs,
        job.step_ms,
        Count(min(contest.load(match), MAX_LOAD)),
    )


def awaits_opening(job: Job) -> bool:
    """Whether a game of the job is to be set up."""
    return job.contest is not None and any(not game.opened for _, game in job.contest.games)


def on_opened(job: Job, _: Event, said: DisputeOpened) -> Outcome:
    """The coordinator has set a game up as it was called for."""
    check_attempt(job, said.attempt)
    want = opening(job) if awaits_opening(job) else None
    # JOB-17: a game is set up once, in its turn, about the claims that were made.
    if said != want:
        raise IllegalMove("JOB-17", got=said, want=want)
    playing = contests.opened(_contest(job), said.dispute)
    return replace(job, contest=playing, disputes=(*job.disputes, said.dispute)), ()


def on_ruled(job: Job, event: Event, said: Ruled) -> Outcome:
    """Whoever lost falls with its bond; the last ruling ends the contest, or the attempt."""
    check_attempt(job, said.attempt)
    found = _contest(job).game(said.dispute)
    # JOB-17: a ruling is about a game that is set up and played on.
    if found is None or not found[1].opened:
        raise ProtocolError(
            "JOB-17", Code.MISMATCH, got=f"dispute {said.dispute}", want="one that is played"
        )
    # JOB-18: somebody loses exactly when the referee can tell.
    if (said.loser is Loser.NOBODY) != (said.verdict is Verdicts.CANNOT_TELL):
        raise ProtocolError("JOB-18", Code.MISMATCH, got=said.loser.name, want=said.verdict.name)
    before = _contest(job)
    after = contests.ruled(before, said.dispute, said.verdict, said.loser)
    job = replace(job, contest=after)
    posts: tuple[Transaction, ...] = ()
    for index, was, now in _changes(before, after):
        job, post = _fallen(job, index, now) if now.fell_to else _left(job, was)
        posts = (*posts, post)
    return _ended(job, event.at, posts) if after.decided else (job, posts)


def _changes(before: Contest, after: Contest) -> Iterator[tuple[int, Member, Member]]:
    """Members that stand no longer, with the index of their claim."""
    for index, (was, now) in enumerate(zip(before.claims, after.claims, strict=True)):
        for old, new in zip(was.members, now.members, strict=True):
            if old.standing is not new.standing:
                yield index, old, new


def _fallen(job: Job, index: int, member: Member) -> tuple[Job, Transaction]:
    """Slash a party that lost."""
    prices, party, winner = job.terms.prices, member.party, member.fell_to
    if winner is None:
        raise RuntimeError("nobody won")
    # JOB-18: whoever loses is slashed, it alone, to the party that it lost to.
    if index != RUN:
        return job, slash_bond(member.stake, 0, party, prices.challenger_bond, winner)
    if party == job.solver:
        # JOB-25: the run of a solver that fell does not go on.
        stopped = replace(job, awaiting=Awaiting.NOTHING)
        return stopped, slash_bond(job.id, job.attempt, party, prices.solver_bond, winner)
    left = replace(job, verifiers=tuple(s for s in job.verifiers if s.party != party))
    return left, slash_bond(job.id, job.attempt, party, prices.verifier_bond, winner)


def _left(job: Job, member: Member) -> tuple[Job, Transaction]:
    """Give a challenger its bond back, since nobody could tell."""
    bond = job.terms.prices.challenger_bond
    told = replace(job, untold=(*job.untold, member.party))
    return told, release_bond(member.stake, 0, member.party, bond)


# ---- the end --------------------------------------------------------------------------------


def _ended(job: Job, at: Millis, posts: tuple[Transaction, ...]) -> Outcome:
    """Take the run up again, or end the attempt of a solver that fell."""
    contest, bond = _contest(job), job.terms.prices.challenger_bond
    left = [m for claim in contest.claims[RUN + 1 :] for m in claim.standing]
    posts = (*posts, *(release_bond(m.stake, 0, m.party, bond) for m in left))
    job = replace(job, contest=None, contests=(*job.contests, contest))
    solver = contest.run.members[0]
    # JOB-25: without its solver the attempt is over once the contest is decided.
    if solver.standing is Standing.FALLEN:
        fresh, released = reopen(job, solver.party, tuple(s.party for s in job.verifiers))
        return fresh, (*posts, *released)
    if job.awaiting is Awaiting.REVEALS and all(s.verdict or s.late for s in job.verifiers):
        job = replace(job, awaiting=Awaiting.WINDOW)
    return _resumed(job, contest, at), posts


def _resumed(job: Job, contest: Contest, at: Millis) -> Job:
    """Go on where the contest interrupted."""
    phase = Phase.TRAINING if job.finish is None else Phase.VERIFYING
    resumed = replace(job, phase=phase)
    if contest.final:
        # JOB-25: after a contest of the window only what is left of its entry is waited for.
        return replace(resumed, deadline=max(at, contest.entry_until))
    # JOB-17: after any other contest the clock of whatever is awaited starts anew.
    return await_next(resumed, job.awaiting, at)


def _contest(job: Job) -> Contest:
    # JOB-17: what is said in a contest is said while there is one.
    if job.contest is None:
        raise IllegalMove("JOB-17", got="no contest", want="a contest")
    return job.contest
