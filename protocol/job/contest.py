"""A contest: the claims about a run, the matches between them, and who still stands.

* A claim is a mark and the state root there; the marks before it are the solver's. Whoever
  claims the same is one team. The first claim is the run itself, of the parties that vouch.
* A match is between two teams: every standing member of one plays every standing member of
  the other, each pair its own game, which is a dispute.
* Teams without a match are paired as soon as there are two, so that the number of claims
  falls by half in the time of the longest game.

Everything here is a value and follows from what is entered and ruled; money is moved by
``disputes.py``. Spec: docs/spec/jobs.md (JOB-17, JOB-18, JOB-23 to JOB-25).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from identic.protocol.ids import Count, Digest, JobId, Millis, PartyId
from identic.protocol.job.entries import Loser, Verdicts
from identic.protocol.job.messages import DisputeId, game_id
from identic.protocol.job.run import RunHead

RUN = 0
"""Index of the run's own claim, the first of every contest."""


class Standing(Enum):
    """Where a member of a team is in the contest."""

    IN = "stands"
    FALLEN = "fell"
    LEFT = "left"
    """Nobody could tell."""


@dataclass(frozen=True)
class Member:
    """A party that answers for a claim, with its own bond."""

    party: PartyId
    stake: Digest
    """Name of its part: the digest of its challenge; of a voucher its identity."""
    standing: Standing = Standing.IN
    fell_to: PartyId | None = None
    """Who won the game that it lost."""


@dataclass(frozen=True)
class Claim:
    """What a team says of a run: its marks before ``mark`` are right, its state there is ``root``.

    The run's own claim has mark 0 and no heads.
    """

    mark: Count
    root: Digest
    members: tuple[Member, ...]
    head: RunHead | None = None
    """The run log up to ``mark`` as the team claims it."""
    solver: RunHead | None = None
    """The solver's over the same marks."""

    @property
    def standing(self) -> tuple[Member, ...]:
        """Members that neither fell nor left."""
        return tuple(m for m in self.members if m.standing is Standing.IN)


@dataclass(frozen=True)
class Game:
    """A dispute between a member of each team of a match."""

    id: DisputeId
    defender: Digest
    """Stake of the member that stands for the solver's marks, or entered first."""
    challenger: Digest
    opened: bool = False
    """Whether the coordinator has set it up."""
    verdict: Verdicts | None = None
    loser: Loser = Loser.NOBODY

    @property
    def players(self) -> tuple[Digest, Digest]:
        """Stakes of both sides."""
        return self.defender, self.challenger

    def played_by(self, stakes: frozenset[Digest]) -> bool:
        """Whether it is to be played on: it has no ruling, and both players are among these."""
        return self.verdict is None and stakes.issuperset(self.players)


@dataclass(frozen=True)
class Match:
    """Two teams against each other."""

    defender: int
    """Index of the claim that stands for the solver's marks, or was entered first."""
    challenger: int
    games: tuple[Game, ...]
    over: bool = False
    winner: int | None = None
    """Index of the claim that was left when it was over, if one was."""


@dataclass(frozen=True)
class Contest:
    """The claims about one attempt's run, from the first challenge until one is left."""

    job: JobId
    attempt: Count
    opened_at: Millis
    entry_until: Millis
    """Unix time up to which claims may enter."""
    final: bool
    """Whether it was opened in the window, so that no other window follows."""
    claims: tuple[Claim, ...]
    """In the order of entry; the run first."""
    matches: tuple[Match, ...] = ()
    """In the order of pairing."""

    # ---- who is who -------------------------------------------------------------------------

    def member(self, stake: Digest) -> Member:
        """The member with this part."""
        return next(m for claim in self.claims for m in claim.members if m.stake == stake)

    def stands(self, stake: Digest) -> bool:
        """Whether the member with this part is still in."""
        return self.member(stake).standing is Standing.IN

    def doubts(self, party: PartyId | None) -> bool:
        """Whether a party stands for another claim than the run."""
        return any(m.party == party for claim in self.claims[1:] for m in claim.standing)

    @property
    def run(self) -> Claim:
        """The run's own claim."""
        return self.claims[RUN]

    # ---- games ------------------------------------------------------------------------------

    @property
    def stakes(self) -> frozenset[Digest]:
        """Parts of the members that stand."""
        return frozenset(m.stake for claim in self.claims for m in claim.standing)

    @property
    def games(self) -> Iterator[tuple[Match, Game]]:
        """Games to be played on, in order, with their matches."""
        stakes = self.stakes
        for match in self.matches:
            if not match.over:
                yield from ((match, game) for game in match.games if game.played_by(stakes))

    def game(self, name: DisputeId) -> tuple[Match, Game] | None:
        """The game of this name, if it is to be played on."""
        return next(((m, g) for m, g in self.games if g.id == name), None)

    def heads(self, match: Match) -> tuple[RunHead, RunHead]:
        """What the teams of a match claim over the marks that both claims reach."""
        ours, theirs = self.claims[match.defender], self.claims[match.challenger]
        both = (ours.head if ours.mark == theirs.mark else theirs.solver, theirs.head)
        if both[0] is None or both[1] is None:
            raise RuntimeError("the run challenges nobody")
        return both[0], both[1]

    def load(self, match: Match) -> int:
        """Games that the busier player of a match has at once."""
        return max(len(self.claims[i].standing) for i in (match.defender, match.challenger))

    @property
    def decided(self) -> bool:
        """Whether at most one claim stands, and all matches are over."""
        left = sum(bool(claim.standing) for claim in self.claims)
        return left <= 1 and all(match.over for match in self.matches)


# ---- entering -------------------------------------------------------------------------------


def begin(
    job: JobId,
    attempt: Count,
    vouchers: tuple[PartyId, ...],
    at: Millis,
    entry_until: Millis,
    *,
    final: bool,
) -> Contest:
    """A contest in which only the run is claimed.

    Args:
        job: whose run.
        attempt: which run.
        vouchers: the parties that vouch for it, the solver first.
        at: Unix time.
        entry_until: Unix time up to which claims may enter.
        final: whether no other window follows.
    """
    members = tuple(Member(party, Digest(party)) for party in vouchers)
    run = Claim(Count(0), Digest(bytes(32)), members)
    return Contest(job, attempt, at, entry_until, final, (run,))


def enter(
    contest: Contest, member: Member, mark: int, root: Digest, heads: tuple[RunHead, RunHead]
) -> Contest:
    """Let a challenger in: into the team that claims the same, or as a team of its own.

    Args:
        contest: before.
        member: the challenger.
        mark: first mark on which it differs from the solver.
        root: state root that it claims there.
        heads: its run log up to the mark, and the solver's.
    """
    for index, claim in enumerate(contest.claims):
        # JOB-23: equal claims are one team.
        if index != RUN and (claim.mark, claim.root) == (mark, root):
            return _arranged(_with_member(contest, index, member))
    claim = Claim(Count(mark), root, (member,), *heads)
    return _arranged(replace(contest, claims=(*contest.claims, claim)))


def vouch(contest: Contest, party: PartyId) -> Contest:
    """Let a verifier that has told its agreement into the run's team."""
    return _arranged(_with_member(contest, RUN, Member(party, Digest(party))))


def _with_member(contest: Contest, index: int, member: Member) -> Contest:
    claim = contest.claims[index]
    return _with_claim(contest, index, replace(claim, members=(*claim.members, member)))


def _with_claim(contest: Contest, index: int, claim: Claim) -> Contest:
    claims = contest.claims
    return replace(contest, claims=(*claims[:index], claim, *claims[index + 1 :]))


# ---- playing --------------------------------------------------------------------------------


def opened(contest: Contest, name: DisputeId) -> Contest:
    """Note that a game was set up."""
    return _with_game(contest, name, opened=True)


def ruled(contest: Contest, name: DisputeId, verdict: Verdicts, loser: Loser) -> Contest:
    """Take the ruling of a game that is played: its loser falls, and matches end and begin."""
    found = contest.game(name)
    if found is None:
        raise RuntimeError("a ruling of a game that is not played")
    after = _with_game(contest, name, verdict=verdict, loser=loser)
    stakes = {Loser.DEFENDER: found[1].defender, Loser.CHALLENGER: found[1].challenger}
    if loser in stakes:
        lost = stakes.pop(loser)
        (winner,) = stakes.values()
        after = _moved(after, lost, Standing.FALLEN, contest.member(winner).party)
    return _arranged(after)


def _with_game(contest: Contest, name: DisputeId, **change: object) -> Contest:
    matches = tuple(
        match
        if match.over
        else replace(
            match,
            games=tuple(
                replace(game, **change) if game.id == name else game  # type: ignore[arg-type]
                for game in match.games
            ),
        )
        for match in contest.matches
    )
    return replace(contest, matches=matches)


def _moved(
    contest: Contest, stake: Digest, standing: Standing, by: PartyId | None = None
) -> Contest:
    """Put a member that stands somewhere else."""
    index, claim = next(
        (i, c) for i, c in enumerate(contest.claims) if any(m.stake == stake for m in c.members)
    )
    members = tuple(
        replace(m, standing=standing, fell_to=by) if m.stake == stake else m for m in claim.members
    )
    return _with_claim(contest, index, replace(claim, members=members))


# ---- matches --------------------------------------------------------------------------------


def _arranged(contest: Contest) -> Contest:
    """Complete the games of matches, end those that are played out, and pair the idle teams."""
    stakes = contest.stakes
    for number, match in enumerate(contest.matches):
        if not match.over:
            # JOB-23: whoever joins a team plays those whom its team plays.
            games = (*match.games, *_missing(contest, match))
            if len(games) > len(match.games):
                contest = _with_match(contest, number, replace(match, games=games))
            if not any(game.played_by(stakes) for game in games):
                contest = _over(contest, number)
    busy = {i for m in contest.matches if not m.over for i in (m.defender, m.challenger)}
    idle = [i for i, claim in enumerate(contest.claims) if claim.standing and i not in busy]
    # JOB-24: the two idle teams that entered first play each other, until one is left.
    while len(idle) > 1:
        first, second = idle.pop(0), idle.pop(0)
        contest = replace(contest, matches=(*contest.matches, _match(contest, first, second)))
    return contest


def _match(contest: Contest, first: int, second: int) -> Match:
    """A match between two teams; ``first`` entered before ``second``."""
    ours, theirs = contest.claims[first], contest.claims[second]
    # JOB-24: the claim of the later mark stands for the solver's marks before it.
    swapped = first != RUN and theirs.mark > ours.mark
    match = Match(second, first, ()) if swapped else Match(first, second, ())
    return replace(match, games=_missing(contest, match))


def _missing(contest: Contest, match: Match) -> tuple[Game, ...]:
    """Games of a match between standing members that do not play each other yet."""
    known = {(game.defender, game.challenger) for game in match.games}
    return tuple(
        Game(game_id(contest.job, contest.attempt, ours.stake, theirs.stake), *pair)
        for ours in contest.claims[match.defender].standing
        for theirs in contest.claims[match.challenger].standing
        if (pair := (ours.stake, theirs.stake)) not in known
    )


def _over(contest: Contest, number: int) -> Contest:
    """End a match that is played out: whoever met somebody and nobody could tell leaves."""
    match = contest.matches[number]
    for game in match.games:
        if game.verdict is Verdicts.CANNOT_TELL:
            # JOB-18: where nobody could tell, challengers leave, and a voucher stands.
            leaving = (game.challenger,) if match.defender == RUN else game.players
            for stake in filter(contest.stands, leaving):
                contest = _moved(contest, stake, Standing.LEFT)
    teams = (match.defender, match.challenger)
    winner = next((index for index in teams if contest.claims[index].standing), None)
    return _with_match(contest, number, replace(match, over=True, winner=winner))


def _with_match(contest: Contest, number: int, match: Match) -> Contest:
    matches = contest.matches
    return replace(contest, matches=(*matches[:number], match, *matches[number + 1 :]))
