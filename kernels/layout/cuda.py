"""Launchers of movement and creation. Rules: NUM-2, NUM-9."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.kernels.cuda.places import Places

BLOCK = 256
TURN_ROWS = 8
"""Threads of a block, and rows of them where it turns a tile; they tune speed only."""

TILE = 32
"""Side of a tile of ``cuda.cu``."""

LEAST_TURN = 8
"""Shortest axes that are worth a tile; tunes speed only."""

_FILE = "layout/cuda.cu"
_COPY, _TURN, _FULL = (
    {size: Kernel(_FILE, f"{name}_{size}") for size in (1, 2, 4, 8)}
    for name in ("copy", "turn", "full")
)
_IOTA = {size: Kernel(_FILE, f"iota_{size}") for size in (4, 8)}


def copy_strided(
    device: Device,
    out: Any,
    out_offset: int,
    out_strides: Sequence[int],
    x: Any,
    x_offset: int,
    x_strides: Sequence[int],
    shape: Sequence[int],
) -> None:
    """out[out_offset + sum i out_strides] = x[x_offset + sum i x_strides] over the shape.

    Offsets and strides are in elements, from the first element of each array.

    Raises:
        ValueError: elements of two sizes.
    """
    size = out.dtype.itemsize
    if x.dtype.itemsize != size:
        raise ValueError(f"a copy of {x.dtype} into {out.dtype}")
    if not math.prod(shape):
        return
    order = sorted(range(len(shape)), key=lambda axis: -out_strides[axis])
    sides = ([side[axis] for axis in order] for side in (out_strides, x_strides))
    places = Places.of([shape[axis] for axis in order], *sides)
    to, source = _from(out, out_offset), _from(x, x_offset)
    turned = _turned_axis(places)
    if turned is None:
        grid = blocks_over(device, places.elements, BLOCK)
        arguments = (places.elements, *places.arguments)
        device.launch(_COPY[size], (grid,), (BLOCK,), to, source, *arguments)
    else:
        _turn(device, size, to, source, places, turned)


def _turned_axis(places: Places) -> int | None:
    """The axis along which the source runs, where the destination runs along another."""
    out_steps, x_steps = places.steps
    last = len(places.lengths) - 1
    if out_steps[last] != 1 or x_steps[last] <= 1 or places.lengths[last] < LEAST_TURN:
        return None
    for axis in range(last):
        if x_steps[axis] == 1 and places.lengths[axis] >= LEAST_TURN:
            return axis
    return None


def _turn(device: Device, size: int, out: Any, x: Any, places: Places, axis: int) -> None:
    """Copy where rows of the destination are columns of the source."""
    out_steps, x_steps = places.steps
    rows, columns = places.lengths[axis], places.lengths[-1]
    others = [other for other in range(len(places.lengths) - 1) if other != axis]
    around = Places.of(
        [places.lengths[o] for o in others],
        [out_steps[o] for o in others],
        [x_steps[o] for o in others],
    )
    tiles = around.elements * -(-rows // TILE) * -(-columns // TILE)
    grid = blocks_over(device, tiles, 1)
    steps = (rows, columns, out_steps[axis], x_steps[-1], around.elements)
    block = (TILE, TURN_ROWS)
    device.launch(_TURN[size], (grid,), block, out, x, *steps, *around.arguments)


def full(device: Device, out: Any, pattern: int) -> None:
    """Every element of out gets the bit pattern."""
    if out.size:
        signed = (pattern + (1 << 63)) % (1 << 64) - (1 << 63)
        grid = blocks_over(device, out.size, BLOCK)
        kernel = _FULL[out.dtype.itemsize]
        device.launch(kernel, (grid,), (BLOCK,), out, signed, out.size)


def iota(device: Device, out: Any, start: int, step: int) -> None:
    """out[i] = start + i * step, modulo the width.

    Raises:
        ValueError: out is not int64 or int32.
    """
    if out.dtype not in (np.int64, np.int32):
        raise ValueError("out must be int64 or int32")
    if out.size:
        grid = blocks_over(device, out.size, BLOCK)
        kernel = _IOTA[out.dtype.itemsize]
        device.launch(kernel, (grid,), (BLOCK,), out, start, step, out.size)


def _from(array: Any, offset: int) -> Any:
    """A flat array that begins at an element of a flat one; a view begins where it is."""
    return array[offset:] if offset else array
