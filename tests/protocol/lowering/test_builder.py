"""The section under construction: one value each, nothing unused, views read through."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.protocol.dtypes import DType
from identic.protocol.graph import Place
from identic.protocol.lowering import Builder
from identic.protocol.lowering.constants import float32_word, word
from identic.protocol.lowering.reductions import total
from identic.protocol.program.types import Section
from identic.protocol.program.unroll import section_calls
from identic.protocol.tensors import TensorType

F32 = DType.FLOAT32


def kind(*shape: int, dtype: DType = F32) -> TensorType:
    return TensorType.of(dtype, shape)


def ops(section: Section) -> list[str]:
    return [i.op for i in section.instructions]


def test_cap_5__a_value_exists_once() -> None:
    b = Builder([kind(4), kind(4)])
    first = b.emit("add", 0, 1)
    assert b.emit("add", 0, 1) == first
    assert b.emit("add", 1, 0) != first
    assert b.full(F32, 0.5) == b.full(F32, 0.5)
    assert b.full(F32, 0.0) != b.full(F32, -0.0)


def test_cap_5__unused_values_are_dropped_and_the_rest_renumbered() -> None:
    b = Builder([kind(4)])
    b.place = Place(module="unused")
    b.emit("exp", 0)
    b.place = Place(module="used")
    kept = b.emit("neg", b.emit("abs", 0))
    section, places = b.finish([kept, 0])
    assert ops(section) == ["abs", "neg"]
    assert [p.module for p in places] == ["used", "used"]
    assert section.outputs == (2, 0)
    assert [c.output for c in section_calls(section)] == [kind(4), kind(4)]


def test_cap_5__views_that_change_nothing_are_their_operand() -> None:
    b = Builder([kind(2, 3, 4)])
    assert b.reshape(0, (2, 3, 4)) == 0
    assert b.permute(0, [0, 1, 2]) == 0
    assert b.expand(0, (2, 3, 4)) == 0
    assert b.slice(0, 1, 0, 3) == 0
    assert b.cast(0, F32) == 0
    assert b.concat([0], 1) == 0
    assert b.permute(b.permute(0, [2, 0, 1]), [1, 2, 0]) == 0
    assert b.reshape(b.reshape(0, (6, 4)), (2, 3, 4)) == 0
    section, _ = b.finish([b.reshape(b.reshape(0, (24,)), (4, 6))])
    assert ops(section) == ["reshape"]


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_cap_5__two_permutations_are_the_one_they_make(one: list[int], two: list[int]) -> None:
    b = Builder([kind(2, 3, 4, 5)])
    value = b.permute(b.permute(0, one), two)
    array = np.zeros((2, 3, 4, 5)).transpose(one).transpose(two)
    assert b.shape(value) == array.shape
    section, _ = b.finish([value])
    assert len(section.instructions) <= 1


def test_cap_5__elementwise_operators_read_through_expansions() -> None:
    b = Builder([kind(3, 1), kind(3, 4), kind()])
    wide = b.expand(0, (3, 4))
    section, _ = b.finish([b.elementwise("mul", wide, 1)])
    assert ops(section) == ["mul"]
    assert section.instructions[0].inputs == (0, 1)
    both = b.elementwise("add", b.expand(0, (3, 4)), b.expand(2, (3, 4)))
    # One of the two must keep the shape of the result.
    assert b.shape(both) == (3, 4)


@given(st.floats(width=64, allow_nan=True, allow_infinity=True))
def test_cap_6__constants_are_rounded_once_to_nearest_even(value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        want = int(np.array([value], np.float64).astype(np.float32).view(np.uint32)[0])
    assert float32_word(value) == (0x7FC00000 if math.isnan(value) else want)


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        (DType.INT64, -100, -100),
        (DType.INT32, -1, 0xFFFFFFFF),
        (DType.UINT8, 255, 255),
        (DType.BOOL, 2.5, 1),
        (DType.BFLOAT16, 1.0, 0x3F80),
        (F32, math.pi, struct.unpack("<I", struct.pack("<f", math.pi))[0]),
        (F32, 1e39, 0x7F800000),
        (F32, -1e39, 0xFF800000),
    ],
)
def test_cap_6__a_constant_is_an_attribute_of_its_type(
    dtype: DType, value: float, want: int
) -> None:
    assert word(dtype, value) == want
    b = Builder([])
    assert b.types[b.full(dtype, value)] == kind(dtype=dtype)


def summed(shape: tuple[int, ...], axes: list[int]) -> tuple[Builder, list[str]]:
    b = Builder([kind(*shape)])
    value = total(b, 0, axes)
    assert b.shape(value) == tuple(n for i, n in enumerate(shape) if i not in axes)
    return b, ops(b.finish([value])[0])


@pytest.mark.parametrize(
    ("shape", "axes", "want"),
    [
        ((8, 5), [1], ["sum_last"]),
        ((8, 5), [0], ["sum_first"]),
        ((8, 5), [0, 1], ["reshape", "sum_last"]),
        ((2, 8, 5), [0, 1], ["reshape", "sum_first"]),
        ((2, 8, 5), [1, 2], ["reshape", "sum_last"]),
        ((2, 8, 5), [1], ["permute", "sum_last"]),
        ((2, 8, 5), [0, 2], ["permute", "reshape", "sum_last"]),
        ((1, 8, 5), [0], ["reshape"]),
        ((1, 8, 5), [0, 1], ["reshape", "sum_first"]),
        ((8, 1), [0], ["permute", "sum_last"]),
        ((), [], []),
    ],
)
def test_cap_7__leading_axes_use_the_column_rule_and_others_the_row_rule(
    shape: tuple[int, ...], axes: list[int], want: list[str]
) -> None:
    assert summed(shape, axes)[1] == want


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5).flatmap(
        lambda shape: st.tuples(
            st.just(tuple(shape)), st.sets(st.integers(0, len(shape) - 1)).map(sorted)
        )
    )
)
def test_cap_7__any_set_of_axes_gives_the_shape_without_them(
    case: tuple[tuple[int, ...], list[int]],
) -> None:
    _, names = summed(*case)
    assert sum(n in ("sum_first", "sum_last") for n in names) <= 1
