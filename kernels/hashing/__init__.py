"""Leaf hashes of chunks and the root over them, by the native module.

``cuda.py`` has the same for arrays that lie on a device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import Array, on_host, row_major
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


def raw_bytes(array: Array) -> memoryview:
    """The bytes of a tensor as they are hashed and stored."""
    return memoryview(row_major(on_host(array)).reshape(-1).view(np.uint8).data)


def chunk_roots(arrays: Sequence[Array]) -> list[Digest]:
    """The ``chunk_root`` of each array's bytes."""
    return [chunk_root(raw_bytes(array)) for array in arrays]
