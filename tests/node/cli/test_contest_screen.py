"""A contest as people see it."""

from __future__ import annotations

from rich.text import Text

from identic.node.cli.output import Lines
from identic.node.cli.screens import contest, progress
from identic.node.cli.views import contest_view, contests_of, job_view
from identic.protocol.ids import PartyId
from identic.protocol.job.entries import Loser, Verdicts
from tests.protocol.job.world import (
    ANNA,
    BERT,
    FALSE,
    MALLORY,
    SECOND,
    SOLVER,
    TERMS,
    WATCHER,
    World,
    judged,
)


def plain(lines: Lines) -> list[str]:
    """Lines without styles."""
    return [line.plain if isinstance(line, Text) else line for line in lines]


def role(party: PartyId) -> str:
    """What everybody was last."""
    return {SOLVER: "solver", ANNA: "verifier", BERT: "verifier"}.get(party, "")


def contested() -> World:
    """A finished run with three claims against it, of which one has fallen."""
    world = judged().challenge(WATCHER, FALSE).challenge(SECOND, FALSE[::-1], 1)
    world.challenge(MALLORY, FALSE[::-1], 3)
    return world.loses(WATCHER, ANNA)


def test_a_contest_shows_claims_teams_and_matches() -> None:
    world = contested()
    shown = plain(contest.lines(contest_view(world.contest, TERMS, role)))
    text = "\n".join(shown)
    assert "3 claims against the run, 3 left with it; 1 dispute; others may enter until" in shown[0]
    run = next(line for line in shown if line.startswith("  the run"))
    assert "as the solver signed it" in run
    assert f"s-{SOLVER.hex()[:6]} stands, v-{ANNA.hex()[:6]} stands" in run
    fallen = next(line for line in shown if line.startswith("  claim 1  after"))
    assert f"after step 4 state {FALSE[2].short}" in fallen
    assert f"w-{WATCHER.hex()[:6]} fell to v-{ANNA.hex()[:6]}" in fallen
    assert "the run is left: " in text
    assert "1 of 1 dispute open: " in text


def test_a_decided_contest_says_who_is_left() -> None:
    world = contested().loses(SECOND, MALLORY).loses(MALLORY, SOLVER)
    assert world.job.contest is None
    (view,) = [contest_view(one, TERMS, role) for one in contests_of(world.job)]
    assert plain(contest.lines(view))[0] == "contest  3 claims against the run; the run is left"
    assert [match.winner for match in view.matches] == ["the run", "claim 3", "the run"]


def test_a_match_that_nobody_could_tell_leaves_nobody() -> None:
    world = contested().rule(Verdicts.CANNOT_TELL, Loser.NOBODY, SECOND, MALLORY)
    (view,) = [contest_view(one, TERMS) for one in contests_of(world.job)]
    assert view.matches[1].winner == "nobody"
    assert [member.standing for member in view.claims[2].team] == ["left"]


def test_the_picture_of_a_job_has_its_contest_in_a_line() -> None:
    view = job_view(contested().job)
    wanted = "3 claims against the run, 3 left with it; 1 dispute"
    assert f"contest  {wanted}" in plain(progress.lines(view))
    assert wanted in progress.plain_line(view)
    assert job_view(judged().job).contest == ""
