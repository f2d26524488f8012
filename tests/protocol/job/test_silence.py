"""Disputes that nobody can tell: they cost no bond, so they must not be a way to stop a job."""

from identic.protocol.job.entries import Loser, Verdicts
from identic.protocol.job.state import Phase
from tests.protocol.job.world import (
    ANNA,
    FALSE,
    SECOND,
    SOLVER,
    WATCHER,
    World,
    judged,
    refusal,
)

NOTHING = (Verdicts.CANNOT_TELL, Loser.NOBODY)


def test_job_16__friends_that_keep_silent_stop_a_job_a_few_times_only() -> None:
    """Nobody can tell, so no bond is lost; but the clocks start anew with each contest."""
    world = World().accept().commit(FALSE, 4)
    for _ in range(3):
        world.challenge(WATCHER).rule(*NOTHING)
    refusal("JOB-16", lambda: world.challenge(WATCHER), world)
    world.challenge(SECOND).loses(SECOND, SOLVER)
    assert world.job.phase is Phase.TRAINING


def test_job_25__friends_that_keep_silent_in_the_window_do_not_renew_it() -> None:
    world = judged()
    until = world.job.deadline
    for name in (WATCHER, SECOND, WATCHER):
        world.challenge(name, FALSE)
        for _ in range(3):
            world.rule(*NOTHING)
    assert world.job.deadline == until
    assert world.settle().job.phase is Phase.SETTLED


def test_job_16__who_could_not_be_told_may_challenge_the_next_attempt() -> None:
    world = World().accept().commit(FALSE, 4)
    for _ in range(3):
        world.challenge(WATCHER).rule(*NOTHING)
    world.challenge(ANNA).loses(SOLVER, ANNA)
    world.accept(SECOND).commit(FALSE, 4).challenge(WATCHER)
    assert world.job.phase is Phase.DISPUTED
