"""Leaf hashes and roots of arrays that lie on a device; only digests cross to the host.

All arrays of a state are hashed by the same few launches, so that small ones cost no launch
of their own. Spec: docs/spec/commitments.md (COM-2, COM-3).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from identic.kernels import hashing
from identic.kernels.cuda.device import Device, Kernel
from identic.protocol.hashing import EMPTY_ROOT
from identic.protocol.ids import Digest
from identic.protocol.tensors import CHUNK_BYTES

THREADS = 128
FAN = 512
"""Sizes of ``cuda.cu``: chunks of a block, and neighbours that one block hashes to their root."""

_FILE = "hashing/cuda.cu"
_CHUNKS = Kernel(_FILE, "hash_chunks")
_TREES = Kernel(_FILE, "hash_trees")
_WORDS = Digest.SIZE // 4


def chunk_hashes(device: Device, array: Any) -> list[bytes]:
    """Leaf hash of each 4,096-byte chunk of an array; the last may be shorter (COM-3)."""
    hashes, _ = _leaves(device, [array])
    return _digests(device, hashes)


def chunk_root(device: Device, array: Any) -> Digest:
    """Root over the leaf hashes of the chunks of an array (COM-3)."""
    return chunk_roots(device, [array])[0]


def chunk_roots(device: Device, arrays: Sequence[Any]) -> list[Digest]:
    """The ``chunk_root`` of each array; of numpy's, too, which are hashed on the host.

    Raises:
        ValueError: an array of the device is not row-major without gaps.
    """
    filled = [a for a in arrays if a.size and device.holds(a)]
    nodes, counts = _leaves(device, filled)
    while any(n > 1 for n in counts):
        nodes, counts = _subtrees(device, nodes, counts)
    roots = iter(_digests(device, nodes))
    return [Digest(next(roots)) if a.size and device.holds(a) else _host_root(a) for a in arrays]


def _host_root(array: Any) -> Digest:
    return hashing.chunk_root(hashing.raw_bytes(array)) if array.size else EMPTY_ROOT


def _leaves(device: Device, arrays: Sequence[Any]) -> tuple[Any, list[int]]:
    """Leaf hashes of some arrays one after the other, and how many each has."""
    if not all(a.flags.c_contiguous for a in arrays):
        raise ValueError("only the bytes of a row-major array are hashed")
    sizes = [a.size * a.dtype.itemsize for a in arrays]
    counts = [-(-size // CHUNK_BYTES) for size in sizes]
    firsts = list(accumulate(counts, initial=0))
    hashes = device.empty((firsts[-1] * _WORDS,), np.dtype("<u4"))
    if firsts[-1]:
        places = [device.address(a) for a in arrays]
        table = _table(device, zip(places, sizes, firsts[:-1], strict=True))
        grid = (-(-firsts[-1] // THREADS),)
        device.launch(_CHUNKS, grid, (THREADS,), hashes, table, len(sizes), firsts[-1])
    return hashes, counts


def _subtrees(device: Device, nodes: Any, counts: Sequence[int]) -> tuple[Any, list[int]]:
    """The roots of each array's neighbours, ``FAN`` at a time, and how many each has."""
    left = [-(-n // FAN) for n in counts]
    firsts, results = accumulate(counts, initial=0), list(accumulate(left, initial=0))
    table = _table(device, zip(firsts, counts, results, strict=False))
    roots = device.empty((results[-1] * _WORDS,), np.dtype("<u4"))
    device.launch(_TREES, (results[-1],), (FAN // 2,), roots, nodes, table, len(counts))
    return roots, left


def _table(device: Device, rows: Any) -> Any:
    return device.upload(np.array(list(rows), dtype=np.int64))


def _digests(device: Device, words: Any) -> list[bytes]:
    found = device.download(words).tobytes()
    return [found[at : at + Digest.SIZE] for at in range(0, len(found), Digest.SIZE)]
