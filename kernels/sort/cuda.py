"""Launchers of sorted positions, and the stable sort of pairs. Rule: OP-31."""

from __future__ import annotations

from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over

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

WIDE_ROW = 1 << 32
"""Shortest row whose positions need 64 bits."""

_FILE = "sort/cuda.cu"
_KIND = {np.dtype("<f4"): 0, np.dtype("<i4"): 1, np.dtype("<i8"): 2}
"""How ``cuda.cu`` names element types."""

WIDTHS: dict[tuple[int, int], tuple[tuple[str, str], ...]] = {
    (4, 4): (),
    (8, 4): (("KEY", "uint64_t"),),
    (8, 8): (("KEY", "uint64_t"), ("PLACE", "uint64_t")),
}
"""Macros by the bytes of a key and of a position."""

_ENTRIES = (
    *("order_keys", "sort_short", "count_digits", "digit_offsets", "move_by_digit"),
    "first_places",
)
_KERNELS = {
    (entry, *widths): Kernel(_FILE, entry, macros)
    for entry in _ENTRIES
    for widths, macros in WIDTHS.items()
}


def key_and_place(key_bytes: int, n: int) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Types of the keys, of at least so many bytes, and of the positions of a row of ``n``."""
    wide = n >= WIDE_ROW
    return np.dtype(f"<u{8 if wide else key_bytes}"), np.dtype("<u8" if wide else "<u4")


def _kernel(entry: str, *arrays: Any) -> Kernel:
    """The entry for the types of some keys and positions."""
    key, place = (a.dtype.itemsize for a in arrays)
    return _KERNELS[entry, key, place]


def argsort(
    device: Device, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
) -> None:
    """Positions (int64) of the first ``count`` elements of each row of x (rows, n).

    Raises:
        ValueError: x is not float32, int32 or int64, or count is not in [0, n].
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
    kernel = _KERNELS["sort_short", key_bytes, 4]
    device.launch(kernel, (grid,), (THREADS,), out, x, *sizes, shared=shared)


def _long(
    device: Device, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
) -> None:
    key, place = key_and_place(x.dtype.itemsize, n)
    keys = device.empty((rows * n,), key)
    grid = (blocks_over(device, keys.size, THREADS),)
    sizes = (_KIND[x.dtype], keys.size, int(descending))
    kernel = _KERNELS["order_keys", key.itemsize, place.itemsize]
    device.launch(kernel, grid, (THREADS,), keys, x, *sizes)
    keys, places = sort_pairs(device, keys, rows, n, 8 * x.dtype.itemsize)
    grid = (blocks_over(device, rows * count, THREADS),)
    kernel = _kernel("first_places", keys, places)
    device.launch(kernel, grid, (THREADS,), out, places, rows, n, count)


def sort_pairs(device: Device, keys: Any, rows: int, n: int, bits: int) -> tuple[Any, Any]:
    """Sort the keys of each row, with their positions; equal keys keep their order.

    Args:
        device: where the keys are.
        keys: (rows * n,), below ``2^bits``, of the type that ``key_and_place`` tells; their
            content is lost.
        rows: number of rows, at least 1.
        n: keys of a row, at least 1.
        bits: bits of a key that differ at most, at least 1.

    Returns:
        Sorted keys and, for each, its position in its row before.
    """
    key, place = key_and_place(keys.dtype.itemsize, n)
    tiles = -(-n // (ITEMS * THREADS))
    before = device.empty((rows * tiles * DIGITS,), place)
    base = device.empty((rows * DIGITS,), place)
    places, to_keys, to_places = (device.empty((rows * n,), t) for t in (place, key, place))
    grid, block = (rows * tiles,), (THREADS,)
    for shift in range(0, bits, DIGIT_BITS):
        kernel = _kernel("count_digits", keys, places)
        device.launch(kernel, grid, block, before, keys, n, tiles, shift)
        kernel = _kernel("digit_offsets", keys, places)
        device.launch(kernel, (rows,), block, base, before, tiles)
        kernel = _kernel("move_by_digit", keys, places)
        moved = (to_keys, to_places, keys, places, before, base)
        device.launch(kernel, grid, block, *moved, n, tiles, shift, int(shift == 0))
        keys, places, to_keys, to_places = to_keys, to_places, keys, places
    return keys, places
