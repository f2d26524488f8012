"""Interleaved repetitions: ours, a peer, another peer, ours, ... and the median of each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from identic.node.bench.rows import Case, Timed

Clock = Callable[[], float]

CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
"""``cpu`` counts the time of all threads: for a look at one thread on a busy machine."""


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        repetitions: turns of each side.
        turn_s: least length of a turn; a short call is made many times in it.
    """

    repetitions: int
    turn_s: float


QUICK = Effort(repetitions=2, turn_s=0.002)
FULL = Effort(repetitions=15, turn_s=0.05)

GLANCE_S = 0.005
"""How long one looks whether this process is at rest."""
MOST_GLANCES = 100

MOST_S = 25.0
"""Length of all turns together; with long calls there are fewer of them."""
FEWEST = 3

LONG_S = 0.1
"""A call this long needs no second one before it to be warm."""


@dataclass(frozen=True)
class Times:
    """Median seconds of one call of each side, and of how many turns."""

    ours: float
    peers: dict[str, float]
    repetitions: int


def measure(case: Case, effort: Effort, clock: Clock, threads: int) -> Times:
    """Time all sides of a case in turns.

    Args:
        case: what to time.
        effort: for how long.
        clock: seconds that pass.
        threads: of each side; with one there is nobody to wait for before a turn.
    """
    sides: dict[str, Timed] = {"": case.ours, **case.peers}
    single = {name: _single(side) for name, side in sides.items()}
    calls = {name: _calls(one, effort) for name, one in single.items()}
    times: dict[str, list[float]] = {name: [] for name in sides}
    fewest = min(FEWEST, effort.repetitions)
    repetitions = min(effort.repetitions, max(fewest, int(MOST_S / sum(single.values()))))
    for _ in range(repetitions):
        for name, side in sides.items():
            if threads > 1:
                _rest()
            if calls[name] > 1:
                side()
            times[name].append(_turn(side, calls[name], clock))
    medians = {name: statistics.median(found) for name, found in times.items()}
    return Times(medians.pop(""), medians, repetitions)


def _rest() -> None:
    """Wait until the other side's threads sleep: some spin for a tenth of a second for work."""
    for _ in range(MOST_GLANCES):
        before = time.process_time()
        time.sleep(GLANCE_S)
        if time.process_time() - before < GLANCE_S / 10:
            return


def _single(side: Timed) -> float:
    """Seconds of one call after the first."""
    side()
    return max(_turn(side, 1, time.perf_counter), 1e-9)


def _calls(one: float, effort: Effort) -> int:
    """Calls of a turn, of so many seconds each; at least 2 for all but long ones."""
    return 1 if one > LONG_S else max(2, round(effort.turn_s / one))


def _turn(side: Timed, calls: int, clock: Clock) -> float:
    """Seconds of a call, the mean of some in a row."""
    start = clock()
    for _ in range(calls):
        side()
    return (clock() - start) / calls
