"""The clocks of a dispute: what a round allows, what a side has in reserve, how long all takes.

A round gives both sides the same allowance. What a side takes beyond it comes out of its
reserve, which is for the whole dispute. Allowances follow from what a move needs: time to
answer from what was just computed, or time to execute steps again, priced by the speed at
which the solver itself committed to its run.

Spec: docs/spec/dispute.md (DSP-10, DSP-17, DSP-18).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from identic.protocol.dispute.moves import Pair, Side
from identic.protocol.dispute.setup import Setup
from identic.protocol.ids import Millis
from identic.protocol.job.terms import JobTerms
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.program.plan import StepPlan

SLOWER = 8
"""How much slower than the solver's run an honest re-execution may be."""

LOOKED = 6
"""Plain steps that one takes whose values are looked at one by one and hashed, about."""

MOST = 4
"""Largest allowance for re-execution, in multiples of ``rerun_ms``."""

LONG = 1 << 15
"""Primitive steps of a fold whose entries take a while to compute one by one."""


@dataclass(frozen=True)
class Pause:
    """No move could be taken: the coordinator was not at work. An event of the dispute."""

    since: Millis
    """Unix time at which it was last at work."""
    at: Millis
    """Unix time from which it was at work again."""

    @property
    def length_ms(self) -> int:
        """How long it lasted."""
        return self.at - self.since


@dataclass(frozen=True)
class Clock:
    """The clock of a round."""

    began: Millis
    """Unix time at which the round began."""
    allowance: Millis
    """Time that costs a side nothing."""
    reserves: Pair[Millis]
    """What each side has left beyond allowances, for the rest of the dispute."""

    def deadline(self, side: Side) -> Millis:
        """Unix time after which a side that has not moved is late (DSP-17)."""
        return Millis(self.began + self.allowance + self.reserves.of(side))

    def charged(self, side: Side, at: Millis) -> Clock:
        """The clock after a side's move at Unix time ``at``, by its deadline."""
        # DSP-17: what a side takes beyond the allowance comes out of its reserve.
        over = max(0, at - (self.began + self.allowance))
        left = {s: Millis(self.reserves.of(s) - over * (s is side)) for s in Side}
        return replace(self, reserves=Pair(left[Side.DEFENDER], left[Side.CHALLENGER]))

    def after(self, pause: Pause) -> Clock:
        """The clock after a pause, which does not count."""
        return replace(self, began=Millis(self.began + pause.length_ms))

    def round(self, at: Millis, allowance: int) -> Clock:
        """The clock of a round that begins at Unix time ``at``."""
        return replace(self, began=at, allowance=Millis(allowance))


def first_clock(setup: Setup) -> Clock:
    """The clock before the first round: whole reserves."""
    # DSP-17: each side has the same reserve, which grows with the games it plays at once.
    reserve = Millis(reserve_ms(setup))
    return Clock(setup.opening.at, Millis(0), Pair(reserve, reserve))


def reserve_ms(setup: Setup) -> int:
    """Each side's reserve at the beginning, in milliseconds."""
    return setup.opening.load * setup.terms.clocks.budget_ms


def allowance_ms(setup: Setup, again: int | None) -> int:
    """Allowance of a round, in milliseconds.

    Args:
        setup: of the dispute.
        again: steps that a side has to execute again for its move; ``None`` when it answers
            from what it has at hand.
    """
    clocks = setup.terms.clocks
    # DSP-10: an answer that is at hand has the short allowance.
    if again is None:
        return clocks.move_ms
    # DSP-10: re-execution is priced by the solver's own speed, within limits from the terms.
    priced = SLOWER * setup.opening.step_ms * (again + LOOKED)
    return setup.opening.load * min(max(clocks.rerun_ms, priced), MOST * clocks.rerun_ms)


def steps_from_stored(terms: JobTerms, step: int) -> int:
    """Steps from the last state that the terms have stored, to the state after ``step`` steps."""
    return step % (terms.cadence * terms.checkpoint)


def weight(fold: Fold) -> int:
    """About how many primitive steps give the entries of a fold; never too few.

    Folds are regular: every entry is taken to be as heavy as the heaviest of the first two
    and the last.
    """
    heaviest = 1
    for index in {0, min(1, fold.length - 1), fold.length - 1}:
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            heaviest = max(heaviest, weight(entry.fold))
    return fold.length * heaviest


# ---- how long a dispute can last ------------------------------------------------------------


def longest_ms(setup: Setup, rounds: int) -> int:
    """Most milliseconds from the opening to a ruling, if time is called when it can be.

    Args:
        setup: of the dispute.
        rounds: most rounds that it can have, that of the evidence not counted.
    """
    # Once each: the interval, the step's first round, the output's first round, long folds.
    repeated = min(rounds, 3 + _long_folds(setup.plan))
    longest = setup.opening.load * MOST * setup.terms.clocks.rerun_ms
    moves = (rounds - repeated + 1) * setup.terms.clocks.move_ms
    # The first millisecond after a deadline is the first in which time can be called.
    return moves + repeated * longest + 2 * reserve_ms(setup) + 1


def _long_folds(plan: StepPlan) -> int:
    """Most folds inside each other that are long, of any element of the plan."""
    calls = (planned.call for planned in plan.calls if planned.call.output.elements)
    last = (call.op.fold(call, call.output.elements - 1) for call in calls)
    return max((_long_inside(fold) for fold in last), default=0)


def _long_inside(fold: Fold) -> int:
    if weight(fold) <= LONG:
        return 0
    ends = (fold.entry(index) for index in {0, min(1, fold.length - 1), fold.length - 1})
    return 1 + max((_long_inside(e.fold) for e in ends if isinstance(e, Nested)), default=0)
