"""A challenge comes through however often others come first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from identic.node.logging import get_logger
from identic.node.participant.base import REFUSALS, Participant
from identic.protocol.job.messages import Statement
from identic.protocol.job.state import Job, Phase
from tests.protocol.job.world import HONEST, head_of, trained


class Racer(Participant):
    """A party on whose board friends of the solver challenge first, some times."""

    def __init__(self, faster: int, *, refused: bool = False) -> None:
        self.job: Job = trained().job
        self.faster = faster
        self.refused = refused
        self.tries = 0
        self.mirror: Any = SimpleNamespace(size=0)
        self.log = get_logger("test")

    def current(self, job: Job) -> Job | None:
        del job
        return self.job

    async def until(self, condition: Callable[[], Any]) -> Any:
        if condition() is None:
            # The others' dispute ends.
            self.job = replace(self.job, phase=Phase.VERIFYING)
        return condition()

    async def try_to_say(self, statement: Statement) -> bool:
        del statement
        self.tries += 1
        self.mirror.size += 1
        if self.faster:
            self.faster -= 1
            self.job = replace(self.job, phase=Phase.DISPUTED)
            return False
        return not self.refused

    async def catch_up(self) -> None:
        """The mirror is what the test says."""


@pytest.mark.parametrize("faster", [0, 1, 5 * REFUSALS])
async def test_who_comes_second_challenges_when_it_is_free_again(faster: int) -> None:
    racer = Racer(faster)
    assert await racer.challenge(racer.job, head_of(HONEST))
    assert racer.tries == faster + 1


async def test_a_challenge_that_is_refused_for_itself_is_given_up() -> None:
    racer = Racer(0, refused=True)
    assert not await racer.challenge(racer.job, head_of(HONEST))
    assert racer.tries == REFUSALS
