"""Launchers of sorted positions, and the stable sort of pairs. Rule: OP-31."""

from __future__ import annotations

from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.protocol.errors import LocalError

THREADS = 256
ITEMS = 8
DIGITS = 256
DIGIT_BITS = 8
"""Sizes of ``cuda.cu``; the first two tune speed only."""

SHORT_ROW = 2048
"""Longest row that is sorted inside a block; tunes speed only."""

SPAN = 512
"""Pairs that a block sorts at least."""

ROOM = 1 << 26
"""Elements that the passes work on at a time, or one row if that is longer."""

LONGEST_ROW = (1 << 32) - 1
"""Most elements of a row: positions have 32 bits."""

_FILE = "sort/cuda.cu"
_KIND = {np.dtype("<f4"): 0, np.dtype("<i4"): 1, np.dtype("<i8"): 2}
"""How ``cuda.cu`` names element types."""

_UINT32 = np.dtype("<u4")
_KERNELS = {
    (entry, nbytes): Kernel(_FILE, entry, macros)
    for entry in (
        *("order_keys", "sort_short", "count_digits", "digit_offsets", "move_by_digit"),
        "first_places",
    )
    for nbytes, macros in ((4, ()), (8, (("KEY", "uint64_t"),)))
}
"""By the entry and the bytes of a key."""


def argsort(
    device: Device, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
) -> None:
    """Positions (int64) of the first ``count`` elements of each row of x (rows, n).

    Raises:
        ValueError: x is not float32, int32 or int64, or count is not in [0, n].
        LocalError: a row has 2^32 elements or more.
    """
    if x.dtype not in _KIND:
        raise ValueError("x must be float32, int64 or int32")
    if not 0 <= count <= n:
        raise ValueError("count must be in [0, n]")
    if not rows * count:
        return
    if n <= SHORT_ROW:
        _short(device, out, x, rows, n, count, descending)
        return
    x, out = x.reshape(-1), out.reshape(-1)
    several = max(1, ROOM // n)
    for first in range(0, rows, several):
        some = min(several, rows - first)
        part = x[first * n : (first + some) * n]
        to = out[first * count : (first + some) * count]
        _long(device, to, part, some, n, count, descending)


def _short(
    device: Device, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
) -> None:
    key_bytes = x.dtype.itemsize
    width_bits = (n - 1).bit_length()
    span = max(SPAN, 1 << width_bits)
    groups = -(-rows // (span >> width_bits))
    grid = blocks_over(device, groups, 1)
    sizes = (_KIND[x.dtype], rows, n, count, int(descending), width_bits, span)
    shared = span * (key_bytes + 4)
    kernel = _KERNELS["sort_short", key_bytes]
    device.launch(kernel, (grid,), (THREADS,), out, x, *sizes, shared=shared)


def _long(
    device: Device, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
) -> None:
    nbytes = x.dtype.itemsize
    keys = device.empty((rows * n,), np.dtype(f"<u{nbytes}"))
    grid = (blocks_over(device, keys.size, THREADS),)
    sizes = (_KIND[x.dtype], keys.size, int(descending))
    device.launch(_KERNELS["order_keys", nbytes], grid, (THREADS,), keys, x, *sizes)
    _, places = sort_pairs(device, keys, rows, n, 8 * nbytes)
    grid = (blocks_over(device, rows * count, THREADS),)
    kernel = _KERNELS["first_places", nbytes]
    device.launch(kernel, grid, (THREADS,), out, places, rows, n, count)


def sort_pairs(device: Device, keys: Any, rows: int, n: int, bits: int) -> tuple[Any, Any]:
    """Sort the keys of each row, with their positions; equal keys keep their order.

    Args:
        device: where the keys are.
        keys: (rows * n,) uint32 or uint64, below ``2^bits``; their content is lost.
        rows: number of rows, at least 1.
        n: keys of a row, at least 1.
        bits: bits of a key that differ at most, at least 1.

    Returns:
        Sorted keys and, for each, its position (uint32) in its row before.

    Raises:
        LocalError: a row has 2^32 keys or more.
    """
    if n > LONGEST_ROW:
        problem = f"{n} elements are too many to be sorted at once on {device.name}"
        raise LocalError(problem, remedy="take the job to a CPU worker")
    nbytes = keys.dtype.itemsize
    count, offsets, move = (
        _KERNELS[entry, nbytes] for entry in ("count_digits", "digit_offsets", "move_by_digit")
    )
    tiles = -(-n // (ITEMS * THREADS))
    before = device.empty((rows * tiles * DIGITS,), _UINT32)
    base = device.empty((rows * DIGITS,), _UINT32)
    to_keys = device.empty((rows * n,), np.dtype(f"<u{nbytes}"))
    places, to_places = (device.empty((rows * n,), _UINT32) for _ in range(2))
    grid, block = (rows * tiles,), (THREADS,)
    for shift in range(0, bits, DIGIT_BITS):
        device.launch(count, grid, block, before, keys, n, tiles, shift)
        device.launch(offsets, (rows,), block, base, before, tiles)
        moved = (to_keys, to_places, keys, places, before, base)
        device.launch(move, grid, block, *moved, n, tiles, shift, int(shift == 0))
        keys, places, to_keys, to_places = to_keys, to_places, keys, places
    return keys, places
