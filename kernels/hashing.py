"""Leaf hashes of chunks, by the native module."""

from __future__ import annotations

import hashlib

from identic.protocol.hashing import LEAF_PREFIX
from identic.protocol.tensors import CHUNK_BYTES


def chunk_hashes(data: memoryview) -> list[bytes]:
    """Leaf hash of each 4,096-byte chunk of ``data``; the last may be shorter (COM-3)."""
    return [
        hashlib.sha256(LEAF_PREFIX + data[at : at + CHUNK_BYTES]).digest()
        for at in range(0, len(data), CHUNK_BYTES)
    ]
