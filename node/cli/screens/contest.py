"""A contest on the screen: the claims about a run, their teams, and who met whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, columns

STYLES: Final = {"stands": "green", "fell": "red", "left": "yellow"}


@dataclass(frozen=True)
class MemberView:
    """A party that answers for a claim.

    Attributes:
        name: how screens call it, such as ``s-3f9c01``.
        standing: "stands", "fell" or "left".
        fell_to: who won against it, where it fell.
    """

    name: str
    standing: str
    fell_to: str = ""


@dataclass(frozen=True)
class ClaimView:
    """A claim and its team.

    Attributes:
        name: "the run", or "claim 1" and so on.
        says: what it is, in words.
        team: its members in the order of entry.
    """

    name: str
    says: str
    team: tuple[MemberView, ...]

    @property
    def stands(self) -> bool:
        """Whether any of the team does."""
        return any(member.standing == "stands" for member in self.team)


@dataclass(frozen=True)
class MatchView:
    """Two teams against each other.

    Attributes:
        teams: names of their claims.
        disputes: names of the disputes between their members.
        open: how many of them are played.
        winner: name of the claim that is left; "nobody" when none is, empty while it goes on.
    """

    teams: tuple[str, str]
    disputes: tuple[str, ...]
    open: int
    winner: str = ""


@dataclass(frozen=True)
class ContestView:
    """A contest at one moment.

    Attributes:
        attempt: whose run is contested.
        entry_until: Unix time up to which claims may enter, in milliseconds.
        over: whether it is decided.
        claims: the run first, then in the order of entry.
        matches: in the order of pairing.
    """

    attempt: int
    entry_until: int
    over: bool
    claims: tuple[ClaimView, ...]
    matches: tuple[MatchView, ...]


def summary(view: ContestView) -> str:
    """A contest in a line."""
    left = [claim.name for claim in view.claims if claim.stands]
    claims = words.plural(len(view.claims) - 1, "claim")
    if view.over:
        return f"{claims} against the run; {left[0] if left else 'nobody'} is left"
    played = sum(match.open for match in view.matches)
    return f"{claims} against the run, {len(left)} left with it; {words.plural(played, 'dispute')}"


def lines(view: ContestView) -> Lines:
    """A contest with its claims and matches."""
    until = "" if view.over else f"; others may enter until {words.moment(view.entry_until)}"
    head = Text("contest  ", style="bold").append(f"{summary(view)}{until}", style="not bold")
    claims: list[list[Text | str]] = [
        [f"  {claim.name}", claim.says, _team(claim)] for claim in view.claims
    ]
    matches: list[list[Text | str]] = [
        [f"  {match.teams[0]}", f"against {match.teams[1]}", _result(match)]
        for match in view.matches
    ]
    return [head, *columns(claims), *columns(matches)]


def _team(claim: ClaimView) -> Text:
    out = Text()
    for number, member in enumerate(claim.team):
        if number:
            out.append(", ")
        to = f" to {member.fell_to}" if member.fell_to else ""
        out.append(member.name).append(
            f" {member.standing}{to}", style=STYLES.get(member.standing, "")
        )
    return out


def _result(match: MatchView) -> str:
    names = ", ".join(match.disputes)
    if match.winner:
        return f"{match.winner} is left: {names}"
    return f"{match.open} of {words.plural(len(match.disputes), 'dispute')} open: {names}"
