"""Integer arithmetic of tensors: exact, modulo the width of the element type.

A *word* is a bit pattern, an unsigned integer below ``2**bits``; a *value* is the signed
(or, for uint8, unsigned) integer it stands for, in two's complement. The operations take and
return values; ``word`` and ``value`` go between the two.

* A result outside the range wraps around (NUM-9); nothing saturates and nothing fails.
* Operands may be any integers: the result depends on them modulo ``2**bits`` only.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Integer:
    """An integer element type.

    Attributes:
        bits: width of a word.
        signed: whether the top bit counts ``-2**(bits - 1)``.
    """

    bits: int
    signed: bool

    def word(self, value: int) -> int:
        """Return the bit pattern of ``value`` modulo ``2**bits``."""
        return value & ((1 << self.bits) - 1)

    def value(self, word: int) -> int:
        """Return the value of a bit pattern; any integer counts modulo ``2**bits``."""
        # NUM-9: a result is taken modulo the width, in two's complement.
        if self.signed:
            half = 1 << (self.bits - 1)
            return ((word + half) & ((1 << self.bits) - 1)) - half
        return word & ((1 << self.bits) - 1)

    def add(self, a: int, b: int) -> int:
        """Return ``a + b``, wrapped."""
        return self.value(a + b)

    def sub(self, a: int, b: int) -> int:
        """Return ``a - b``, wrapped."""
        return self.value(a - b)

    def mul(self, a: int, b: int) -> int:
        """Return ``a * b``, wrapped."""
        return self.value(a * b)


INT64 = Integer(64, signed=True)
INT32 = Integer(32, signed=True)
UINT8 = Integer(8, signed=False)


def eq(a: int, b: int) -> int:
    """Return 1 if the values are equal, else 0."""
    return int(a == b)


def ne(a: int, b: int) -> int:
    """Return 1 if the values differ, else 0."""
    return int(a != b)


def lt(a: int, b: int) -> int:
    """Return 1 if value ``a`` is below value ``b``, else 0."""
    return int(a < b)


def le(a: int, b: int) -> int:
    """Return 1 if value ``a`` is at most value ``b``, else 0."""
    return int(a <= b)


def gt(a: int, b: int) -> int:
    """Return 1 if value ``a`` is above value ``b``, else 0."""
    return int(a > b)


def ge(a: int, b: int) -> int:
    """Return 1 if value ``a`` is at least value ``b``, else 0."""
    return int(a >= b)
