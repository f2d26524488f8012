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
_UINT32, _UINT64 = np.dtype("<u4"), np.dtype("<u8")
_IN_C = {_UINT32: "uint32_t", _UINT64: "uint64_t"}


def _kernel(entry: str, key: np.dtype[Any], place: np.dtype[Any]) -> Kernel:
    return Kernel(_FILE, entry, (("KEY", _IN_C[key]), ("PLACE", _IN_C[place])))


def argsort(
    device: Device, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
) -> None:
    """Positions (int64) of the first ``count`` elements of each row of x (rows, n).

    Raises:
        ValueError: x is not float32, int32 or int64, or count is not in [0, n].
    """
    if x.dtype not in (np.float32, np.int32, np.int64):
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
    key = _key(x)
    width_bits = (n - 1).bit_length()
    span = max(SPAN, 1 << width_bits)
    groups = -(-rows // (span >> width_bits))
    grid = blocks_over(device, groups, 1)
    sizes = (int(x.dtype == np.float32), rows, n, count, int(descending), width_bits, span)
    shared = span * (key.itemsize + 4)
    kernel = _kernel("sort_short", key, _UINT32)
    device.launch(kernel, (grid,), (THREADS,), out, x, *sizes, shared=shared)


def _long(
    device: Device, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
) -> None:
    key = _key(x)
    keys = device.empty((rows * n,), key)
    kernel = _kernel("order_keys", key, _UINT32)
    grid = blocks_over(device, keys.size, THREADS)
    is_float = int(x.dtype == np.float32)
    sizes = (is_float, keys.size, int(descending))
    device.launch(kernel, (grid,), (THREADS,), keys, x, *sizes)
    _, places = sort_pairs(device, keys, rows, n, 8 * key.itemsize)
    kernel = _kernel("first_places", key, places.dtype)
    grid = blocks_over(device, rows * count, THREADS)
    device.launch(kernel, (grid,), (THREADS,), out, places, rows, n, count)


def _key(x: Any) -> np.dtype[Any]:
    """The type of keys of an element."""
    return _UINT64 if x.dtype.itemsize == 8 else _UINT32


def sort_pairs(device: Device, keys: Any, rows: int, n: int, bits: int) -> tuple[Any, Any]:
    """Sort the keys of each row, with their positions; equal keys keep their order.

    Args:
        device: where the keys are.
        keys: (rows * n,) uint32 or uint64, below ``2^bits``; their content is lost.
        rows: number of rows, at least 1.
        n: keys of a row, at least 1.
        bits: bits of a key that differ at most, at least 1.

    Returns:
        Sorted keys and, for each, its position in its row before; uint32, or uint64 in a row
        of 2^32 or more.
    """
    place = _UINT64 if n >= WIDE_ROW else _UINT32
    key = np.dtype(keys.dtype)
    tiles = -(-n // (ITEMS * THREADS))
    before = device.empty((rows * tiles * DIGITS,), place)
    base = device.empty((rows * DIGITS,), place)
    places, to_keys, to_places = (device.empty((rows * n,), t) for t in (place, key, place))
    for shift in range(0, bits, DIGIT_BITS):
        grid, block = (rows * tiles,), (THREADS,)
        kernel = _kernel("count_digits", key, place)
        device.launch(kernel, grid, block, before, keys, n, tiles, shift)
        kernel = _kernel("digit_offsets", key, place)
        device.launch(kernel, (rows,), block, base, before, tiles)
        kernel = _kernel("move_by_digit", key, place)
        moved = (to_keys, to_places, keys, places, before, base)
        device.launch(kernel, grid, block, *moved, n, tiles, shift, int(shift == 0))
        keys, places, to_keys, to_places = to_keys, to_places, keys, places
    return keys, places
