"""A claim is entered however often others come first, and whatever contest runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from identic.node.logging import get_logger
from identic.node.participant.base import REFUSALS, Participant
from identic.protocol.job.entries import Loser, Verdicts
from identic.protocol.job.messages import Statement
from identic.protocol.job.state import Job
from tests.protocol.job.world import CLOCKS, FALSE, SECOND, SOLVER, WATCHER, World


class Racer(Participant):
    """A party on whose board friends of the solver may have opened a contest before."""

    def __init__(self, world: World, *, refused: int = 0) -> None:
        self.world = world
        self.party = WATCHER
        self.refused = refused
        self.tries = 0
        self.mirror: Any = self
        self.log = get_logger("test")

    @property
    def size(self) -> int:
        """Entries of the log; something happens with every try."""
        return self.tries

    def current(self, job: Job) -> Job | None:
        now = self.world.job
        return None if now.attempt != job.attempt else now

    async def until(self, condition: Callable[[], Any]) -> Any:
        if condition() is None:
            # The friends' contest ends.
            self.world.loses(SECOND, SOLVER)
        return condition()

    async def try_to_say(self, statement: Statement) -> bool:
        self.tries += 1
        if self.tries <= self.refused:
            return False
        try:
            self.world.say(WATCHER, statement, f"try {self.tries}")
        except Exception:  # noqa: BLE001 - whatever the machine says
            return False
        self.world.set_up()
        return True

    async def catch_up(self) -> None:
        """The mirror is what the test says."""

    async def enters(self) -> bool:
        """Challenge the lie."""
        return await self.challenge(self.world.job, 2, self.world.claim().root)


def lying() -> World:
    """A run with a lie at mark 2."""
    return World().accept().commit(FALSE, 4)


async def test_a_claim_opens_a_contest() -> None:
    racer = Racer(lying())
    assert await racer.enters()
    assert racer.world.contest.doubts(WATCHER)


async def test_a_claim_is_entered_into_a_contest_that_runs() -> None:
    racer = Racer(lying().challenge(SECOND, FALSE[::-1], 1))
    assert await racer.enters()
    assert [racer.tries, len(racer.world.contest.claims)] == [1, 3]


async def test_who_comes_too_late_for_a_contest_opens_the_next() -> None:
    racer = Racer(lying().challenge(SECOND, FALSE[::-1], 1).wait(CLOCKS.window_ms))
    assert await racer.enters()
    assert racer.tries == 2
    assert racer.world.contest.doubts(WATCHER)


async def test_a_claim_that_stands_already_is_not_made_again() -> None:
    racer = Racer(lying().challenge(WATCHER))
    assert await racer.enters()
    assert racer.tries == 0


async def test_there_is_nothing_to_claim_when_the_attempt_is_over() -> None:
    world = lying()
    before = world.job
    world.challenge(SECOND).loses(SOLVER, SECOND)
    racer = Racer(world)
    assert not await racer.challenge(before, 2, before.marks[2].state_root)
    assert racer.tries == 0


@pytest.mark.parametrize("refused", [1, REFUSALS - 1])
async def test_a_refusal_is_tried_again(refused: int) -> None:
    assert await Racer(lying(), refused=refused).enters()


async def test_a_challenge_that_is_refused_for_itself_is_given_up() -> None:
    racer = Racer(lying(), refused=100)
    assert not await racer.enters()
    assert racer.tries == REFUSALS


async def test_a_ruling_in_the_contest_before_changes_nothing() -> None:
    world = lying().challenge(SECOND).rule(Verdicts.CANNOT_TELL, Loser.NOBODY)
    assert await Racer(world).enters()
