"""Leaf hashes of chunks and the root over them, by the native module."""

from __future__ import annotations

from identic.kernels import _native
from identic.protocol.hashing import EMPTY_ROOT, LEAF_PREFIX, NODE_PREFIX
from identic.protocol.ids import Digest
from identic.protocol.tensors import CHUNK_BYTES


def chunk_hashes(data: memoryview) -> list[bytes]:
    """Leaf hash of each 4,096-byte chunk of ``data``; the last may be shorter (COM-3)."""
    hashes = _native.chunk_hashes(data, CHUNK_BYTES, LEAF_PREFIX)
    return [hashes[at : at + Digest.SIZE] for at in range(0, len(hashes), Digest.SIZE)]


def chunk_root(data: memoryview) -> Digest:
    """Root over the leaf hashes of the 4,096-byte chunks of ``data`` (COM-3)."""
    hashes = _native.chunk_hashes(data, CHUNK_BYTES, LEAF_PREFIX)
    return Digest(_native.tree_root(hashes, NODE_PREFIX)) if hashes else EMPTY_ROOT
