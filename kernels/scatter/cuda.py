"""Launchers of writes and additions at places read from an index. Rules: OP-4, OP-32, NUM-14."""

from __future__ import annotations

from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.kernels.index.cuda import (
    BLOCK,
    Places,
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

WIDE_LINE = (1 << 32) - 1
"""Least number of indices of a line whose positions need 64 bits."""

_FILE = "scatter/cuda.cu"
_WRITE_LINES = Kernel(_FILE, "write_lines")
_CLAIMING = {
    (entry, nbytes): Kernel(_FILE, entry, macros)
    for entry in ("claim", "write_rows", "write_claimed")
    for nbytes, macros in ((4, ()), (8, (("CLAIM", "unsigned long long"),)))
}


def set_rows(
    device: Device, out: Any, init: Any, index: Any, src: Any, rows: int, inner: int
) -> None:
    """out = init (rows, inner), then out[index[t]] = src[t] for t ascending (OP-32)."""
    wide = is_wide(index)
    copy_all(device, out, init)
    if not out.size or not index.size:
        return
    places = Places((index.size,), (0,))
    claims = _claimed(device, index, rows, 1, 1, index.size, places, rows)
    row_bytes = inner * out.dtype.itemsize
    bits = lane_bits(-(-row_bytes // 16))
    sizes = (wide, index.size, rows, row_bytes, bits)
    grid = (over_rows(device, index.size, bits),)
    kernel = _kernel("write_rows", claims)
    device.launch(kernel, grid, (BLOCK,), out, src, claims, index, *sizes)


def scatter(device: Device, out: Any, x: Any, index: Any, src: Any, axis: int) -> None:
    """out = x, then out[.., index, ..] = src[.., j, ..] along the axis for j ascending (OP-32)."""
    wide = is_wide(index)
    copy_all(device, out, x)
    if not out.size or not index.size:
        return
    shape = list(index.shape)
    there, here = list(strides(x.shape)), strides(index.shape)
    size, along, step, length = x.shape[axis], there[axis], here[axis], shape[axis]
    nbytes = out.dtype.itemsize
    if length <= SHORT_LINE:
        lines = Places([*shape[:axis], 1, *shape[axis + 1 :]], there, here)
        grid = (blocks_over(device, lines.count, BLOCK),)
        sizes = (wide, nbytes, lines.count, length, step, size, along, *lines.arguments)
        device.launch(_WRITE_LINES, grid, (BLOCK,), out, src, index, *sizes)
        return
    there[axis] = 0
    places = Places(shape, there)
    claims = _claimed(device, index, size, along, step, length, places, out.size)
    grid = (blocks_over(device, index.size, BLOCK),)
    sizes = (wide, nbytes, index.size, size, along, step, length, *places.arguments)
    kernel = _kernel("write_claimed", claims)
    device.launch(kernel, grid, (BLOCK,), out, src, claims, index, *sizes)


def _kernel(entry: str, claims: Any) -> Kernel:
    """The entry for the type of some claims."""
    return _CLAIMING[entry, claims.dtype.itemsize]


def _claimed(
    device: Device,
    index: Any,
    size: int,
    along: int,
    step: int,
    length: int,
    places: Places,
    count: int,
) -> Any:
    """Of each of ``count`` places the position, plus 1, of the last index that names it."""
    claims = device.empty((count,), np.dtype("<u4" if length < WIDE_LINE else "<u8"))
    clear(device, claims)
    grid = (blocks_over(device, index.size, BLOCK),)
    sizes = (is_wide(index), index.size, size, along, step, length, *places.arguments)
    device.launch(_kernel("claim", claims), grid, (BLOCK,), claims, index, *sizes)
    return claims
