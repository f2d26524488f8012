"""Leaf hashes of chunks, by the native module."""

from __future__ import annotations

from identic.kernels import _native
from identic.protocol.hashing import LEAF_PREFIX
from identic.protocol.ids import Digest
from identic.protocol.tensors import CHUNK_BYTES


def chunk_hashes(data: memoryview) -> list[bytes]:
    """Leaf hash of each 4,096-byte chunk of ``data``; the last may be shorter (COM-3)."""
    hashes = _native.chunk_hashes(data, CHUNK_BYTES, LEAF_PREFIX)
    return [hashes[at : at + Digest.SIZE] for at in range(0, len(hashes), Digest.SIZE)]
