"""Correctly rounded functions against mpmath at 400 bits.

mpmath evaluates the true value by its own algorithms; the oracle rounds it by bisection.
"""

from collections.abc import Callable
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings

from identic.protocol.arithmetic import f32, functions
from tests.helpers.effort import examples
from tests.protocol.arithmetic.oracle import (
    INFINITY,
    NAN,
    SIGN,
    is_finite,
    is_nan,
    nearest,
    patterns,
    value,
)

ONE, MINUS_ONE, HALF = 0x3F800000, 0xBF800000, 0x3F000000
MINUS = INFINITY | SIGN

Function = Callable[[int], int]


def true_sigmoid(x: mpmath.mpf) -> mpmath.mpf:
    return 1 / (1 + mpmath.exp(-x))


FUNCTIONS: list[tuple[Function, Callable[[mpmath.mpf], mpmath.mpf]]] = [
    (functions.exp, mpmath.exp),
    (functions.log, mpmath.log),
    (functions.tanh, mpmath.tanh),
    (functions.erf, mpmath.erf),
    (functions.sin, mpmath.sin),
    (functions.cos, mpmath.cos),
    (functions.sigmoid, true_sigmoid),
]

# -inf, -0, +0, +inf.
SPECIAL: list[tuple[Function, tuple[int, int, int, int]]] = [
    (functions.exp, (0, ONE, ONE, INFINITY)),
    (functions.log, (NAN, MINUS, MINUS, INFINITY)),
    (functions.tanh, (MINUS_ONE, SIGN, 0, ONE)),
    (functions.erf, (MINUS_ONE, SIGN, 0, ONE)),
    (functions.sin, (NAN, SIGN, 0, NAN)),
    (functions.cos, (NAN, ONE, ONE, NAN)),
    (functions.sigmoid, (0, HALF, HALF, ONE)),
]

LOG_TRAPS = (0x3C413D3A, 0x41178FEB, 0x4C5D65A5, 0x65D890D3, 0x6F31A8EC)

EDGES = [
    0x00000001,  # least subnormal
    0x00000003,
    0x007FFFFF,
    0x00800000,
    0x33000000,  # 2**-25: exp is 1 or the next number above
    0x33000001,
    0x33800000,
    0x34000000,  # 2**-23: sigmoid lies 2**-75 below a tie
    0x39000000,
    0x3F7FFFFF,
    0x3F800001,
    0x40490FDB,  # pi and pi/2, nearly
    0x3FC90FDB,
    0x40753400,  # erf and tanh on their way to 1
    0x407AD447,
    0x41102CB4,
    0x41102CB5,
    0x41200000,
    0x42AEAC4F,  # exp close to its greatest finite value, and beyond it
    0x42B17217,
    0x42B17218,
    0x42AEAC50,  # exp(-x) around the least normal number
    0x42CFF1B4,  # exp(-x) around the least subnormal number and half of it
    0x42CFF1B5,
    0x42CE8ED0,
    0x43000000,
    0x5F000000,
    0x65D890D3,
    0x7F7FFFFF,
    0x7E000000,
]
EDGES += [x + d for x in EDGES if x > 2 for d in (-1, 1) if x + d < INFINITY]
EDGES += [x | SIGN for x in EDGES]


def reference(true: Callable[[mpmath.mpf], mpmath.mpf], x: int) -> int:
    """Return the pattern nearest to ``true`` at the finite non-zero pattern ``x``."""
    exact = value(x)
    with mpmath.workprec(400):
        y = true(mpmath.mpf(exact.numerator) / exact.denominator)
        if y == 0:
            return 0
        size = mpmath.mag(y)
        sign, significand, exponent, _ = y._mpf_
    if abs(size) > 300:  # far outside binary32: spare the oracle a number of that size
        return (SIGN if sign else 0) | (INFINITY if size > 0 else 0)
    number = Fraction(int(significand)) * Fraction(2) ** int(exponent)
    return nearest(-number if sign else number)


def sample(count: int, seed: int) -> list[int]:
    generator = np.random.default_rng(seed)
    everywhere = generator.integers(0, 1 << 32, count, dtype=np.uint32)
    usual = generator.integers(0x38000000, 0x43000000, count, dtype=np.uint32)
    usual |= generator.integers(0, 2, count, dtype=np.uint32) << 31
    return [int(x) for x in np.concatenate([everywhere, usual])]


def in_domain(function: Function, x: int) -> bool:
    return is_finite(x) and x & ~SIGN != 0 and not (function is functions.log and x & SIGN)


@pytest.mark.parametrize(("function", "true"), FUNCTIONS)
def test_num_7__function_is_the_nearest_number_on_edges_and_random_operands(
    function: Function, true: Callable[[mpmath.mpf], mpmath.mpf]
) -> None:
    for x in [*EDGES, *LOG_TRAPS, *sample(500, seed=7)]:
        if in_domain(function, x):
            assert function(x) == reference(true, x), f"{x:08x}"


@pytest.mark.parametrize(("function", "true"), FUNCTIONS)
@settings(max_examples=examples(60), deadline=None)
@given(x=patterns)
def test_num_7__function_is_the_nearest_number(
    function: Function, true: Callable[[mpmath.mpf], mpmath.mpf], x: int
) -> None:
    if in_domain(function, x):
        assert function(x) == reference(true, x)


@pytest.mark.parametrize("x", LOG_TRAPS)
def test_num_7__log_escapes_double_rounding(x: int) -> None:
    with mpmath.workprec(400):
        exact = value(x)
        y = mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator)
        with mpmath.workprec(53):
            double = float(+y)
    twice = int(np.array([double]).astype(np.float32).view(np.uint32)[0])
    assert functions.log(x) == reference(mpmath.log, x)
    assert functions.log(x) != twice


def test_num_7__results_at_the_ends_of_the_range() -> None:
    assert functions.exp(0x42B17217) == 0x7F7FFF84
    assert functions.exp(0x42B17218) == INFINITY
    assert functions.exp(0xC2CFF1B4) == 1
    assert functions.exp(0xC2CFF1B5) == 0
    assert functions.exp(0x7F7FFFFF) == INFINITY
    assert functions.exp(0xFF7FFFFF) == functions.sigmoid(0xFF7FFFFF) == 0
    assert functions.sigmoid(0x7F7FFFFF) == functions.erf(0x7F7FFFFF) == ONE
    assert functions.tanh(0x7F7FFFFF) == ONE
    assert functions.tanh(0x00000001) == functions.sin(0x00000001) == 1
    assert functions.erf(0x80000001) == 0x80000001
    assert functions.exp(0x00000001) == functions.cos(0x80000001) == ONE


@pytest.mark.parametrize(("function", "want"), SPECIAL)
def test_num_8__special_values(function: Function, want: tuple[int, int, int, int]) -> None:
    assert tuple(function(x) for x in (MINUS, SIGN, 0, INFINITY)) == want


@pytest.mark.parametrize(("function", "_"), FUNCTIONS)
@given(x=patterns)
def test_num_8__nan_results_are_the_canonical_one(
    function: Function, _: Callable[[mpmath.mpf], mpmath.mpf], x: int
) -> None:
    y = function(x)
    assert 0 <= y < 1 << 32
    assert not is_nan(y) or y == NAN
    assert not is_nan(x) or y == NAN


def test_num_8__log_of_one_and_of_negative_numbers() -> None:
    assert functions.log(ONE) == 0
    assert functions.log(0x80000001) == functions.log(MINUS_ONE) == functions.log(MINUS) == NAN


@given(x=patterns)
def test_num_7__odd_and_even_functions_keep_their_symmetry(x: int) -> None:
    for odd in (functions.tanh, functions.erf, functions.sin):
        assert f32.neg(odd(x)) == odd(x ^ SIGN)
    assert functions.cos(x) == functions.cos(x ^ SIGN)
