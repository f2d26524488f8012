"""The passes over a section change no bit of its outputs, and none slips through invalid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.dtypes import DType
from identic.protocol.errors import LocalError
from identic.protocol.graph import Place
from identic.protocol.ids import Unsigned
from identic.protocol.lowering import Builder, passes
from identic.protocol.lowering.passes import PASSES, Body
from identic.protocol.ops import TABLE
from identic.protocol.ops.evaluate import element
from identic.protocol.program.types import Instruction
from identic.protocol.tensors import TensorType
from tests.helpers.effort import examples

KIND = TensorType.of(DType.FLOAT32, (2,))
INPUTS = (KIND, TensorType.of(DType.FLOAT32, ()), TensorType.of(DType.BOOL, (2,)))
WORDS = (0, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x7F7FFFFF, 0xC0490FDB)


def _read(values: Sequence[Sequence[int]], number: int, at: int) -> int:
    return values[number][at]


def words_of(body: Body, given: Sequence[Sequence[int]]) -> list[list[int]]:
    """Words of the outputs, by the definitions of the operators."""
    values, types = [list(g) for g in given], list(body.inputs)
    for made in body.instructions:
        call = TABLE[made.op].call(tuple(types[i] for i in made.inputs), made.attributes)
        read = partial(_read, [values[i] for i in made.inputs])
        values.append([element(call, n, read) for n in range(call.output.elements)])
        types.append(call.output)
    return [values[o] for o in body.outputs]


_OPERATORS = ("full", "add", "mul", "neg", "sqrt", "lt", "where", "cast")


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Sections of elementwise operators over inputs and constants, with repeats and leftovers."""
    types = list(INPUTS)
    made: list[Instruction] = []

    def emit(op: str, inputs: tuple[int, ...], **attributes: int | Sequence[int]) -> None:
        builder = Builder(types)
        value = builder.emit(op, *inputs, **attributes)
        found = builder.maker(value)
        assert found is not None
        kind = builder.types[value]
        made.append(Instruction(op, tuple(map(Unsigned, inputs)), found.attributes, kind))
        types.append(kind)

    for _ in range(draw(st.integers(1, 14))):
        floats = [i for i, t in enumerate(types) if t.dtype == DType.FLOAT32]
        truths = [i for i, t in enumerate(types) if t.dtype == DType.BOOL]
        one, other = draw(st.sampled_from(floats)), draw(st.sampled_from(floats))
        op = draw(
            st.sampled_from(["full", "full", "add", "mul", "neg", "sqrt", "lt", "where", "cast"])
        )
        if op == "full":
            shape = draw(st.sampled_from([(), (2,)]))
            emit(op, (), dtype=DType.FLOAT32, shape=shape, word=draw(st.sampled_from(WORDS)))
        elif op == "where":
            emit(op, (draw(st.sampled_from(truths)), one, other))
        elif op == "cast":
            emit(op, (draw(st.sampled_from(truths)),), dtype=DType.FLOAT32)
        else:
            emit(op, (one,) if op in ("neg", "sqrt") else (one, other))
    outputs = draw(st.lists(st.integers(0, len(types) - 1), min_size=1, max_size=4))
    places = tuple(Place(text=str(i)) for i in range(len(made)))
    return Body(INPUTS, tuple(made), places, tuple(outputs))


@settings(max_examples=examples(150), deadline=None)
@given(
    body=bodies(),
    a=st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)),
    b=st.sampled_from(WORDS),
    c=st.tuples(st.booleans(), st.booleans()),
)
def test_cap_5__passes_keep_every_bit_of_the_outputs(
    body: Body, a: tuple[int, int], b: int, c: tuple[bool, bool]
) -> None:
    given_words = [list(a), [b], [int(x) for x in c]]
    want = words_of(body, given_words)
    for count in range(1, len(PASSES)):
        assert words_of(passes.run(body, PASSES[:count]), given_words) == want
    done = passes.run(body)
    assert words_of(done, given_words) == want
    # What is left is needed, and there once; its places are those it had, in order.
    used = {i for made in done.instructions for i in made.inputs} | set(done.outputs)
    assert set(range(len(INPUTS), len(INPUTS) + len(done.instructions))) <= used
    assert len(set(done.instructions)) == len(done.instructions)
    order = [int(p.text) for p in done.places]
    assert order == sorted(order)
    assert passes.run(done) == done


def test_cap_5__constants_become_one_and_nothing_else_is_computed() -> None:
    builder = Builder(INPUTS)
    two = builder.full(DType.FLOAT32, 2.0)
    root = builder.emit("sqrt", builder.emit("mul", two, two))
    kept = builder.emit("mul", root, 0)
    unused = builder.emit("add", kept, 1)
    del unused
    section, _ = builder.finish([kept, builder.emit("mul", 0, builder.full(DType.FLOAT32, 1.0))])
    assert [i.op for i in section.instructions] == ["full", "mul", "full", "mul"]
    assert section.instructions[0].attributes[-1].values == (0x40000000,)


def _later(body: Body) -> Body:
    first = replace(body.instructions[0], inputs=(Unsigned(9), Unsigned(9)))
    return replace(body, instructions=(first, *body.instructions[1:]))


def _other_type(body: Body) -> Body:
    return replace(body, outputs=(2,) * len(body.outputs))


def _lie(body: Body) -> Body:
    first = replace(body.instructions[0], output=INPUTS[2])
    return replace(body, instructions=(first, *body.instructions[1:]))


def _no_operator(body: Body) -> Body:
    first = replace(body.instructions[0], inputs=(Unsigned(0), Unsigned(2)))
    return replace(body, instructions=(first, *body.instructions[1:]))


def _no_places(body: Body) -> Body:
    return replace(body, places=())


@pytest.mark.parametrize("wrong", [_later, _other_type, _lie, _no_operator, _no_places])
def test_cap_5__what_a_pass_makes_is_checked(wrong: passes.Pass) -> None:
    builder = Builder(INPUTS)
    section, places = builder.finish([builder.emit("add", 0, 1)])
    outputs = tuple(int(o) for o in section.outputs)
    body = Body(section.inputs, section.instructions, places, outputs)
    with pytest.raises(LocalError, match="pass over wrong"):
        passes.run(body, [("wrong", wrong)])
