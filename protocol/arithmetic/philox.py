"""Philox4x32-10: random words that are a function of a key and a counter, with no state.

The generator of Salmon, Moraes, Dror and Shaw (Random123): ten rounds of two 32-bit
multiplications. The value of an element depends on its key and counter only, never on the
order, the shape of a launch or the device that computes it (NUM-15).

Words are integers in ``[0, 2**32)``; the caller guarantees the range.
"""

from identic.protocol.arithmetic.f32 import round_pack

ROUNDS = 10

_WORD = 0xFFFFFFFF
_MULTIPLIER_0 = 0xD2511F53
_MULTIPLIER_1 = 0xCD9E8D57
# Steps of the key from round to round: the golden ratio and the square root of three less one.
_KEY_STEP_0 = 0x9E3779B9
_KEY_STEP_1 = 0xBB67AE85

Counter = tuple[int, int, int, int]
Key = tuple[int, int]


def philox4x32(key: Key, counter: Counter) -> tuple[int, int, int, int]:
    """Return the four words that belong to ``key`` and ``counter``.

    Word 0 of each comes first, as in Random123's arrays.
    """
    # NUM-15: ten rounds with Random123's constants, the key stepped between rounds.
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(ROUNDS):
        p0 = _MULTIPLIER_0 * c0
        p1 = _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _WORD, (p0 >> 32) ^ c3 ^ k1, p0 & _WORD
        k0 = (k0 + _KEY_STEP_0) & _WORD
        k1 = (k1 + _KEY_STEP_1) & _WORD
    return c0, c1, c2, c3


def uniform24(word: int) -> int:
    """Return the binary32 pattern of ``(word >> 8) * 2**-24``, exact and in ``[0, 1)``."""
    # NUM-16: the upper 24 bits of a word, as a multiple of 2**-24.
    return round_pack(word >> 8, -24)


def bounded(word_lo: int, word_hi: int, bound: int) -> int:
    """Return an index in ``[0, bound)`` from two words, ``1 <= bound < 2**63``.

    With ``x = word_hi * 2**32 + word_lo`` the result is ``(x * bound) >> 64``. Of the
    ``2**64`` values of ``x`` any two results get numbers that differ by at most one.
    """
    # NUM-16: an index is the upper part of a 64-bit word times the bound.
    return (((word_hi << 32) | word_lo) * bound) >> 64
