"""Launchers of the operators that read indices. Rules: OP-4, NUM-14.

``add_rows`` and ``scatter_add`` sort the source positions by the place they are added to and
sum each run of equal places in order, so that nothing depends on which thread comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.kernels.cuda.places import Places
from identic.kernels.sort.cuda import sort_pairs
from identic.protocol.tensors import strides

BLOCK = 256
"""Threads of a block; tunes speed only."""

LONG_RUN = 64
"""Places of a run above which a block sums it; ``cuda_sums.cu``. Tunes speed only."""

LONG_BLOCK = 256
"""Threads of a block that sums a long run; ``cuda_sums.cu``."""

SHORT_LINE = 16
"""Indices of a line up to which one thread adds them; tunes speed only."""

_LOOKUPS, _SUMS = "index/cuda.cu", "index/cuda_sums.cu"
_TAKE_ROWS = Kernel(_LOOKUPS, "take_rows")
_TAKE_WINDOWS = Kernel(_LOOKUPS, "take_windows")
_GATHER = Kernel(_LOOKUPS, "gather")
_COPY_ALL = Kernel(_LOOKUPS, "copy_all")
_ADD_ZERO = Kernel(_SUMS, "add_zero")
_ADD_LINES = Kernel(_SUMS, "add_lines")
_TARGET_KEYS = Kernel(_SUMS, "target_keys")
_ADD_SHORT_RUNS = Kernel(_SUMS, "add_short_runs")
_ADD_LONG_RUNS = Kernel(_SUMS, "add_long_runs")


def is_wide(index: Any) -> int:
    """1 for int64 indices, 0 for int32.

    Raises:
        ValueError: it is neither.
    """
    if index.dtype not in (np.int64, np.int32):
        raise ValueError("indices must be int64 or int32")
    return int(index.dtype == np.int64)


def lane_bits(elements: int) -> int:
    """Neighbouring threads that share a row of so many elements, as a power of two."""
    return min(max(elements - 1, 0).bit_length(), BLOCK.bit_length() - 1)


def over_rows(device: Device, rows: int, bits: int) -> int:
    """Blocks for ``2^bits`` threads a row."""
    return blocks_over(device, rows << bits, BLOCK)


# ---- look-ups -------------------------------------------------------------------------------


def take_rows(device: Device, out: Any, table: Any, index: Any, rows: int, row_bytes: int) -> None:
    """out[t] = table[index[t]], rows of ``row_bytes``; zeros where the index is outside."""
    wide = is_wide(index)
    if out.size:
        bits = lane_bits(-(-row_bytes // 16))
        grid = (over_rows(device, index.size, bits),)
        sizes = (wide, index.size, rows, row_bytes, bits)
        device.launch(_TAKE_ROWS, grid, (BLOCK,), out, table, index, *sizes)


def take_windows(device: Device, out: Any, tokens: Any, starts: Any, length: int) -> None:
    """out[b, i] = tokens[starts[b] + i]; zero from a negative start and beyond the end."""
    wide = is_wide(starts)
    if out.size:
        bits = lane_bits(length)
        grid = (over_rows(device, starts.size, bits),)
        sizes = (wide, out.dtype.itemsize, starts.size, tokens.size, length, bits)
        device.launch(_TAKE_WINDOWS, grid, (BLOCK,), out, tokens, starts, *sizes)


def gather(device: Device, out: Any, x: Any, index: Any, axis: int) -> None:
    """out[.., i, ..] = x[.., index[.., i, ..], ..]; zero where the index is outside the axis."""
    wide = is_wide(index)
    if out.size:
        steps = list(strides(x.shape))
        size, along, steps[axis] = x.shape[axis], steps[axis], 0
        places = Places.of(index.shape, steps)
        sizes = (wide, out.dtype.itemsize, index.size, size, along, *places.arguments)
        grid = (blocks_over(device, out.size, BLOCK),)
        device.launch(_GATHER, grid, (BLOCK,), out, x, index, *sizes)


# ---- whole arrays ---------------------------------------------------------------------------


def copy_all(device: Device, out: Any, x: Any) -> None:
    """The bytes of ``x``, row-major and as long as ``out``."""
    _fill(device, out, x, zeros=False)


def clear(device: Device, out: Any) -> None:
    """Zero bytes."""
    _fill(device, out, out, zeros=True)


def _fill(device: Device, out: Any, x: Any, *, zeros: bool) -> None:
    nbytes = out.size * out.dtype.itemsize
    if nbytes:
        grid = (blocks_over(device, -(-nbytes // 16), BLOCK),)
        device.launch(_COPY_ALL, grid, (BLOCK,), out, x, nbytes, int(zeros))


# ---- ordered sums ---------------------------------------------------------------------------


def add_rows(
    device: Device, out: Any, init: Any, index: Any, src: Any, rows: int, inner: int
) -> None:
    """Scatter-add of src (len(index), inner) into init (rows, inner) in the order of NUM-14."""
    is_wide(index)
    if not out.size:
        return
    if not index.size:
        copy_all(device, out, init)
        return
    _add_zero(device, out, init, Places.of((out.size,), (1,)))
    keys = _targets(device, index, Places.of((index.size,), (0,)), rows, 1, rows)
    _add_runs(device, out, src, keys, rows, inner, 1, index.size)


def scatter_add(device: Device, out: Any, x: Any, index: Any, src: Any, axis: int) -> None:
    """out[.., index, ..] += src[.., j, ..] along the axis, in the order of NUM-14."""
    wide = is_wide(index)
    if not out.size:
        return
    shape = list(index.shape)
    lines = [*shape[:axis], 1, *shape[axis + 1 :]]
    there, here = list(strides(x.shape)), strides(index.shape)
    size, along, step, length = x.shape[axis], there[axis], here[axis], shape[axis]
    covered = [*shape[:axis], size, *shape[axis + 1 :]]
    if not index.size or covered != list(x.shape):
        copy_all(device, out, x)
    if not index.size:
        return
    _add_zero(device, out, x, Places.of(covered, there))
    if length <= SHORT_LINE:
        places = Places.of(lines, there, here)
        grid = (blocks_over(device, places.elements, BLOCK),)
        sizes = (wide, places.elements, length, step, size, along, *places.arguments)
        device.launch(_ADD_LINES, grid, (BLOCK,), out, src, index, *sizes)
        return
    there[axis] = 0
    keys = _targets(device, index, Places.of(shape, there), size, along, out.size)
    _add_runs(device, out, src, keys, out.size, 1, step, length)


def _add_zero(device: Device, out: Any, x: Any, places: Places) -> None:
    """out = x + 0 at some places."""
    grid = (blocks_over(device, places.elements, BLOCK),)
    device.launch(_ADD_ZERO, grid, (BLOCK,), out, x, places.elements, *places.arguments)


def _targets(device: Device, index: Any, places: Places, size: int, along: int, none: int) -> Any:
    """For each index the place it names, ``none`` for one outside [0, size)."""
    keys = device.empty((index.size,), np.dtype("<u8"))
    grid = (blocks_over(device, index.size, BLOCK),)
    sizes = (is_wide(index), index.size, size, along, none, *places.arguments)
    device.launch(_TARGET_KEYS, grid, (BLOCK,), keys, index, *sizes)
    return keys


def _add_runs(
    device: Device, out: Any, src: Any, keys: Any, none: int, inner: int, step: int, length: int
) -> None:
    """Add to each row of out (.., inner) its rows of src, chunk by chunk of their lines."""
    n = keys.size
    keys, places = sort_pairs(device, keys, 1, n, none.bit_length())
    arguments = (out, src, keys, places, n, none, inner, step, length)
    bits = lane_bits(inner)
    grid = (over_rows(device, n, bits),)
    device.launch(_ADD_SHORT_RUNS, grid, (BLOCK,), *arguments, bits)
    if n > LONG_RUN:
        grid = (blocks_over(device, -(-n // LONG_RUN) * -(-inner // 32), 1),)
        device.launch(_ADD_LONG_RUNS, grid, (LONG_BLOCK,), *arguments)
