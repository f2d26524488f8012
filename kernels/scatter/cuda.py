"""Launchers of writes and additions at places read from an index. Rules: OP-4, OP-32, NUM-14."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.kernels.cuda.places import Places
from identic.kernels.index.cuda import (
    BLOCK,
    clear,
    copy_all,
    is_wide,
    lane_bits,
    over_rows,
    scatter_add,
)
from identic.protocol.tensors import strides

__all__ = ["scatter", "scatter_add", "set_rows"]

SHORT_LINE = 32
"""Indices of a line up to which one thread writes them; tunes speed only."""

CLAIMS = (1 << 32) - 1
"""Positions of a line that claim at a time; ``cuda.cu``."""

_FILE = "scatter/cuda.cu"
_CLAIM = Kernel(_FILE, "claim")
_WRITE_ROWS = Kernel(_FILE, "write_rows")
_WRITE_CLAIMED = Kernel(_FILE, "write_claimed")
_WRITE_LINES = Kernel(_FILE, "write_lines")


def set_rows(
    device: Device, out: Any, init: Any, index: Any, src: Any, rows: int, inner: int
) -> None:
    """out = init (rows, inner), then out[index[t]] = src[t] for t ascending (OP-32)."""
    wide, count = is_wide(index), index.size
    copy_all(device, out, init)
    if not out.size or not count:
        return
    lines = (rows, 1, 1, count)
    row_bytes = inner * out.dtype.itemsize
    bits = lane_bits(-(-row_bytes // 16))
    grid = (over_rows(device, count, bits),)
    for first, claims in _claims(device, index, lines, Places.of((count,), (0,)), rows):
        sizes = (wide, count, rows, row_bytes, first, bits)
        device.launch(_WRITE_ROWS, grid, (BLOCK,), out, src, claims, index, *sizes)


def scatter(device: Device, out: Any, x: Any, index: Any, src: Any, axis: int) -> None:
    """out = x, then out[.., index, ..] = src[.., j, ..] along the axis for j ascending (OP-32)."""
    wide = is_wide(index)
    copy_all(device, out, x)
    if not out.size or not index.size:
        return
    shape, nbytes = list(index.shape), out.dtype.itemsize
    there, here = list(strides(x.shape)), strides(index.shape)
    size, along, step, length = x.shape[axis], there[axis], here[axis], shape[axis]
    sizes: tuple[Any, ...]
    if length <= SHORT_LINE:
        places = Places.of([*shape[:axis], 1, *shape[axis + 1 :]], there, here)
        grid = (blocks_over(device, places.elements, BLOCK),)
        line = (length, step, size, along)
        sizes = (wide, nbytes, places.elements, *line, *places.arguments)
        device.launch(_WRITE_LINES, grid, (BLOCK,), out, src, index, *sizes)
        return
    there[axis] = 0
    lines, places = (size, along, step, length), Places.of(shape, there)
    grid = (blocks_over(device, index.size, BLOCK),)
    for first, claims in _claims(device, index, lines, places, out.size):
        sizes = (wide, nbytes, index.size, *lines, first, *places.arguments)
        device.launch(_WRITE_CLAIMED, grid, (BLOCK,), out, src, claims, index, *sizes)


def _claims(
    device: Device, index: Any, lines: tuple[int, int, int, int], places: Places, count: int
) -> Iterator[tuple[int, Any]]:
    """Some positions of all lines at a time: the first, and who claims each of ``count`` places.

    Args:
        device: where the index is.
        index: names the places.
        lines: length of the axis, step along it, step of a position and positions of a line.
        places: of the index, in what is written.
        count: places there are.
    """
    grid = (blocks_over(device, index.size, BLOCK),)
    for first in range(0, lines[-1], CLAIMS):
        claims = device.empty((count,), np.dtype("<u4"))
        clear(device, claims)
        sizes = (is_wide(index), index.size, *lines, first, *places.arguments)
        device.launch(_CLAIM, grid, (BLOCK,), claims, index, *sizes)
        yield first, claims
