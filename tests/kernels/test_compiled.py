"""Every operator inside a prepared step, on loads and on views of loads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels.arrays import Array, from_words, row_major, words
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.protocol.ids import Count, Unsigned
from identic.protocol.ops import TABLE
from identic.protocol.program.types import (
    CONTEXT_TYPE,
    Attribute,
    Instruction,
    Program,
    Section,
    Variable,
)
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from identic.protocol.tensors import TensorType
from tests.helpers.calls import Case, calls
from tests.helpers.effort import examples
from tests.helpers.programs import SectionBuilder


def program(case: Case, turned: list[bool], *, twice: bool) -> Program:
    """A step whose last buffer becomes the case's result.

    The other buffers are its operands, stored with their axes reversed where ``turned`` says
    so and turned back by a view. With ``twice`` the operator is computed two times.
    """
    kinds = [_turned(k) if t else k for k, t in zip(case.call.inputs, turned, strict=True)]
    b = SectionBuilder([*kinds, case.call.output, CONTEXT_TYPE])
    operands = []
    for number, (kind, turn) in enumerate(zip(case.call.inputs, turned, strict=True)):
        axes = list(reversed(range(len(kind.shape))))
        operands.append(b.op("permute", number, axes=axes) if turn else number)
    attributes = {a.name: a.values for a in case.call.attributes}
    loss = b.scalar(0.0)
    result = _append(b, case, operands, attributes)
    if twice:
        result = _append(b, case, operands, attributes)
    buffers = tuple(Variable(f"b{i}", kind) for i, kind in enumerate([*kinds, case.call.output]))
    return Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=(),
        trainable=(),
        buffers=buffers,
        optimizer=(),
        data=(),
        gradient=b.build(loss, *range(len(kinds)), result),
        update=Section((CONTEXT_TYPE,), (), ()),
    )


def _append(
    b: SectionBuilder, case: Case, operands: list[int], attributes: dict[str, tuple[int, ...]]
) -> int:
    written = tuple(Attribute(name, values) for name, values in attributes.items())
    inputs = tuple(Unsigned(i) for i in operands)
    b.instructions.append(Instruction(case.call.op.name, inputs, written, case.call.output))
    b.types.append(case.call.output)
    return len(b.types) - 1


def _turned(kind: TensorType) -> TensorType:
    return TensorType.of(kind.dtype, kind.shape[::-1])


def stored(kind: TensorType, values: list[int], *, turn: bool) -> Array:
    array = from_words(kind, values)
    return row_major(array.transpose()) if turn else array


@pytest.mark.parametrize("name", sorted(TABLE))
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_a_prepared_operator_gives_its_own_bits(name: str, data: st.DataObject) -> None:
    case = data.draw(calls(name))
    turned = [data.draw(st.booleans()) for _ in case.call.inputs]
    made = program(case, turned, twice=data.draw(st.booleans()))
    validate(made, Limits())
    operands = list(zip(case.call.inputs, case.inputs, strict=True))
    want = words(CpuBackend(1).run(case.call, [from_words(*o) for o in operands]))
    state = [stored(*o, turn=t) for o, t in zip(operands, turned, strict=True)]
    zeros = [from_words(k, [0] * k.elements) for k in (case.call.output, made.state[-1].type)]
    executor = Executor(unroll(made), CpuBackend(2))
    for step in range(2):
        got = executor.step([*state, *zeros], [], 1, step)
        assert words(got[-2]) == want
        assert [words(a) for a in got[: len(state)]] == [words(a) for a in state]
