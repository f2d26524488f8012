"""Launches running sums on a CUDA device. Rules: OP-30, NUM-9, NUM-13."""

from __future__ import annotations

from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over

CHAIN = 256
"""Elements of a block, whose chain starts anew: NUM-13."""
THREADS = 128
"""Threads of a block of the device: ``cuda.cu``."""

TYPES: dict[np.dtype[Any], tuple[tuple[str, str], ...]] = {
    np.dtype("<f4"): (),
    np.dtype("<i4"): (("IDN_TYPE", "int"),),
    np.dtype("<i8"): (("IDN_TYPE", "long long"),),
}
"""Macros of the element types that have sums."""

_KERNELS = {
    (entry, dtype): Kernel("scan/cuda.cu", entry, macros)
    for entry in ("chain_totals", "chain_sums", "sum_before")
    for dtype, macros in TYPES.items()
}


def chain_totals(device: Device, totals: Any, x: Any, rows: int, n: int) -> None:
    """The chain of each block of 256 of each row of ``x`` (rows, n): (rows, blocks)."""
    grid = (blocks_over(device, totals.size, THREADS),)
    device.launch(_KERNELS["chain_totals", x.dtype], grid, (THREADS,), totals, x, rows, n)


def cumsum(device: Device, out: Any, x: Any, rows: int, n: int) -> None:
    """``out[r, i]`` = ``x[r, 0]`` + ... + ``x[r, i]``; float32, int32 or int64 (rows, n)."""
    if not out.size:
        return
    blocks = -(-n // CHAIN)
    before = x
    if blocks > 1:
        totals, before = (device.empty((rows * blocks,), x.dtype) for _ in range(2))
        chain_totals(device, totals, x, rows, n)
        arguments = (before, totals, rows, blocks)
        grid = (blocks_over(device, 32 * rows, THREADS),)
        device.launch(_KERNELS["sum_before", x.dtype], grid, (THREADS,), *arguments)
    grid = (blocks_over(device, rows * blocks, THREADS),)
    device.launch(_KERNELS["chain_sums", x.dtype], grid, (THREADS,), out, x, before, rows, n)
