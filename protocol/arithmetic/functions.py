"""Functions of a real value, rounded correctly to binary32.

Each function returns the pattern of the binary32 number nearest to the true value, ties to
even, subnormal results included (NUM-7). No algorithm is part of the definition; this file
computes it with MPFR and is the only one that imports ``gmpy2``.

* MPFR rounds every step downward once and upward once, which encloses the true value; when
  both ends round to the same pattern that pattern is the answer, otherwise the precision is
  doubled (Ziv's strategy). So a wrong answer cannot come from too little precision.
* Exact results, limits and special values follow NUM-8. A NaN operand gives ``0x7fc00000``.

Operands and results are 32-bit patterns; the caller guarantees the range.
"""

from collections.abc import Callable

import gmpy2

from identic.protocol.arithmetic import f32

_HALF = 0x3F000000
_MINUS_ONE = 0xBF800000
_SIGN = 0x80000000

_FIRST_PRECISION = 64
_LAST_PRECISION = 4096
# Exponents beyond these are far outside binary32; MPFR turns what exceeds them into the
# nearest end of its range, or zero or infinity, by the direction of rounding, so that an
# enclosure stays one.
_EXPONENT_BOUND = 512


class _Enclosure:
    """A pair of MPFR contexts of one precision: ``down`` rounds downward, ``up`` upward."""

    def __init__(self, precision: int) -> None:
        self.down = self._context(precision, gmpy2.RoundDown)
        self.up = self._context(precision, gmpy2.RoundUp)

    @staticmethod
    def _context(precision: int, direction: int) -> gmpy2.context:
        return gmpy2.context(
            precision=precision, round=direction, emax=_EXPONENT_BOUND, emin=-_EXPONENT_BOUND
        )


_ENCLOSURES = {
    precision: _Enclosure(precision)
    for precision in (_FIRST_PRECISION << i for i in range(7))
    if precision <= _LAST_PRECISION
}

_Interval = tuple[gmpy2.mpfr, gmpy2.mpfr]
_Bounds = Callable[[_Enclosure, gmpy2.mpfr], _Interval]


def _exact(x: int) -> gmpy2.mpfr:
    """Return the value of a finite pattern; 24 bits hold it exactly."""
    significand, exponent = f32.unpack(x)
    scale = gmpy2.mpq(1 << max(exponent, 0), 1 << max(-exponent, 0))
    return gmpy2.mpfr(significand * scale, 24)


def _pattern(y: gmpy2.mpfr) -> int:
    """Round an MPFR number that is not a NaN to the nearest binary32 pattern."""
    if gmpy2.is_infinite(y):
        return f32.NEGATIVE_INFINITY if y < 0 else f32.INFINITY
    if gmpy2.is_zero(y):
        return f32.ZERO
    significand, exponent = y.as_mantissa_exp()
    return f32.round_pack(int(significand), int(exponent))


def _rounded(bounds: _Bounds, x: int) -> int:
    """Round the true value of a function at the finite pattern ``x``.

    Args:
        bounds: encloses the true value at a given precision.
        x: a finite pattern.

    Raises:
        ArithmeticError: the last precision does not decide the rounding. It cannot happen
            for these functions: their values are nowhere so close to a tie.
    """
    # NUM-7: the answer is taken only when both ends of the enclosure round to it.
    operand = _exact(x)
    for enclosure in _ENCLOSURES.values():
        low, high = bounds(enclosure, operand)
        pattern = _pattern(low)
        if pattern == _pattern(high):
            return pattern
    raise ArithmeticError(f"rounding at 0x{x:08x} is not decided by {_LAST_PRECISION} bits")


def _exp_bounds(enclosure: _Enclosure, x: gmpy2.mpfr) -> _Interval:
    return enclosure.down.exp(x), enclosure.up.exp(x)


def _log_bounds(enclosure: _Enclosure, x: gmpy2.mpfr) -> _Interval:
    return enclosure.down.log(x), enclosure.up.log(x)


def _tanh_bounds(enclosure: _Enclosure, x: gmpy2.mpfr) -> _Interval:
    return enclosure.down.tanh(x), enclosure.up.tanh(x)


def _erf_bounds(enclosure: _Enclosure, x: gmpy2.mpfr) -> _Interval:
    return enclosure.down.erf(x), enclosure.up.erf(x)


def _sin_bounds(enclosure: _Enclosure, x: gmpy2.mpfr) -> _Interval:
    return enclosure.down.sin(x), enclosure.up.sin(x)


def _cos_bounds(enclosure: _Enclosure, x: gmpy2.mpfr) -> _Interval:
    return enclosure.down.cos(x), enclosure.up.cos(x)


def _sigmoid_bounds(enclosure: _Enclosure, x: gmpy2.mpfr) -> _Interval:
    # 1 / (1 + exp(-x)) falls as exp(-x) rises, so the ends change places.
    down, up = enclosure.down, enclosure.up
    negated = down.minus(x)  # exact: the operand has 24 bits
    low = down.div(1, up.add(1, up.exp(negated)))
    return low, up.div(1, down.add(1, down.exp(negated)))


def exp(x: int) -> int:
    """Return e to the power ``x``. ``exp(±0)`` is 1, ``exp(-inf)`` is +0."""
    if x == f32.NEGATIVE_INFINITY:
        return f32.ZERO
    if not f32.is_finite(x):
        return f32.INFINITY if x == f32.INFINITY else f32.NAN
    return _rounded(_exp_bounds, x)


def log(x: int) -> int:
    """Return the natural logarithm. ``log(±0)`` is -inf, below zero it is NaN."""
    if f32.eq(x, f32.ZERO):
        return f32.NEGATIVE_INFINITY
    if x == f32.INFINITY:
        return f32.INFINITY
    if f32.is_nan(x) or x & _SIGN:
        return f32.NAN
    return _rounded(_log_bounds, x)


def _saturating(bounds: _Bounds, x: int) -> int:
    """Evaluate an odd function with limits -1 and 1 that keeps the sign of zero."""
    if f32.is_nan(x):
        return f32.NAN
    if f32.eq(x, f32.ZERO):
        return x
    if not f32.is_finite(x):
        return _MINUS_ONE if x & _SIGN else f32.ONE
    return _rounded(bounds, x)


def tanh(x: int) -> int:
    """Return the hyperbolic tangent. ``tanh(±0)`` is ±0, ``tanh(±inf)`` is ±1."""
    return _saturating(_tanh_bounds, x)


def erf(x: int) -> int:
    """Return the error function. ``erf(±0)`` is ±0, ``erf(±inf)`` is ±1."""
    return _saturating(_erf_bounds, x)


def sin(x: int) -> int:
    """Return the sine of ``x`` radians. ``sin(±0)`` is ±0, ``sin(±inf)`` is NaN."""
    if not f32.is_finite(x):
        return f32.NAN
    if f32.eq(x, f32.ZERO):
        return x
    return _rounded(_sin_bounds, x)


def cos(x: int) -> int:
    """Return the cosine of ``x`` radians. ``cos(±0)`` is 1, ``cos(±inf)`` is NaN."""
    if not f32.is_finite(x):
        return f32.NAN
    return _rounded(_cos_bounds, x)


def sigmoid(x: int) -> int:
    """Return ``1 / (1 + exp(-x))``, the true value rounded once.

    ``sigmoid(±0)`` is 1/2, ``sigmoid(-inf)`` is +0, ``sigmoid(+inf)`` is 1.
    """
    if f32.is_nan(x):
        return f32.NAN
    if f32.eq(x, f32.ZERO):
        return _HALF
    if not f32.is_finite(x):
        return f32.ZERO if x & _SIGN else f32.ONE
    return _rounded(_sigmoid_bounds, x)
