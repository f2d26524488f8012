"""What operators accept, and what they refuse, by rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.arithmetic import bounded, permute, philox4x32, uniform24
from identic.protocol.dtypes import DType
from identic.protocol.errors import ProtocolError
from identic.protocol.ops import TABLE
from identic.protocol.ops.evaluate import element, entries
from identic.protocol.ops.folds import (
    MAX_ENTRIES,
    Constant,
    Element,
    Entry,
    Fold,
    Looked,
    Nested,
    Operand,
    Step,
)
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.program.context import context
from identic.protocol.program.types import CONTEXT_TYPE
from identic.protocol.tensors import TensorType
from tests.helpers.calls import BUILDERS, Case, calls, case
from tests.helpers.effort import examples

F, I64, I32, B, U8 = DType.FLOAT32, DType.INT64, DType.INT32, DType.BOOL, DType.UINT8
Kind = tuple[DType, tuple[int, ...]]

ROOT = Path(__file__).resolve().parents[3]


def refused(rule: str, name: str, *kinds: Kind, **attributes: object) -> None:
    with pytest.raises(ProtocolError) as caught:
        case(name, [TensorType.of(*k) for k in kinds], [], **attributes)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("name", "kinds", "attributes"),
    [
        ("exp", [(I64, (2,))], {}),
        ("not", [(F, (2,))], {}),
        ("add", [(F, (2,)), (I64, (2,))], {}),
        ("add", [(U8, (2,)), (U8, (2,))], {}),
        ("div", [(I64, (2,)), (I64, (2,))], {}),
        ("lt", [(B, (2,)), (B, (2,))], {}),
        ("and", [(I64, (2,)), (I64, (2,))], {}),
        ("where", [(I64, (2,)), (F, (2,)), (F, (2,))], {}),
        ("where", [(B, (2,)), (F, (2,)), (I64, (2,))], {}),
        ("sum_last", [(B, (2,))], {}),
        ("argmax", [(U8, (2,))], {}),
        ("matmul", [(I64, (2, 2)), (I64, (2, 2))], {}),
        ("take_rows", [(F, (2,)), (U8, (2,))], {}),
        ("gather", [(F, (2,)), (F, (2,))], {"axis": 0}),
        ("add_rows", [(I64, (2,)), (I64, (2,)), (I64, (2,))], {}),
        ("concat", [(F, (2,)), (I64, (2,))], {"axis": 0}),
        ("iota", [], {"count": 2, "dtype": F, "start": 0, "step": 1}),
        ("random_uniform", [(I32, (6,))], {"shape": (), "stream": 0}),
    ],
)
def test_op_1__other_element_types_are_refused(
    name: str, kinds: list[Kind], attributes: dict[str, object]
) -> None:
    refused("OP-1", name, *kinds, **attributes)


@pytest.mark.parametrize("name", ["add", "maximum", "eq"])
def test_op_2__shapes_that_do_not_broadcast_are_refused(name: str) -> None:
    refused("OP-2", name, (F, (2, 3)), (F, (2,)))
    refused("OP-2", name, (F, (0,)), (F, (2,)))
    made = case(name, [TensorType.of(F, (2, 1)), TensorType.of(F, (3,))], [])
    assert made.call.output.shape == (2, 3)


def test_op_2__batches_of_matmul_broadcast() -> None:
    kinds = [TensorType.of(F, (5, 1, 2, 3)), TensorType.of(F, (4, 3, 7))]
    assert case("matmul", kinds, []).call.output.shape == (5, 4, 2, 7)
    refused("OP-2", "matmul", (F, (2, 2, 3)), (F, (3, 3, 1)))


@pytest.mark.parametrize(
    ("name", "kinds", "attributes"),
    [
        ("sum_last", [(F, ())], {}),
        ("amax", [(F, (2, 0))], {}),
        ("argmax", [(F, (0,))], {}),
        ("matmul", [(F, (2,)), (F, (2, 2))], {}),
        ("matmul", [(F, (2, 3)), (F, (2, 3))], {}),
        ("take_rows", [(F, ()), (I64, (2,))], {}),
        ("gather", [(F, (2, 2)), (I64, (2,))], {"axis": 0}),
        ("gather", [(F, (2, 2)), (I64, (3, 3))], {"axis": 0}),
        ("take_windows", [(F, (2, 2)), (I64, (2,))], {"length": 1}),
        ("add_rows", [(F, (2, 3)), (I64, (4,)), (F, (4, 2))], {}),
        ("add_rows", [(F, (2,)), (I64, (2, 2)), (F, (2, 2))], {}),
        ("reshape", [(F, (2, 3))], {"shape": (5,)}),
        ("expand", [(F, (2,))], {"shape": (1,)}),
        ("concat", [(F, (2, 3)), (F, (2, 4))], {"axis": 0}),
        ("concat", [(F, ())], {"axis": 0}),
        ("random_index", [(I64, (5,))], {"bound": 2, "count": 1, "stream": 0}),
    ],
)
def test_op_3__other_shapes_are_refused(
    name: str, kinds: list[Kind], attributes: dict[str, object]
) -> None:
    refused("OP-3", name, *kinds, **attributes)


@pytest.mark.parametrize(
    ("name", "kinds", "attributes"),
    [
        ("cast", [(F, (2,))], {"dtype": 0}),
        ("cast", [(F, (2,))], {"dtype": 7}),
        ("gather", [(F, (2,)), (I64, (2,))], {"axis": 1}),
        ("gather", [(F, (2,)), (I64, (2,))], {"axis": -1}),
        ("take_windows", [(F, (2,)), (I64, (2,))], {"length": -1}),
        ("reshape", [(F, (2,))], {"shape": (-1, -2)}),
        ("permute", [(F, (2, 3))], {"axes": (0, 0)}),
        ("permute", [(F, (2, 3))], {"axes": (0,)}),
        ("slice", [(F, (4,))], {"start": (0,), "step": (0,), "stop": (4,)}),
        ("slice", [(F, (4,))], {"start": (3,), "step": (1,), "stop": (2,)}),
        ("slice", [(F, (4,))], {"start": (0,), "step": (1,), "stop": (5,)}),
        ("slice", [(F, (4,))], {"start": (), "step": (1,), "stop": (2,)}),
        ("concat", [(F, (2,))], {"axis": 1}),
        ("pad", [(F, (2,))], {"after": (-1,), "before": (0,), "value": 0}),
        ("pad", [(F, (2,))], {"after": (0,), "before": (0,), "value": 1 << 32}),
        ("full", [], {"dtype": B, "shape": (), "word": 2}),
        ("full", [], {"dtype": I64, "shape": (), "word": 1 << 63}),
        ("full", [], {"dtype": F, "shape": (-1,), "word": 0}),
        ("iota", [], {"count": -1, "dtype": I64, "start": 0, "step": 1}),
        ("random_uniform", [(I64, (6,))], {"shape": (), "stream": 1 << 32}),
        ("random_index", [(I64, (6,))], {"bound": 0, "count": 1, "stream": 0}),
        ("shuffled_index", [(I64, (6,))], {"bound": 1, "count": 1, "shards": 0}),
    ],
)
def test_op_5__attributes_outside_their_range_are_refused(
    name: str, kinds: list[Kind], attributes: dict[str, object]
) -> None:
    refused("OP-5", name, *kinds, **attributes)


@pytest.mark.parametrize("index", [-1, 3, -(2**63), 2**63 - 1])
def test_op_4__an_index_outside_reads_zero_and_writes_nothing(index: int) -> None:
    word = I64.pattern(index)
    table, one = TensorType.of(F, (3,)), TensorType.of(I64, (1,))
    looked = [
        case("take_rows", [table, one], [[7, 8, 9], [word]]),
        case("gather", [table, one], [[7, 8, 9], [word]], axis=0),
        case("take_windows", [table, one], [[7, 8, 9], [word]], length=1),
    ]
    assert [element(c.call, 0, c.read) for c in looked] == [0, 0, 0]
    kinds = [table, one, TensorType.of(F, (1,))]
    scattered = case("add_rows", kinds, [[7, 8, 9], [word], [0x3F800000]])
    assert [element(scattered.call, i, scattered.read) for i in range(3)] == [7, 8, 9]


def test_op_4__a_window_reads_zero_beyond_the_end_and_from_a_negative_start() -> None:
    kinds = [TensorType.of(F, (3,)), TensorType.of(I64, (2,))]
    made = case("take_windows", kinds, [[7, 8, 9], [2, I64.pattern(-1)]], length=3)
    assert [element(made.call, i, made.read) for i in range(6)] == [9, 0, 0, 0, 0, 0]


def every_step(fold: Fold) -> list[Step]:
    """All primitive steps of a fold and what is nested in it."""
    out = []
    for index in range(fold.length):
        entry = fold.entry(index)
        out += every_step(entry.fold) if isinstance(entry, Nested) else [entry]
    return out


@pytest.mark.parametrize("name", sorted(TABLE))
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_op_6__folds_are_made_of_known_steps_on_operands_of_their_types(
    name: str, data: st.DataObject
) -> None:
    made: Case = data.draw(calls(name))
    if not made.call.output.elements:
        return
    fold = made.call.op.fold(made.call, made.call.output.elements - 1)
    assert 1 <= fold.length <= MAX_ENTRIES
    for step in every_step(fold):
        primitive = PRIMITIVES[step.primitive]
        assert len(step.operands) == len(primitive.operands) <= 8
        for operand, dtype in zip(step.operands, primitive.operands, strict=True):
            _check_operand(made, operand, dtype)
    last = fold.entry(fold.length - 1)
    if isinstance(last, Step):
        assert PRIMITIVES[last.primitive].result in (None, made.call.output.dtype)


def _check_operand(made: Case, operand: Operand, dtype: DType | None) -> None:
    if isinstance(operand, Looked):
        _check_operand(made, operand.at, None)
        assert made.call.inputs[operand.at.input].dtype in (I64, I32)
    if isinstance(operand, Element):
        assert 0 <= operand.index < made.call.inputs[operand.input].elements
    if isinstance(operand, Element | Looked) and dtype is not None:
        assert made.call.inputs[operand.input].dtype is dtype
    if isinstance(operand, Constant) and dtype is not None:
        assert 0 <= operand.word < 1 << 8 * dtype.size


def test_op_6__the_example_of_the_specification() -> None:
    kinds = [TensorType.of(F, (2, 600)), TensorType.of(F, (600, 3))]
    made = case("matmul", kinds, [[0] * 1200, [0] * 1800])
    fold = made.call.op.fold(made.call, 5)
    shapes = [e.fold.length if isinstance(e, Nested) else e for e in map(fold.entry, range(5))]
    add = "add.float32"
    assert shapes == [
        256,
        256,
        Step(add, (Entry(0), Entry(1))),
        88,
        Step(add, (Entry(2), Entry(3))),
    ]
    assert entries(fold, made.read, made.call) == (0,) * 5


def test_op_8__every_operator_has_a_section_and_random_calls() -> None:
    text = (ROOT / "docs" / "spec" / "operators.md").read_text(encoding="utf-8")
    headings = {
        name.strip()
        for line in text.splitlines()
        if line.startswith("### ")
        for name in line[4:].split(",")
    }
    assert headings == set(TABLE) == set(BUILDERS)
    codes = [op.code for op in TABLE.values()]
    assert len(set(codes)) == len(codes)


seeds = st.integers(0, 2**64 - 1)


@given(seed=seeds, step=st.integers(0, 2**40), shard=st.integers(0, 5), i=st.integers(0, 99))
def test_op_20__num_17__a_uniform_depends_on_key_stream_shard_and_index(
    seed: int, step: int, shard: int, i: int
) -> None:
    words = list(context(seed, step, shard))
    made = case("random_uniform", [CONTEXT_TYPE], [words], shape=(10, 10), stream=77)
    block = philox4x32((words[2], words[3]), (i // 4, 0, 77, shard))
    assert element(made.call, i, made.read) == uniform24(block[i % 4])


@given(seed=seeds, shard=st.integers(0, 5), i=st.integers(0, 99), bound=st.integers(1, 2**63 - 1))
def test_op_21__num_17__an_index_takes_two_words(seed: int, shard: int, i: int, bound: int) -> None:
    words = list(context(seed, 3, shard))
    attributes = {"bound": bound, "count": 100, "stream": 5}
    made = case("random_index", [CONTEXT_TYPE], [words], **attributes)
    block = philox4x32((words[2], words[3]), (i // 2, 0, 5, shard))
    assert element(made.call, i, made.read) == bounded(
        block[2 * (i % 2)], block[2 * (i % 2) + 1], bound
    )


@settings(max_examples=examples(25), deadline=None)
@given(seed=seeds, bound=st.integers(1, 40), count=st.integers(1, 7), shards=st.integers(1, 3))
def test_op_22__each_pass_visits_every_example_once(
    seed: int, bound: int, count: int, shards: int
) -> None:
    seen: list[int] = []
    step = 0
    while len(seen) < 2 * bound:
        for shard in range(shards):
            words = list(context(seed, step, shard))
            attributes = {"bound": bound, "count": count, "shards": shards}
            made = case("shuffled_index", [CONTEXT_TYPE], [words], **attributes)
            seen += [element(made.call, i, made.read) for i in range(count)]
        step += 1
    assert sorted(seen[:bound]) == sorted(seen[bound : 2 * bound]) == list(range(bound))
    key = context(seed, 0, 0)[:2]
    assert seen[bound] == permute((key[0], key[1]), 1, bound, 0)
