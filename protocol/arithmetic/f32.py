"""IEEE-754 binary32 arithmetic on bit patterns held in Python integers.

Every operand and every result is the 32-bit pattern of a binary32 number, an int in
``[0, 2**32)``. The functions here define what each float32 operation of a program means;
kernels and the referee agree with them bit for bit.

* Rounding is to nearest, ties to even; subnormal operands and results are kept (NUM-1).
* Every NaN result is ``0x7fc00000`` (NUM-2).
* Each operation is exact in integers and rounded once, by ``round_pack``.

A finite number is held as ``significand * 2**exponent`` with a signed integer significand.
The caller guarantees that patterns are in range; nothing here checks it. Functions of a
real value (exp, log, ...) are in ``functions``. Spec: docs/spec/numerics.md.
"""

from math import isqrt

NAN = 0x7FC00000
INFINITY = 0x7F800000
NEGATIVE_INFINITY = 0xFF800000
ZERO = 0x00000000
NEGATIVE_ZERO = 0x80000000
ONE = 0x3F800000

BF16_NAN = 0x7FC0

_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF
_FRACTION = 0x007FFFFF
_HIDDEN = 0x00800000
# Exponent of the last place of a subnormal: the smallest positive number is 2**-149.
_LAST_PLACE = -149


def is_nan(x: int) -> bool:
    """Tell whether the pattern ``x`` is a NaN of any sign and payload."""
    return x & _MAGNITUDE > INFINITY


def is_finite(x: int) -> bool:
    """Tell whether the pattern ``x`` is neither an infinity nor a NaN."""
    return x & _MAGNITUDE < INFINITY


def unpack(x: int) -> tuple[int, int]:
    """Split a finite pattern into ``(significand, exponent)``, exactly.

    The value is ``significand * 2**exponent`` with ``abs(significand) < 2**24`` and
    ``-149 <= exponent <= 104``. Both zeros give the significand 0; the sign of a zero is
    the caller's to keep.
    """
    field = (x >> 23) & 0xFF
    significand = x & _FRACTION
    if field:
        significand |= _HIDDEN
    else:
        field = 1
    return (-significand if x & _SIGN else significand), field - 150


def round_pack(significand: int, exponent: int) -> int:
    """Round ``significand * 2**exponent`` to the nearest pattern, ties to even.

    A significand of 0 gives +0. A magnitude of at least ``2**128 - 2**103`` gives an
    infinity, and one of at most ``2**-150`` gives a zero of the significand's sign.
    Callers that hold a truncated quotient or root pass two bits more than a result has
    and set the lowest bit when something was cut off, so that no false tie appears.
    """
    # NUM-1: every result is rounded to nearest, ties to even, and subnormals are kept.
    sign = 0
    if significand <= 0:
        if not significand:
            return ZERO
        sign = _SIGN
        significand = -significand
    drop = significand.bit_length() - 24
    if exponent + drop < _LAST_PLACE:
        drop = _LAST_PLACE - exponent
    if drop > 0:
        # Half a unit less one, plus one more where the kept part is odd: ties go to even.
        kept = (significand + (1 << (drop - 1)) - 1 + ((significand >> drop) & 1)) >> drop
    else:
        kept = significand << -drop
    # The hidden bit of a normal result, and a carry out of the rounding, add one to the
    # exponent field; a subnormal result has exponent -149 and a field of 0.
    bits = ((exponent + drop - _LAST_PLACE) << 23) + kept
    if bits >= INFINITY:
        return sign | INFINITY
    return sign | bits


def fma(a: int, b: int, c: int) -> int:
    """Return ``a * b + c`` rounded once.

    ``inf * 0 + c`` is NaN for every ``c``. An exact sum of zero is +0, except that two
    zeros of the same sign (the product's and ``c``'s) keep it.
    """
    a_field = (a >> 23) & 0xFF
    b_field = (b >> 23) & 0xFF
    c_field = (c >> 23) & 0xFF
    if a_field == 255 or b_field == 255 or c_field == 255:
        return _fma_special(a, b, c)
    if a_field:
        product = (a & _FRACTION) | _HIDDEN
    else:
        product = a & _FRACTION
        a_field = 1
    if b_field:
        product *= (b & _FRACTION) | _HIDDEN
    else:
        product *= b & _FRACTION
        b_field = 1
    if c_field:
        addend = (c & _FRACTION) | _HIDDEN
    else:
        addend = c & _FRACTION
        c_field = 1
    if (a ^ b ^ c) & _SIGN:
        addend = -addend
    # The product's last place is 2**(a_field + b_field - 300), the addend's 2**(c_field - 150).
    shift = a_field + b_field - 150 - c_field
    if shift >= 0:
        total = (product << shift) + addend
        exponent = c_field - 150
    else:
        total = product + (addend << -shift)
        exponent = a_field + b_field - 300
    if not total:
        return (a ^ b) & c & _SIGN
    return round_pack(-total if (a ^ b) & _SIGN else total, exponent)


def _fma_special(a: int, b: int, c: int) -> int:
    """Return ``fma(a, b, c)`` where at least one operand is an infinity or a NaN."""
    if is_nan(a) or is_nan(b) or is_nan(c):
        return NAN
    if is_finite(a) and is_finite(b):
        return c
    return add(mul(a, b), c)


def add(a: int, b: int) -> int:
    """Return ``a + b``. ``x + -x`` is +0 and ``-0 + -0`` is -0."""
    a_field = (a >> 23) & 0xFF
    b_field = (b >> 23) & 0xFF
    if a_field == 255 or b_field == 255:
        return _add_special(a, b)
    x = a & _FRACTION
    if a_field:
        x |= _HIDDEN
    else:
        a_field = 1
    y = b & _FRACTION
    if b_field:
        y |= _HIDDEN
    else:
        b_field = 1
    if (a ^ b) & _SIGN:
        y = -y
    shift = a_field - b_field
    if shift >= 0:
        total = (x << shift) + y
        exponent = b_field - 150
    else:
        total = x + (y << -shift)
        exponent = a_field - 150
    if not total:
        return a & b & _SIGN
    return round_pack(-total if a & _SIGN else total, exponent)


def _add_special(a: int, b: int) -> int:
    """Return ``add(a, b)`` where at least one operand is an infinity or a NaN."""
    if is_nan(a) or is_nan(b):
        return NAN
    if is_finite(a):
        return b
    if is_finite(b) or a == b:
        return a
    return NAN


def sub(a: int, b: int) -> int:
    """Return ``a - b``, which is ``a + (-b)``. ``x - x`` is +0 for every finite ``x``."""
    return add(a, b ^ _SIGN)


def mul(a: int, b: int) -> int:
    """Return ``a * b``. ``inf * 0`` is NaN; the sign of a zero is the product of signs."""
    a_field = (a >> 23) & 0xFF
    b_field = (b >> 23) & 0xFF
    if a_field == 255 or b_field == 255:
        return _mul_special(a, b)
    if a_field:
        product = (a & _FRACTION) | _HIDDEN
    else:
        product = a & _FRACTION
        a_field = 1
    if b_field:
        product *= (b & _FRACTION) | _HIDDEN
    else:
        product *= b & _FRACTION
        b_field = 1
    return ((a ^ b) & _SIGN) | round_pack(product, a_field + b_field - 300)


def _mul_special(a: int, b: int) -> int:
    """Return ``mul(a, b)`` where at least one operand is an infinity or a NaN."""
    if is_nan(a) or is_nan(b) or not a & _MAGNITUDE or not b & _MAGNITUDE:
        return NAN
    return ((a ^ b) & _SIGN) | INFINITY


def div(a: int, b: int) -> int:
    """Return ``a / b``. ``0 / 0`` and ``inf / inf`` are NaN; ``x / 0`` is an infinity."""
    sign = (a ^ b) & _SIGN
    a_size = a & _MAGNITUDE
    b_size = b & _MAGNITUDE
    if a_size > INFINITY or b_size > INFINITY or a_size == b_size in (0, INFINITY):
        return NAN
    if a_size == INFINITY or b_size == 0:
        return sign | INFINITY
    if a_size == 0 or b_size == INFINITY:
        return sign
    x, x_exponent = unpack(a_size)
    y, y_exponent = unpack(b_size)
    # 50 more bits leave at least 26 in the quotient even for the smallest x and largest y.
    quotient, rest = divmod(x << 50, y)
    return sign | round_pack((quotient << 1) | (rest != 0), x_exponent - y_exponent - 51)


def sqrt(x: int) -> int:
    """Return the square root of ``x``. ``sqrt(-0)`` is -0; below zero it is NaN."""
    if is_nan(x):
        return NAN
    if not x & _MAGNITUDE or x == INFINITY:
        return x
    if x & _SIGN:
        return NAN
    significand, exponent = unpack(x)
    # An even exponent, and at least 26 bits in the root of the smallest subnormal.
    shift = 52 + (exponent & 1)
    square = significand << shift
    root = isqrt(square)
    return round_pack((root << 1) | (root * root != square), (exponent - shift) // 2 - 1)


def rsqrt(x: int) -> int:
    """Return ``div(1, sqrt(x))``: two rounded operations, not the rounded true value.

    ``rsqrt(-0)`` is -inf.
    """
    # NUM-6: the reciprocal square root is a square root, then a division.
    return div(ONE, sqrt(x))


def neg(x: int) -> int:
    """Return ``-x``: the other sign, of a zero too; a NaN becomes the canonical one."""
    return NAN if is_nan(x) else x ^ _SIGN


def absolute(x: int) -> int:
    """Return the magnitude of ``x``; a NaN becomes the canonical one."""
    return NAN if is_nan(x) else x & _MAGNITUDE


def _rank(x: int) -> int:
    """Return an integer that orders patterns by value, -0 just below +0.

    NaNs are outside the order and must be handled first.
    """
    return ~x & _MAGNITUDE if x & _SIGN else x | _SIGN


def eq(a: int, b: int) -> int:
    """Return 1 if ``a == b``, else 0. -0 equals +0; a NaN equals nothing."""
    if is_nan(a) or is_nan(b):
        return 0
    return int(a == b or not (a | b) & _MAGNITUDE)


def ne(a: int, b: int) -> int:
    """Return 1 if ``a != b``, else 0. With a NaN on either side it is 1."""
    return 1 - eq(a, b)


def lt(a: int, b: int) -> int:
    """Return 1 if ``a < b``, else 0. -0 is not below +0; a NaN compares false."""
    if is_nan(a) or is_nan(b):
        return 0
    return int(_rank(a) < _rank(b) and (a | b) & _MAGNITUDE != 0)


def le(a: int, b: int) -> int:
    """Return 1 if ``a <= b``, else 0. A NaN compares false."""
    return lt(a, b) | eq(a, b)


def gt(a: int, b: int) -> int:
    """Return 1 if ``a > b``, else 0. A NaN compares false."""
    return lt(b, a)


def ge(a: int, b: int) -> int:
    """Return 1 if ``a >= b``, else 0. A NaN compares false."""
    return le(b, a)


def maximum(a: int, b: int) -> int:
    """Return the greater operand, +0 above -0; NaN if either is NaN."""
    # NUM-4: NaN wins and +0 is above -0, so that neither order nor grouping matters.
    if is_nan(a) or is_nan(b):
        return NAN
    return a if _rank(a) >= _rank(b) else b


def minimum(a: int, b: int) -> int:
    """Return the lesser operand, -0 below +0; NaN if either is NaN."""
    # NUM-4: NaN wins and -0 is below +0, so that neither order nor grouping matters.
    if is_nan(a) or is_nan(b):
        return NAN
    return a if _rank(a) <= _rank(b) else b


def from_int(value: int) -> int:
    """Return the binary32 number nearest to a signed integer, ties to even; 0 gives +0."""
    return round_pack(value, 0)


def _to_int(x: int, low: int, high: int) -> int:
    """Truncate ``x`` toward zero and clamp it to ``[low, high]``; NaN gives 0."""
    # NUM-5: a conversion to an integer truncates, saturates, and takes NaN to 0.
    if is_nan(x):
        return 0
    if not is_finite(x):
        return low if x & _SIGN else high
    significand, exponent = unpack(x)
    if exponent >= 0:
        value = significand << exponent
    elif significand < 0:
        value = -(-significand >> -exponent)
    else:
        value = significand >> -exponent
    return max(low, min(high, value))


def to_int64(x: int) -> int:
    """Truncate ``x`` toward zero to ``[-2**63, 2**63)``, saturating; NaN gives 0."""
    return _to_int(x, -(1 << 63), (1 << 63) - 1)


def to_int32(x: int) -> int:
    """Truncate ``x`` toward zero to ``[-2**31, 2**31)``, saturating; NaN gives 0."""
    return _to_int(x, -(1 << 31), (1 << 31) - 1)


def to_uint8(x: int) -> int:
    """Truncate ``x`` toward zero to ``[0, 256)``, saturating; NaN gives 0."""
    return _to_int(x, 0, 255)


def to_bool(x: int) -> int:
    """Return 1 if ``x`` is not a zero, else 0. A NaN is not a zero."""
    return int(x & _MAGNITUDE != 0)


def to_bf16(x: int) -> int:
    """Return the bfloat16 pattern nearest to ``x``, ties to even; NaN gives 0x7fc0."""
    # NUM-5: a conversion to bfloat16 rounds once, to nearest, ties to even.
    if is_nan(x):
        return BF16_NAN
    return (x + 0x7FFF + ((x >> 16) & 1)) >> 16


def from_bf16(x: int) -> int:
    """Return the binary32 pattern of the bfloat16 pattern ``x``, exactly.

    ``x`` is in ``[0, 2**16)``; any NaN gives 0x7fc00000.
    """
    bits = x << 16
    return NAN if is_nan(bits) else bits
