"""A toy job, small enough to play every game about it.

The state is two int32 counters. A step adds the data to them in a way that has everything a
dispute can meet: a chain with a nested fold, an operator after it, loads of all three kinds,
and a loss.
"""

from __future__ import annotations

from typing import ClassVar

from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, Unsigned
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call, Operator
from identic.protocol.ops.folds import Element, Entry, Fold, Nested, Outer, Step
from identic.protocol.program.plan import Load, Part, PlannedCall, Source, StepPlan
from identic.protocol.program.types import (
    CONTEXT_TYPE,
    LOSS_TYPE,
    Attribute,
    Program,
    Section,
    Variable,
)
from identic.protocol.tensors import TensorType

COUNTERS = TensorType.of(DType.INT32, (2,))


class Tally(Operator):
    """``state + 4 * data``, one addition after the other, three of them in a nested fold."""

    name: ClassVar[str] = "tally"
    code: ClassVar[int] = 65_000
    arity: ClassVar[int] = 2

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        del attributes
        return inputs[0]

    def fold(self, call: Call, element: int) -> Fold:
        del call
        data = Element(1, element)

        def inner(index: int) -> Step:
            return Step("add.int32", (Entry(index - 1) if index else Outer(0), data))

        def outer(index: int) -> Step | Nested:
            if index == 0:
                return Step("add.int32", (Element(0, element), data))
            if index == 1:
                return Nested(Fold(3, inner))
            return Step("copy", (Entry(1),))

        return Fold(3, outer)


def counter_plan() -> StepPlan:
    """Loads: counters, data, context; then tally, a copy of it, and the loss."""
    empty = Section((), (), ())
    program = Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(3),
        parameters=(Variable("counters", COUNTERS),),
        trainable=(),
        buffers=(),
        optimizer=(),
        data=(Variable("amounts", COUNTERS),),
        gradient=empty,
        update=empty,
    )
    tally = Tally().call((COUNTERS, COUNTERS), ())
    shape = Attribute("shape", (2,))
    copy = TABLE["reshape"].call((COUNTERS,), (shape,))
    kind = Attribute("dtype", (int(DType.FLOAT32),))
    loss = TABLE["full"].call((), (kind, Attribute("shape", ()), Attribute("word", (0,))))
    return StepPlan(
        program=program,
        loads=(
            Load(Source.STATE, 0, COUNTERS),
            Load(Source.DATA, 0, COUNTERS),
            Load(Source.CONTEXT, 0, CONTEXT_TYPE),
        ),
        calls=(
            PlannedCall(tally, (0, 1), Part.UPDATE, 0, 0),
            PlannedCall(copy, (3,), Part.UPDATE, 0, 1),
            PlannedCall(loss, (), Part.UPDATE, 0, 2),
        ),
        outputs=(4, 5),
    )


def counter_state() -> list[bytes]:
    """Counters at 1 and 2; loss 0."""
    return [bytes([1, 0, 0, 0, 2, 0, 0, 0]), bytes(LOSS_TYPE.nbytes)]


def counter_data() -> list[bytes]:
    """What is added: 3 and 5."""
    return [bytes([3, 0, 0, 0, 5, 0, 0, 0])]


def distinct(number: int) -> Unsigned:
    """Words that no honest counter has."""
    return Unsigned(1_000_000 + number)
