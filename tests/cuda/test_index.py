"""Look-ups and ordered sums on a device give the words of the CPU twin, in any order of threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from identic.kernels.index import cuda
from tests.cuda.operands import same_as_cpu
from tests.cuda.shim.device import ORDERS, ShimDevice

KINDS = [np.dtype(t) for t in ("u1", "<u2", "<f4", "<i8", "?")]
OUTSIDE = [-1, -(2**31), 2**31 - 1]


def indices(rng: np.random.Generator, shape: tuple[int, ...], size: int, *, wide: bool) -> Any:
    """Indices below ``size`` and some that are outside it."""
    index = rng.integers(-1, size + 1, shape)
    outside = rng.random(shape) < 0.1
    index[outside] = rng.choice([*OUTSIDE, size, *((2**62, -(2**63)) if wide else ())])
    return index.astype(np.int64 if wide else np.int32)


def floats(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Numbers of all sizes, and special ones."""
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)).astype(np.float32)
    special = np.array([0x80000000, 0x7FC12345, 0x7F800000, 0xFF800000, 1, 0xFFFFFFFF], np.uint32)
    chosen = rng.random(shape) < 0.05
    x[chosen] = rng.choice(special, shape)[chosen].view(np.float32)
    return x


def words(kind: np.dtype[Any], rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Elements of any bits."""
    if kind == np.bool_:
        return rng.random(shape) < 0.5
    return rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind)[..., 0]


same = partial(same_as_cpu, cuda)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_op_4__take_rows(order: int, *, wide: bool) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(1)
    shapes = [((7,), (9,)), ((5, 3), (40,)), ((3, 260), (2, 3)), ((6, 4), (0,)), ((0, 2), (3,))]
    for kind in KINDS:
        for shape, places in [*shapes, ((2, 0), (4,))]:
            table = words(kind, rng, shape)
            index = indices(rng, places, shape[0], wide=wide)
            width = table[:1].nbytes if shape[0] else kind.itemsize * shape[-1]
            out = np.empty((*places, *shape[1:]), kind)
            same(device, "take_rows", out, table, index, shape[0], width)


@pytest.mark.parametrize("order", ORDERS)
def test_rows_that_are_not_aligned_are_taken_byte_by_byte(order: int) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(2)
    room = device.upload(rng.integers(0, 256, 104, np.uint8))
    index = device.upload(np.array([2, 0, 5, -1]))
    for first in (0, 1, 2, 4, 8):
        table = room[first : first + 96]
        out = device.empty((4, 32), room.dtype)
        cuda.take_rows(device, out, table, index, 3, 32)
        rows = device.download(table).reshape(3, 32)
        assert (out[:2] == rows[[2, 0]]).all()
        assert not out[2:].any()


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_op_4__take_windows(order: int, *, wide: bool) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(3)
    for kind in KINDS:
        tokens = words(kind, rng, (50,))
        for count, length in [(1, 1), (9, 7), (3, 300), (4, 0), (0, 5)]:
            starts = indices(rng, (count,), 50, wide=wide)
            same(device, "take_windows", np.empty((count, length), kind), tokens, starts, length)


CASES = [
    ((5, 6), (5, 1), 1),
    ((5, 6), (3, 4), 1),
    ((40, 3), (70, 2), 0),
    ((2, 3, 4, 5), (2, 3, 9, 5), 2),
    ((2, 3, 4, 5), (1, 7, 3, 2), 1),
    ((4,), (0,), 0),
    ((0, 3), (2, 3), 0),
    ((3, 2), (3, 600), 1),
]
"""Shapes of x and of an index, and the axis."""


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_op_4__gather(order: int, *, wide: bool) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(4)
    for kind in KINDS:
        for shape, places, axis in CASES:
            x, index = words(kind, rng, shape), indices(rng, places, shape[axis], wide=wide)
            same(device, "gather", np.empty(places, kind), x, index, axis)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_num_14__add_rows(order: int, *, wide: bool) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(5)
    cases = [
        (6, 3, 20),
        (50, 40, 300),
        (3, 33, 800),
        (1, 1, 1),
        (4, 5, 0),
        (0, 2, 3),
        (70000, 1, 40),
    ]
    for rows, inner, count in cases:
        init, src = floats(rng, (rows, inner)), floats(rng, (count, inner))
        index = indices(rng, (count,), rows, wide=wide)
        same(device, "add_rows", np.empty_like(init), init, index, src, rows, inner)


@pytest.mark.parametrize("order", ORDERS)
def test_num_14__a_row_that_is_named_very_often(order: int) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(6)
    for count, other in [(2600, 1), (700, 5)]:
        index = np.where(rng.random(count) < 0.9, 3, rng.integers(0, other, count))
        init, src = floats(rng, (4, 35)), floats(rng, (count, 35))
        same(device, "add_rows", np.empty_like(init), init, index, src, 4, 35)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_num_14__scatter_add(order: int, *, wide: bool) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(7)
    for shape, places, axis in CASES:
        x, src = floats(rng, shape), floats(rng, places)
        index = indices(rng, places, shape[axis], wide=wide)
        same(device, "scatter_add", np.empty_like(x), x, index, src, axis)


def test_num_14__launch_shapes_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    init, src = floats(rng, (3, 33)), floats(rng, (900, 33))
    index = rng.integers(0, 3, 900)
    for block, processors in [(32, 1), (64, 40), (512, 3)]:
        monkeypatch.setattr(cuda, "BLOCK", block)
        device = ShimDevice(multiprocessors=processors)
        same(device, "add_rows", np.empty_like(init), init, index, src, 3, 33)
        same(device, "take_rows", np.empty((900, 33), np.float32), init, index, 3, 132)


def test_indices_are_integers() -> None:
    device = ShimDevice()
    x = device.upload(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="int64"):
        cuda.gather(device, x, x, x, 0)
