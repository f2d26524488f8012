"""The knockout of claims: who plays whom, and that it takes the logarithm of their number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.ids import Count, Millis
from identic.protocol.job import contest as contests
from identic.protocol.job.contest import Contest, Game, Member
from identic.protocol.job.entries import Loser, Verdicts
from tests.helpers.effort import examples
from tests.protocol.job.world import (
    ANNA,
    FALSE,
    HONEST,
    JOB,
    SECOND,
    SOLVER,
    SUBMITTER,
    WATCHER,
    World,
    digest,
    head_of,
    party,
)


def contest_of(vouchers: int = 1) -> Contest:
    """A contest in which nobody has doubted yet."""
    names = tuple(party(f"voucher {i}") for i in range(vouchers))
    return contests.begin(JOB, Count(1), names, Millis(0), Millis(1), final=True)


def entered(contest: Contest, name: str, mark: int, word: str) -> Contest:
    """Another challenger, who claims the state of a word."""
    heads = (head_of(HONEST), head_of(FALSE))
    return contests.enter(contest, Member(party(name), digest(name)), mark, digest(word), heads)


def test_job_24__who_entered_first_plays_first_the_run_before_all() -> None:
    contest = contest_of()
    for number in range(4):
        contest = entered(contest, f"liar {number}", 1, f"claim {number}")
    assert [(m.defender, m.challenger) for m in contest.matches] == [(0, 1), (2, 3)]
    # The run wins and meets the team that had nobody to play.
    contest = contests.ruled(contest, game(contest).id, Verdicts.LATE, Loser.CHALLENGER)
    assert [(m.defender, m.challenger) for m in contest.matches] == [(0, 1), (2, 3), (0, 4)]


def game(contest: Contest, number: int = 0) -> Game:
    """A game that is to be played on."""
    return list(contest.games)[number][1]


def test_job_24__the_later_mark_stands_for_the_solvers_run_before_it() -> None:
    world = World().accept().commit(FALSE).challenge(SUBMITTER, HONEST, 4)
    world.challenge(ANNA, HONEST, 3).challenge(WATCHER, HONEST, 2)
    opened = world.contest.matches[1]
    assert [world.contest.claims[i].mark for i in (opened.defender, opened.challenger)] == [3, 2]
    # Over three marks, the later claim is the solver's run and the earlier one its own.
    assert world.contest.heads(opened) == (head_of(FALSE, 3), head_of(HONEST, 3))
    world.loses(ANNA, WATCHER).loses(SUBMITTER, SOLVER).loses(SOLVER, WATCHER)
    assert world.job.attempt == 2


def test_job_24__of_equal_marks_the_first_defends() -> None:
    world = World().accept().commit(FALSE).challenge(SECOND, FALSE[::-1], 1)
    third = (*FALSE[:2], digest("third"))
    world.challenge(ANNA, third, 2).challenge(WATCHER)
    match = world.contest.matches[1]
    assert world.contest.heads(match) == (head_of(third, 3), head_of(HONEST, 3))


def test_job_23__every_pair_of_two_teams_plays() -> None:
    contest = contest_of(3)
    for number in range(5):
        contest = entered(contest, f"friend {number}", 1, "the same claim")
    (match,) = contest.matches
    assert len({g.id for g in match.games}) == 15
    assert contest.load(match) == 5


@pytest.mark.parametrize("claims", [*range(1, 18), 31, 32, 33])
def test_job_26__if_all_games_take_alike_the_rounds_are_the_logarithm(claims: int) -> None:
    contest = contest_of()
    # The first match waits for all to enter, as it does when its game takes its time.
    for number in range(claims):
        contest = entered(contest, f"liar {number}", 1 + number % 4, f"claim {number}")
    rounds = 0
    while not contest.decided:
        rounds += 1
        for _, each in list(contest.games):
            contest = contests.ruled(contest, each.id, Verdicts.WRONG, Loser.CHALLENGER)
    assert rounds == math.ceil(math.log2(claims + 1))
    assert len(contest.matches) == claims
    assert contest.run.standing


@given(data=st.data())
@settings(max_examples=examples(100), deadline=None)
def test_job_23__job_24__any_course_leaves_one_claim_and_halves_the_rest(
    data: st.DataObject,
) -> None:
    """Parties enter claims at any time, and games end anyhow."""
    contest, waiting = contest_of(data.draw(st.integers(1, 3))), data.draw(st.integers(1, 12))
    for number in range(waiting):
        word = data.draw(st.sampled_from("abcdef"))
        contest = entered(contest, f"party {number}", 1 + ord(word) % 3, word)
        for _ in range(data.draw(st.integers(0, 3))):
            contest = some_end(contest, data)
    while not contest.decided:
        teams = [claim for claim in contest.claims if claim.standing]
        playing = [match for match in contest.matches if not match.over]
        assert len(playing) == len(teams) // 2
        contest = some_end(contest, data)
    assert not list(contest.games)
    for match in contest.matches:
        teams = [contest.claims[i] for i in (match.defender, match.challenger)]
        met = {(g.defender, g.challenger) for g in match.games}
        assert len(met) == len(match.games)
        assert len(match.games) <= math.prod(len(team.members) for team in teams)


def some_end(contest: Contest, data: st.DataObject) -> Contest:
    """Some game ends, if one is played."""
    games = [each for _, each in contest.games]
    if not games:
        return contest
    chosen, loser = data.draw(st.sampled_from(games)), data.draw(st.sampled_from(Loser))
    verdict = Verdicts.CANNOT_TELL if loser is Loser.NOBODY else Verdicts.WRONG
    return contests.ruled(contest, chosen.id, verdict, loser)
