"""Philox numbers for whole arrays, with numpy's integers.

The rule and its one-element reference are in ``protocol/arithmetic/philox.py``; the tests
hold the two together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORD = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_ROUNDS = 10


def words(key: tuple[int, int], stream: int, shard: int, blocks: int) -> NDArray[np.uint64]:
    """Words of blocks 0, 1, ... of one stream, shape ``(blocks, 4)``."""
    index = np.arange(blocks, dtype=np.uint64)
    c0, c1 = index & _WORD, index >> _SHIFT
    c2, c3 = np.full(blocks, stream, np.uint64), np.full(blocks, shard, np.uint64)
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1 = (p1 >> _SHIFT) ^ c1 ^ k0, p1 & _WORD
        c2, c3 = (p0 >> _SHIFT) ^ c3 ^ k1, p0 & _WORD
        k0, k1 = (k0 + _KEY_STEPS[0]) & _WORD, (k1 + _KEY_STEPS[1]) & _WORD
    return np.stack([c0, c1, c2, c3], axis=1)


def uniform_block(key: tuple[int, int], stream: int, shard: int, count: int) -> NDArray[np.float32]:
    """The first ``count`` uniform numbers of a stream: 24 bits, in [0, 1)."""
    flat = words(key, stream, shard, -(-count // 4)).reshape(-1)[:count]
    return (flat >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
