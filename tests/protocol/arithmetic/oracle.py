"""An independent view of binary32: exact rational numbers, and rounding by search.

Patterns become numbers through ``struct``, which is the machine's own reading of them, and
numbers become patterns by bisection over all magnitudes. Nothing here uses the code tested.
"""

import struct
from fractions import Fraction

from hypothesis import strategies as st

NAN = 0x7FC00000
INFINITY = 0x7F800000
SIGN = 0x80000000

_POSITIVE = (
    0x00000000,  # 0
    0x00000001,  # least subnormal
    0x00000002,
    0x007FFFFF,  # greatest subnormal
    0x00800000,  # least normal
    0x00800001,
    0x1A000000,
    0x33800000,  # 2**-24
    0x3F000000,  # 1/2
    0x3F7FFFFF,  # the number below 1
    0x3F800000,  # 1
    0x3F800001,
    0x40490FDB,  # pi, nearly
    0x4B7FFFFF,  # 2**24 - 1
    0x4B800000,  # 2**24
    0x5F000000,  # 2**63
    0x7F7FFFFF,  # greatest finite
    0x7F800000,  # infinity
    0x7F800001,  # signalling NaNs
    0x7FBFFFFF,
    0x7FC00000,  # quiet NaNs
    0x7FFFFFFF,
)
SPECIALS = _POSITIVE + tuple(x | SIGN for x in _POSITIVE)


def _near(exponents: st.SearchStrategy[int]) -> st.SearchStrategy[int]:
    fractions = st.one_of(
        st.integers(0, 0x7FFFFF),
        st.sampled_from([0, 1, 0x400000, 0x400001, 0x3FFFFF, 0x7FFFFE, 0x7FFFFF]),
        st.integers(0, 22).map(lambda i: 1 << i),
    )
    return st.builds(
        lambda sign, exponent, fraction: sign << 31 | exponent << 23 | fraction,
        st.integers(0, 1),
        exponents,
        fractions,
    )


patterns = st.one_of(
    st.sampled_from(SPECIALS),
    st.integers(0, 0xFFFFFFFF),
    _near(st.integers(0, 255)),
    _near(st.integers(110, 140)),
    _near(st.integers(0, 3)),
    _near(st.integers(52, 80)),
)
"""All kinds of patterns, with those likely that meet in rounding, overflow or underflow."""


def is_nan(x: int) -> bool:
    """Tell whether a pattern is a NaN, by the machine's own comparison."""
    (value,) = struct.unpack("<f", x.to_bytes(4, "little"))
    return bool(value != value)  # noqa: PLR0124 - only a NaN differs from itself


def is_finite(x: int) -> bool:
    """Tell whether a pattern is a number."""
    return not is_nan(x) and x & ~SIGN != INFINITY


def value(x: int) -> Fraction:
    """Return the exact value of a finite pattern."""
    (number,) = struct.unpack("<f", x.to_bytes(4, "little"))
    return Fraction(number)


def nearest(exact: Fraction, zero: int = 0) -> int:
    """Return the pattern nearest to ``exact``, ties to even; ``zero`` for an exact zero."""
    if not exact:
        return zero
    sign = SIGN if exact < 0 else 0
    size = abs(exact)
    low, high = 0, INFINITY  # value(low) <= size < value(high), infinity standing for 2**128
    if size >= 1 << 128:
        return sign | INFINITY
    while high - low > 1:
        middle = (low + high) // 2
        if value(middle) <= size:
            low = middle
        else:
            high = middle
    above = Fraction(1 << 128) if high == INFINITY else value(high)
    below_gap, above_gap = size - value(low), above - size
    if below_gap == above_gap:
        return sign | (high if low & 1 else low)
    return sign | (low if below_gap < above_gap else high)
