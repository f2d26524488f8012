"""Launches pools on a CUDA device. Rules: NUM-4, OP-40, OP-42, OP-43."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from identic.kernels.cuda.device import Device, Kernel, Words, blocks_over

BLOCK = 256
"""Threads of a block; tunes speed only."""

_FILE = "pool/cuda.cu"
_ENTRIES = ("max_pool", "max_pool_indices", "max_pool_dx", "sum_pool", "sum_pool_dx")
_FAR = 1 << 30
_WIDE = (("IDN_PLACE", "long long"),)
_KERNELS = {
    (entry, far): Kernel(_FILE, entry, _WIDE if far else ()) for entry in _ENTRIES for far in (0, 1)
}

Axis = Sequence[int]
"""Size, window, stride, dilation, before, count."""


def is_far(planes: int, down: Axis, across: Axis) -> bool:
    """Whether an element or a place, padding included, needs more than 31 bits."""
    sizes = (planes * down[0] * across[0], planes * down[5] * across[5])
    reach = (
        max(size, count * stride) + before + dilation * window
        for size, window, stride, dilation, before, count in (down, across)
    )
    return max(*sizes, *reach) >= _FAR


def _launch(
    device: Device, entry: str, out: Any, *inputs: Any, planes: int, axes: tuple[Axis, Axis]
) -> None:
    if not out.size:
        return
    kernel = _KERNELS[entry, int(is_far(planes, *axes))]
    grid = (blocks_over(device, out.size, BLOCK),)
    device.launch(kernel, grid, (BLOCK,), out, *inputs, planes, Words((*axes[0], *axes[1]), 12))


def max_pool(device: Device, out: Any, x: Any, planes: int, down: Axis, across: Axis) -> None:
    """Largest of each window of ``x`` (planes, H, W), -inf for none: OP-42."""
    _launch(device, "max_pool", out, x, planes=planes, axes=(down, across))


def max_pool_indices(
    device: Device, out: Any, x: Any, planes: int, down: Axis, across: Axis
) -> None:
    """Position in the plane, int64, of the first of the largest of each window, -1 for none."""
    _launch(device, "max_pool_indices", out, x, planes=planes, axes=(down, across))


def max_pool_dx(
    device: Device, out: Any, grad: Any, indices: Any, planes: int, down: Axis, across: Axis
) -> None:
    """Gradients (planes, OH, OW) added, windows in order, to the places of their indices: OP-43."""
    _launch(device, "max_pool_dx", out, grad, indices, planes=planes, axes=(down, across))


def sum_pool(device: Device, out: Any, x: Any, planes: int, down: Axis, across: Axis) -> None:
    """Sum of each window in order, from +0: OP-43."""
    _launch(device, "sum_pool", out, x, planes=planes, axes=(down, across))


def sum_pool_dx(device: Device, out: Any, grad: Any, planes: int, down: Axis, across: Axis) -> None:
    """Gradients added, windows in order, to all places of their windows: OP-43."""
    _launch(device, "sum_pool_dx", out, grad, planes=planes, axes=(down, across))
