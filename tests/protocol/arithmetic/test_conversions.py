"""Conversions between float32, bfloat16 and integers, and integer arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.protocol.arithmetic import f32, integers
from identic.protocol.arithmetic.integers import INT32, INT64, UINT8, Integer
from tests.protocol.arithmetic.oracle import (
    INFINITY,
    NAN,
    SIGN,
    SPECIALS,
    is_finite,
    is_nan,
    nearest,
    patterns,
    value,
)

TYPES = [(INT64, np.int64), (INT32, np.int32), (UINT8, np.uint8)]
RANGES = [
    (f32.to_int64, -(1 << 63), (1 << 63) - 1),
    (f32.to_int32, -(1 << 31), (1 << 31) - 1),
    (f32.to_uint8, 0, 255),
]


def truncated(x: int, low: int, high: int) -> int:
    if is_nan(x):
        return 0
    if not is_finite(x):
        return low if x & SIGN else high
    return min(max(math.trunc(value(x)), low), high)


@given(x=patterns)
def test_num_5__float_to_integer_truncates_and_saturates(x: int) -> None:
    for convert, low, high in RANGES:
        assert convert(x) == truncated(x, low, high)


def test_num_5__float_to_integer_at_the_ends_of_the_ranges() -> None:
    ends = [0x43800000, 0x4F000000, 0x5F000000, 0x3F800000, 0x437F0000]
    near = [e + d | s for e in ends for d in (-1, 0, 1) for s in (0, SIGN)]
    for x in [*near, *SPECIALS]:
        for convert, low, high in RANGES:
            assert convert(x) == truncated(x, low, high)
    assert f32.to_int64(0x5F000000) == (1 << 63) - 1
    assert f32.to_int64(0xDF000000) == -(1 << 63)
    assert f32.to_int32(0xFFC00001) == 0
    assert f32.to_uint8(0xBF800000) == 0


@given(number=st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 26), 1 << 26)))
def test_num_5__integer_to_float_is_the_nearest_number(number: int) -> None:
    assert f32.from_int(number) == nearest(Fraction(number))
    assert f32.from_int(number) == int(np.array([number]).astype(np.float32).view(np.uint32)[0])


def test_num_5__integer_to_float_ties_go_to_even() -> None:
    assert f32.from_int(0) == 0
    assert f32.from_int((1 << 24) + 1) == f32.from_int(1 << 24) == 0x4B800000
    assert f32.from_int((1 << 24) + 3) == f32.from_int((1 << 24) + 4) == 0x4B800002
    assert f32.from_int(-(1 << 63)) == 0xDF000000


@given(x=patterns)
def test_num_5__float_to_bool_is_false_for_zeros_only(x: int) -> None:
    assert f32.to_bool(x) == (0 if x in (0, SIGN) else 1)


def test_num_5__bfloat16_to_float_is_exact_for_every_pattern() -> None:
    for x in range(1 << 16):
        want = NAN if is_nan(x << 16) else x << 16
        assert f32.from_bf16(x) == want
        assert f32.to_bf16(f32.from_bf16(x)) == (0x7FC0 if want == NAN else x)


def test_num_5__float_to_bfloat16_rounds_to_even_between_every_two_neighbours() -> None:
    for low in range(INFINITY >> 16):
        for sign in (0, 0x8000):
            tie = (sign | low) << 16 | 0x8000
            assert f32.to_bf16(tie) == (sign | low) + (low & 1)
            assert f32.to_bf16(tie - 1) == sign | low
            assert f32.to_bf16(tie + 1) == (sign | low) + 1
            assert f32.to_bf16(tie & ~0xFFFF | 1) == sign | low


def test_num_5__float_to_bfloat16_keeps_a_nan_a_nan() -> None:
    for x in (0x7F800001, 0xFF80FFFF, 0x7FFFFFFF, 0xFFFFFFFF):
        assert f32.to_bf16(x) == 0x7FC0
    assert f32.to_bf16(0x7F7FFFFF) == 0x7F80


@pytest.mark.parametrize(("kind", "dtype"), TYPES)
@given(a=st.integers(-(1 << 63), (1 << 63) - 1), b=st.integers(-(1 << 63), (1 << 63) - 1))
def test_num_9__integer_arithmetic_wraps_as_the_machine_does(
    kind: Integer, dtype: type[np.signedinteger | np.unsignedinteger], a: int, b: int
) -> None:
    a, b = kind.value(a), kind.value(b)
    x, y = np.array([a], dtype=dtype), np.array([b], dtype=dtype)
    with np.errstate(over="ignore"):
        assert kind.add(a, b) == int((x + y)[0])
        assert kind.sub(a, b) == int((x - y)[0])
        assert kind.mul(a, b) == int((x * y)[0])


@pytest.mark.parametrize(("kind", "dtype"), TYPES)
@given(number=st.integers(-(1 << 70), 1 << 70))
def test_num_9__words_and_values_are_the_same_modulo_the_width(
    kind: Integer, dtype: type[np.signedinteger | np.unsignedinteger], number: int
) -> None:
    word = kind.word(number)
    assert 0 <= word < 1 << kind.bits
    assert (word - number) % (1 << kind.bits) == 0
    assert kind.word(kind.value(number)) == word
    size = kind.bits // 8
    assert kind.value(word) == int(np.frombuffer(word.to_bytes(size, "little"), dtype=dtype)[0])


@pytest.mark.parametrize(("kind", "dtype"), TYPES)
def test_num_9__the_ends_wrap_around(kind: Integer, dtype: type[np.integer]) -> None:
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    assert kind.add(high, 1) == low
    assert kind.sub(low, 1) == high
    assert kind.mul(low, -1) == (low if kind.signed else 0)
    assert kind.mul(high, high) == 1


@given(a=st.integers(-3, 3), b=st.integers(-3, 3))
def test_num_9__integer_comparisons_are_by_value(a: int, b: int) -> None:
    names = ("eq", "ne", "lt", "le", "gt", "ge")
    got = [getattr(integers, name)(a, b) for name in names]
    assert got == [int(w) for w in (a == b, a != b, a < b, a <= b, a > b, a >= b)]
    assert all(type(g) is int for g in got)
