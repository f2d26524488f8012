"""Launches sums and maxima of rows and columns on a CUDA device.

Rules: NUM-4, NUM-9, NUM-12, NUM-13.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.kernels.scan.cuda import CHAIN, TYPES, chain_totals

BLOCK_ROW = 4096
"""Elements of a row that are summed in 64 lanes: NUM-12."""
CHUNK = CHAIN
"""Rows of a column's chunk, as long as the blocks of running sums: NUM-13."""

THREADS = 128
"""Threads of a block, whole warps; tunes speed only."""
NARROW, NARROW_THREADS = 32, 128
"""Columns from which on each has a thread of its own, and threads of a block below that."""
PIECE = 4096
"""Elements of a row that a warp looks through for a maximum; tunes speed only."""

_FILE = "reduce/cuda.cu"
_ROWS = ("sum_rows", "largest_of_rows", "first_of_largest", "first_of_candidates")
_KERNELS = {
    (entry, dtype): Kernel(_FILE, entry, macros)
    for entry in (*_ROWS, "sum_chunks", "sum_narrow_chunks", "fold_chunks")
    for dtype, macros in TYPES.items()
}
_INT64 = np.dtype("<i8")


def _over_rows(
    device: Device, entry: str, out: Any, x: Any, rows: int, n: int, *, length: int
) -> None:
    """One of the kernels that give pieces of rows to as many threads as are worth it."""
    width = next((w for w in (8, 16) if n <= w), 32)
    grid = (blocks_over(device, rows * -(-max(n, 1) // length) * width, THREADS),)
    arguments = (out, x, rows, n, length, width)
    device.launch(_KERNELS[entry, x.dtype], grid, (THREADS,), *arguments)


def _in_pieces(
    device: Device, entry: str, out: Any, x: Any, rows: int, n: int, *, length: int
) -> None:
    """A row operation that is applied again to what it gives for the pieces of a row."""
    if not rows:
        return
    while n > length:
        pieces = -(-n // length)
        results = device.empty((rows * pieces,), x.dtype)
        _over_rows(device, entry, results, x, rows, n, length=length)
        x, n = results, pieces
    _over_rows(device, entry, out, x, rows, n, length=length)


def sum_last(device: Device, out: Any, x: Any, rows: int, n: int) -> None:
    """Row sums of ``x`` (rows, n), float32, int32 or int64: NUM-12."""
    _in_pieces(device, "sum_rows", out, x, rows, n, length=BLOCK_ROW)


def sum_first(device: Device, out: Any, x: Any, n: int, inner: int) -> None:
    """Column sums of ``x`` (n, inner), float32, int32 or int64: NUM-13."""
    if not inner:
        return
    chunks = -(-n // CHUNK)
    results = out if chunks == 1 else device.empty((chunks * inner,), x.dtype)
    if chunks > 1 and inner == 1:
        chain_totals(device, results, x, 1, n)
    elif chunks and 1 < inner < NARROW:
        warps = -(-chunks // (NARROW // inner))
        grid = (blocks_over(device, 32 * warps, NARROW_THREADS),)
        kernel = _KERNELS["sum_narrow_chunks", x.dtype]
        device.launch(kernel, grid, (NARROW_THREADS,), results, x, n, inner)
    elif chunks:
        grid = (blocks_over(device, chunks * inner, THREADS),)
        kernel = _KERNELS["sum_chunks", x.dtype]
        device.launch(kernel, grid, (THREADS,), results, x, n, inner)
    if chunks != 1:
        grid = (blocks_over(device, inner, THREADS),)
        kernel = _KERNELS["fold_chunks", x.dtype]
        device.launch(kernel, grid, (THREADS,), out, results, chunks, inner)


def amax(device: Device, out: Any, x: Any, rows: int, n: int) -> None:
    """Largest of each row of ``x`` (rows, n), n >= 1, float32, int32 or int64: NUM-4."""
    _in_pieces(device, "largest_of_rows", out, x, rows, n, length=PIECE)


def argmax(device: Device, out: Any, x: Any, rows: int, n: int) -> None:
    """Position, int64, of the first of the largest of each row of ``x`` (rows, n), n >= 1."""
    if not rows:
        return
    pieces = -(-n // PIECE)
    found = out if pieces == 1 else device.empty((rows * pieces,), _INT64)
    _over_rows(device, "first_of_largest", found, x, rows, n, length=PIECE)
    if pieces > 1:
        grid = (blocks_over(device, 32 * rows, THREADS),)
        kernel = _KERNELS["first_of_candidates", x.dtype]
        device.launch(kernel, grid, (THREADS,), out, x, found, rows, n, pieces)
