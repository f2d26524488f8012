"""A deliberate wrong result, for rehearsals and for forced errors.

One primitive step of one element of one operator's result is wrong; everything after it,
in the element and in the rest of the run, is computed honestly. The same description
serves execution (the element is replaced in the result) and disputes (the partial values
that lead to it are published), so that the liar's story holds together down to that step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from identic.kernels.arrays import Array
from identic.node.execution.elements import with_word, word_at
from identic.protocol.errors import LocalError
from identic.protocol.ids import Count, StepIndex, Unsigned
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import ReadElement, apply, read_operand
from identic.protocol.ops.folds import Fold, Nested, Step, run
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.program.plan import StepPlan

WRONG = "wrong "
"""Prefix of the primitive whose result is altered, inside this module only."""


@dataclass(frozen=True)
class ForcedError:
    """Which primitive step is wrong, and how."""

    step: StepIndex
    """Training step, counted from 0."""
    value: Count
    """Plan value whose element is wrong; an operator's, not a load's."""
    element: Count
    """Flat position of the element."""
    path: tuple[Count, ...]
    """Entry of the element's fold, then of the fold nested in that, down to one primitive step."""
    flip: Unsigned
    """Bits that are inverted in that step's result."""

    def check(self, plan: StepPlan, steps: int) -> None:
        """Refuse a position that a run of ``steps`` steps of the plan does not have.

        Raises:
            LocalError: the configuration names no primitive step of this job.
        """
        # EXE-6: a forced error is at a place of the job, and within its result.
        if self.step >= steps:
            raise LocalError(
                f"the forced error names step {self.step} of {steps}",
                remedy=f"name a step from 0 to {steps - 1}",
            )
        planned = plan.call(self.value) if self.value < plan.values else None
        if planned is None or self.element >= planned.call.output.elements:
            raise LocalError(
                f"the forced error names element {self.element} of value {self.value}",
                remedy=f"name an operator's result: values {len(plan.loads)} to {plan.values - 1}",
            )
        entry: Step | Nested = Nested(planned.call.op.fold(planned.call, self.element))
        for index in self.path:
            if not isinstance(entry, Nested) or index >= entry.fold.length:
                raise LocalError(
                    f"the forced error's path {self.path} leaves the element", remedy="shorten it"
                )
            entry = entry.fold.entry(index)
        if isinstance(entry, Nested):
            raise LocalError(
                f"the forced error's path {self.path} ends early",
                remedy="go on to a primitive step",
            )
        kind = PRIMITIVES[entry.primitive].result or planned.call.output.dtype
        if self.flip >= 1 << (8 * kind.size):
            raise LocalError(
                f"the forced error inverts bits {self.flip:#x} of a result of {kind.size} bytes",
                remedy=f"invert bits below {1 << (8 * kind.size):#x}",
            )


def spoil(fold: Fold, path: Sequence[int]) -> Fold:
    """The same fold with the primitive step at ``path`` marked as wrong."""

    def at(index: int) -> Step | Nested:
        entry = fold.entry(index)
        if index != path[0]:
            return entry
        if isinstance(entry, Nested):
            return Nested(spoil(entry.fold, path[1:]))
        return Step(WRONG + entry.primitive, entry.operands)

    return Fold(fold.length, at)


def spoiled_entries(
    fold: Fold,
    flip: int,
    read_element: ReadElement,
    call: Call,
    outer: tuple[tuple[int, ...], ...] = (),
) -> tuple[int, ...]:
    """Values of a fold's entries, with the marked step's result inverted in the bits ``flip``."""

    def altered(primitive: str, words: tuple[int, ...]) -> int:
        if primitive.startswith(WRONG):
            return apply(primitive.removeprefix(WRONG), words) ^ flip
        return apply(primitive, words)

    return run(fold, lambda operand: read_operand(operand, read_element, call), altered, outer)


class Spoiler:
    """Watches a step's values go by and replaces the one that is to be wrong."""

    def __init__(self, plan: StepPlan, forced: ForcedError) -> None:
        planned = plan.call(forced.value)
        if planned is None:
            raise RuntimeError("a load cannot be spoiled")
        self._planned = planned
        self._forced = forced
        self._inputs: dict[int, Array] = {}

    def __call__(self, value: int, array: Array) -> Array:
        """Return the value as it is to go on: ``array``, or a wrong copy of it."""
        if value in self._planned.inputs:
            self._inputs[value] = array
        if value != self._forced.value:
            return array
        call, element = self._planned.call, self._forced.element

        def read(which: int, index: int) -> int:
            return word_at(self._inputs[self._planned.inputs[which]], index)

        fold = spoil(call.op.fold(call, element), self._forced.path)
        word = spoiled_entries(fold, self._forced.flip, read, call)[-1]
        return with_word(array, element, word)
