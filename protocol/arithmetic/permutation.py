"""A keyed permutation of ``[0, n)``, computed for one position at a time.

A data sampler visits every row once an epoch in an order that nobody stores: the row of a
position is a function of key, epoch, ``n`` and position, so a referee checks one row
without the others (NUM-18).

The permutation is a Feistel network with halves of equal width on the smallest even number
of bits that holds ``n - 1``, at least two; positions that land at ``n`` or beyond are sent
through again until one lands inside. At most four passes are expected, since ``2**bits`` is at
most ``4 * n``. Six rounds: four make a Feistel network with random round functions hard to
tell from a random permutation for few queries, and with six this holds up to nearly
``2**(bits / 2)`` of them, which matters here where the halves are narrow.
"""

from identic.protocol.arithmetic.philox import Key, philox4x32

ROUNDS = 6


def half_bits(n: int) -> int:
    """Return the width of one half in bits: the least ``h >= 1`` with ``4**h >= n >= 1``."""
    return max(1, ((n - 1).bit_length() + 1) // 2)


def permute(key: Key, epoch: int, n: int, position: int) -> int:
    """Return the image of ``position`` under the permutation of ``[0, n)``.

    ``0 <= position < n < 2**63`` and ``0 <= epoch < 2**64``; the key's words are below
    ``2**32``. For fixed key, epoch and ``n`` the map is a bijection of ``[0, n)``.

    Raises:
        ValueError: position or epoch is out of range (the caller's mistake).
    """
    if not 0 <= position < n < 1 << 63:
        raise ValueError(f"position {position} of {n}")
    if not 0 <= epoch < 1 << 64:
        raise ValueError(f"epoch {epoch}")
    width = half_bits(n)
    mask = (1 << width) - 1
    epoch_lo, epoch_hi = epoch & 0xFFFFFFFF, epoch >> 32
    index = position
    while True:
        left, right = index >> width, index & mask
        for number in range(ROUNDS):
            mixed = philox4x32(key, (right, number, epoch_lo, epoch_hi))[0] & mask
            left, right = right, left ^ mixed
        index = (left << width) | right
        # NUM-18: a position that lands outside [0, n) is sent through again.
        if index < n:
            return index
