"""Disputes that nobody can tell: they cost no bond, so they must not be a way to stop a job."""

from identic.protocol.ids import Count
from identic.protocol.job.entries import Loser, Verdicts
from identic.protocol.job.messages import Challenge
from identic.protocol.job.state import Phase
from tests.protocol.job.world import (
    ANNA,
    FALSE,
    JOB,
    SECOND,
    SOLVER,
    WATCHER,
    World,
    head_of,
    judged,
    refusal,
)


def test_job_16__friends_that_keep_silent_stop_a_job_a_few_times_only() -> None:
    """Nobody can tell, so no bond is lost; but the clocks start anew with each dispute."""
    world = judged()
    for _ in range(3):
        world.challenge(WATCHER, ANNA, FALSE).rule(Verdicts.CANNOT_TELL, Loser.NOBODY)
    again = Challenge(JOB, Count(1), ANNA, head_of(FALSE))
    refusal("JOB-16", lambda: world.say(WATCHER, again, "again"), world)
    world.challenge(SECOND, ANNA, FALSE).rule(Verdicts.WRONG, Loser.CHALLENGER)
    assert world.settle().job.phase is Phase.SETTLED


def test_job_16__who_could_not_be_told_may_challenge_the_next_attempt() -> None:
    world = World().accept().commit(FALSE, 4)
    for _ in range(3):
        world.challenge(WATCHER, SOLVER, marks=4).rule(Verdicts.CANNOT_TELL, Loser.NOBODY)
    world.challenge(ANNA, SOLVER, marks=4).rule(Verdicts.WRONG, Loser.DEFENDER)
    world.accept(SECOND).commit(FALSE, 4).challenge(WATCHER, SECOND, marks=4)
    assert world.job.phase is Phase.DISPUTED
