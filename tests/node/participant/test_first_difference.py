"""A whistleblower that finds a difference looks at what is before it: only the first one counts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from identic.node.logging import get_logger
from identic.node.whistleblower.role import Whistleblower
from identic.node.worker.frames import MarkDone, StoredState
from identic.protocol.ids import Count, Digest, StepIndex, Unsigned
from identic.protocol.job.messages import Mark
from identic.protocol.job.state import Job
from tests.protocol.job.world import FALSE, HONEST, SECOND, World, digest, judged

TWICE = (*FALSE[:3], digest("twice false"), FALSE[4])


def reached(index: int, root: Digest) -> MarkDone:
    """A mark that was executed."""
    return MarkDone(Count(index), Mark(StepIndex(2 * index), root, Unsigned(0), ()))


class Watcher(Whistleblower):
    """A whistleblower that has an honest run at hand."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log = get_logger("test")
        self.executed: list[int] = []

    def current(self, job: Job) -> Job | None:
        del job
        return self.world.job

    async def _marks(
        self, worker: Any, job: Job, start: StoredState, last: int
    ) -> AsyncIterator[MarkDone]:
        del worker, job
        for mark in range(int(start.mark) + 1, last + 1):
            self.executed.append(mark)
            yield reached(mark, HONEST[mark])


async def found(watcher: Watcher, start: int, differs: MarkDone) -> MarkDone:
    """The first difference, when one was found after a stored state."""
    state = StoredState(Count(start), digest("blob"))
    return await watcher._first(None, watcher.world.job, state, differs)  # type: ignore[arg-type]


def at(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    """It is this time."""
    monkeypatch.setattr(time, "time", lambda: milliseconds / 1000)


async def test_an_earlier_difference_is_the_one_that_is_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = judged(TWICE)
    at(monkeypatch, world.now)
    watcher = Watcher(world)
    later = reached(3, digest("what follows from the false mark 2"))
    assert await found(watcher, 2, later) == reached(2, HONEST[2])
    assert watcher.executed == [1, 2]


async def test_a_difference_after_the_initial_state_is_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = judged(FALSE)
    at(monkeypatch, world.now)
    watcher = Watcher(world)
    assert await found(watcher, 0, reached(2, HONEST[2])) == reached(2, HONEST[2])
    assert watcher.executed == []


async def test_when_time_for_claims_is_short_what_is_known_must_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = judged(TWICE)
    assert world.job.deadline is not None
    at(monkeypatch, int(world.job.deadline) - 1)
    later = reached(3, digest("what follows from the false mark 2"))
    watcher = Watcher(world)
    assert await found(watcher, 2, later) == later
    assert watcher.executed == [1]
    # A contest that lets nobody in much longer is as pressing.
    world = judged(TWICE).challenge(SECOND, HONEST[::-1], 1)
    at(monkeypatch, world.now)
    assert not Watcher(world)._pressed(world.job)
    at(monkeypatch, int(world.contest.entry_until) - 1)
    assert Watcher(world)._pressed(world.job)
