"""Binary32 operations against the machine's own and against exact rational numbers."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.arithmetic import f32
from tests.helpers.effort import examples
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

Binary = Callable[[int, int], int]
Words = np.ndarray[tuple[int, ...], np.dtype[np.uint32]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

ARITHMETIC: list[tuple[Binary, Callable[[Floats, Floats], Floats]]] = [
    (f32.add, np.add),
    (f32.sub, np.subtract),
    (f32.mul, np.multiply),
    (f32.div, np.divide),
]
COMPARISONS: list[tuple[Binary, Callable[[Floats, Floats], object]]] = [
    (f32.eq, np.equal),
    (f32.ne, np.not_equal),
    (f32.lt, np.less),
    (f32.le, np.less_equal),
    (f32.gt, np.greater),
    (f32.ge, np.greater_equal),
]
SPECIAL_PAIRS = list(itertools.product(SPECIALS, SPECIALS))


def floats(words: list[int]) -> Floats:
    return np.array(words, dtype=np.uint32).view(np.float32)


def canonical(results: Floats) -> list[int]:
    words: Words = results.astype(np.float32).view(np.uint32)
    return [int(w) for w in np.where(np.isnan(results), np.uint32(NAN), words)]


def machine_pairs(
    hardware: Callable[[Floats, Floats], Floats], pairs: list[tuple[int, int]]
) -> list[int]:
    with np.errstate(all="ignore"):
        return canonical(hardware(floats([a for a, _ in pairs]), floats([b for _, b in pairs])))


def random_pairs(count: int, seed: int) -> list[tuple[int, int]]:
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 1 << 32, count, dtype=np.uint32)
    b = generator.integers(0, 1 << 32, count, dtype=np.uint32)
    # Half of the pairs get exponents that lie close together, where rounding happens.
    near = (a & 0x7F800000) + (generator.integers(0, 30, count, dtype=np.uint32) << 23)
    b[::2] = (b[::2] & 0x807FFFFF) | (near[::2] & 0x7F800000)
    return list(zip(a.tolist(), b.tolist(), strict=True))


@pytest.mark.parametrize(("soft", "hardware"), ARITHMETIC)
def test_num_1__arithmetic_equals_the_machine_on_special_and_random_pairs(
    soft: Binary, hardware: Callable[[Floats, Floats], Floats]
) -> None:
    pairs = SPECIAL_PAIRS + random_pairs(20_000, seed=1)
    assert [soft(a, b) for a, b in pairs] == machine_pairs(hardware, pairs)


@pytest.mark.parametrize(("soft", "hardware"), ARITHMETIC)
@given(pairs=st.lists(st.tuples(patterns, patterns), min_size=1, max_size=20))
def test_num_1__arithmetic_equals_the_machine(
    soft: Binary, hardware: Callable[[Floats, Floats], Floats], pairs: list[tuple[int, int]]
) -> None:
    assert [soft(a, b) for a, b in pairs] == machine_pairs(hardware, pairs)


@given(words=st.lists(patterns, min_size=1, max_size=20))
def test_num_1__square_root_equals_the_machine(words: list[int]) -> None:
    with np.errstate(all="ignore"):
        assert [f32.sqrt(x) for x in words] == canonical(np.sqrt(floats(words)))


def test_num_1__square_root_equals_the_machine_on_many() -> None:
    words = list(SPECIALS) + [a for a, _ in random_pairs(20_000, seed=2)]
    with np.errstate(all="ignore"):
        assert [f32.sqrt(x) for x in words] == canonical(np.sqrt(floats(words)))


def test_num_1__roots_just_above_a_tie_round_up() -> None:
    # An odd r of 25 bits is a tie; with s * 2**26 a little above r * r, the root of s lies
    # above it by so little that a root cut to 38 bits looks like the tie itself.
    r = np.arange((1 << 24) + 1, 1 << 25, 2, dtype=np.int64)
    s = (r[-(r * r) % (1 << 26) < 1 << 12].astype(np.int64) ** 2 >> 26) + 1
    assert len(s) > 100
    with np.errstate(all="ignore"):
        want = canonical(np.sqrt(s.astype(np.float32)))
    assert [f32.sqrt(f32.from_int(int(x))) for x in s] == want


def exact_fma(a: int, b: int, c: int) -> int:
    """Return fma by rational arithmetic and the rules of NUM-2 and NUM-3 spelled out."""
    sign = (a ^ b) & SIGN
    infinite = [x & ~SIGN == INFINITY for x in (a, b, c)]
    if any(is_nan(x) for x in (a, b, c)):
        return NAN
    if infinite[0] or infinite[1]:
        if 0 in (a & ~SIGN, b & ~SIGN) or (infinite[2] and c & SIGN != sign):
            return NAN
        return sign | INFINITY
    if infinite[2]:
        return c
    product = value(a) * value(b)
    zero = SIGN if product == 0 and sign and c & SIGN else 0
    return nearest(product + value(c), zero)


@settings(max_examples=examples(1500))
@given(a=patterns, b=patterns, c=patterns)
def test_num_1__fma_is_the_exact_value_rounded_once(a: int, b: int, c: int) -> None:
    assert f32.fma(a, b, c) == exact_fma(a, b, c)


@settings(max_examples=examples(600))
@given(a=patterns, b=patterns, offset=st.integers(-3, 3), flip=st.booleans())
def test_num_1__fma_is_exact_under_cancellation(a: int, b: int, offset: int, flip: bool) -> None:
    c = (f32.mul(a, b) + offset) % (1 << 32) ^ (SIGN if flip else 0)
    assert f32.fma(a, b, c) == exact_fma(a, b, c)


@settings(max_examples=examples(600))
@given(
    a=st.integers(0x1E000000, 0x21000000),
    b=st.integers(0x1E000000, 0x21000000),
    c=st.integers(0, 0x00800010),
    signs=st.tuples(st.booleans(), st.booleans()),
)
def test_num_1__fma_rounds_subnormal_results_once(
    a: int, b: int, c: int, signs: tuple[bool, bool]
) -> None:
    a |= SIGN * signs[0]
    c |= SIGN * signs[1]
    assert f32.fma(a, b, c) == exact_fma(a, b, c)


def test_num_1__fma_on_special_triples() -> None:
    for a, b, c in itertools.product(SPECIALS[::2] + SPECIALS[-2:], SPECIALS, SPECIALS[::3]):
        assert f32.fma(a, b, c) == exact_fma(a, b, c)


@pytest.mark.parametrize(
    ("a", "b", "c", "want"),
    [
        # (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 is a tie; a far smaller addend decides it, which
        # a product or a sum rounded to binary64 on the way has already forgotten.
        (0x3F800800, 0x3F800800, 0x00000001, 0x3F801001),
        (0x3F800800, 0x3F800800, 0x80000001, 0x3F801000),
        (0x3F800800, 0x3F800800, 0x00000000, 0x3F801000),
        # The same tie in the last place of the addend, decided by the end of the product.
        (0x3F800001, 0x3F7FFFFF, 0x4B800000, 0x4B800001),
        (0x3F800000, 0x3F800000, 0x4B800000, 0x4B800000),
        # Half of the least subnormal is a tie and goes to zero; anything more does not.
        (0x1A000000, 0x1A000000, 0x00000000, 0x00000000),
        (0x1A000001, 0x1A000000, 0x00000000, 0x00000001),
        (0x1A000000, 0x1A000000, 0x00000001, 0x00000002),
        # The greatest finite number plus less than half a place stays finite.
        (0x7F7FFFFF, 0x3F800000, 0x72FFFFFF, 0x7F7FFFFF),
        (0x7F7FFFFF, 0x3F800000, 0x73000000, 0x7F800000),
        # A product beyond the range comes back through the addend.
        (0x7F7FFFFF, 0x40000000, 0xFF7FFFFF, 0x7F7FFFFF),
    ],
)
def test_num_1__fma_escapes_double_rounding(a: int, b: int, c: int, want: int) -> None:
    assert exact_fma(a, b, c) == want
    assert f32.fma(a, b, c) == want


def test_num_1__the_worked_example_of_the_specification() -> None:
    assert f32.fma(0x3F3B9C00, 0xBC400000, 0x3F9A8A6E) == 0x3F997104
    assert exact_fma(0x3F3B9C00, 0xBC400000, 0x3F9A8A6E) == 0x3F997104


@given(a=patterns, b=patterns)
def test_num_1__fma_with_one_or_zero_is_addition_or_multiplication(a: int, b: int) -> None:
    assert f32.fma(a, f32.ONE, b) == f32.add(a, b)
    product = f32.mul(a, b)
    assert f32.fma(a, b, product & SIGN) == product


@given(significand=st.integers(-(1 << 60), 1 << 60), exponent=st.integers(-260, 140))
def test_num_1__round_pack_is_the_nearest_number(significand: int, exponent: int) -> None:
    exact = Fraction(significand) * Fraction(2) ** exponent
    assert f32.round_pack(significand, exponent) == nearest(exact)


@given(x=patterns.filter(is_finite))
def test_num_1__unpack_is_exact_and_undone_by_round_pack(x: int) -> None:
    significand, exponent = f32.unpack(x)
    assert Fraction(significand) * Fraction(2) ** exponent == value(x)
    assert f32.round_pack(significand, exponent) | (x & SIGN) == x


@given(a=patterns, b=patterns, c=patterns)
def test_num_2__every_nan_result_is_the_canonical_one(a: int, b: int, c: int) -> None:
    results = [f(a, b) for f, _ in ARITHMETIC]
    results += [f32.maximum(a, b), f32.minimum(a, b), f32.fma(a, b, c)]
    results += [f(a) for f in (f32.sqrt, f32.rsqrt, f32.neg, f32.absolute)]
    assert {r for r in results if is_nan(r)} <= {NAN}
    if is_nan(a):
        assert set(results) == {NAN}


def test_num_2__invalid_operations_are_nan_with_any_addend() -> None:
    infinity, minus = INFINITY, INFINITY | SIGN
    for c in SPECIALS:
        assert f32.fma(infinity, 0, c) == NAN
        assert f32.fma(SIGN, minus, c) == NAN
    assert f32.add(infinity, minus) == f32.sub(infinity, infinity) == NAN
    assert f32.mul(infinity, SIGN) == f32.div(0, SIGN) == f32.div(minus, infinity) == NAN
    assert f32.sqrt(minus) == f32.sqrt(0x80000001) == NAN
    assert f32.fma(infinity, f32.ONE, minus) == NAN


def test_num_3__signs_of_zero() -> None:
    one, minus_one = f32.ONE, f32.ONE | SIGN
    assert f32.add(0, SIGN) == f32.add(SIGN, 0) == f32.add(one, minus_one) == 0
    assert f32.add(SIGN, SIGN) == SIGN
    assert f32.sub(SIGN, 0) == SIGN
    assert f32.sub(SIGN, SIGN) == f32.sub(0, 0) == 0
    assert f32.mul(SIGN, one) == f32.div(0, minus_one) == f32.sqrt(SIGN) == f32.neg(0) == SIGN
    assert f32.neg(SIGN) == f32.absolute(SIGN) == 0
    assert f32.fma(SIGN, one, SIGN) == SIGN
    assert f32.fma(SIGN, one, 0) == f32.fma(0, one, SIGN) == f32.fma(one, one, minus_one) == 0
    # A product too small for any number is not an exact zero and keeps its sign.
    assert f32.mul(0x00000001, 0x80000001) == f32.fma(0x00000001, 0x80000001, 0) == SIGN


@pytest.mark.parametrize(("soft", "hardware"), COMPARISONS)
def test_num_3__comparisons_equal_the_machine(
    soft: Binary, hardware: Callable[[Floats, Floats], object]
) -> None:
    pairs = SPECIAL_PAIRS + random_pairs(5_000, seed=3) + [(a, a) for a, _ in random_pairs(99, 4)]
    want = np.asarray(hardware(floats([a for a, _ in pairs]), floats([b for _, b in pairs])))
    assert [soft(a, b) for a, b in pairs] == [int(w) for w in want]


def rank(x: int) -> tuple[Fraction | float, int]:
    size: Fraction | float = value(x) if is_finite(x) else math.copysign(math.inf, -(x & SIGN) or 1)
    return size, -(x & SIGN)


@given(a=patterns, b=patterns)
def test_num_4__extremes_take_a_nan_first_and_order_zeros(a: int, b: int) -> None:
    if is_nan(a) or is_nan(b):
        assert f32.maximum(a, b) == f32.minimum(a, b) == NAN
    else:
        assert f32.maximum(a, b) == max(a, b, key=rank)
        assert f32.minimum(a, b) == min(a, b, key=rank)


def test_num_4__zeros_are_ordered() -> None:
    assert f32.maximum(0, SIGN) == f32.maximum(SIGN, 0) == 0
    assert f32.minimum(0, SIGN) == f32.minimum(SIGN, 0) == SIGN
    assert f32.maximum(0xFFC12345, 0xFFC12345) == NAN


@given(a=patterns, b=patterns, c=patterns)
def test_num_4__extremes_are_commutative_and_associative(a: int, b: int, c: int) -> None:
    for extreme in (f32.maximum, f32.minimum):
        assert extreme(a, b) == extreme(b, a)
        assert extreme(extreme(a, b), c) == extreme(a, extreme(b, c))


@given(x=patterns)
def test_num_6__rsqrt_is_a_root_and_a_division(x: int) -> None:
    with np.errstate(all="ignore"):
        want = np.divide(floats([f32.ONE]), np.sqrt(floats([x])))
    assert [f32.rsqrt(x)] == canonical(want)


def test_num_6__rsqrt_special_values() -> None:
    assert f32.rsqrt(0) == INFINITY
    assert f32.rsqrt(SIGN) == INFINITY | SIGN
    assert f32.rsqrt(INFINITY) == 0
    # Two roundings: the number nearest to the true 1/sqrt(x) is one place away here.
    assert f32.rsqrt(0x3F800003) == 0x3F7FFFFE
