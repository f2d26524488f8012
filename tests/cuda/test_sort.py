"""Sorting on a device gives the positions of the CPU twin, whatever the order of its threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.sort import cuda
from identic.protocol.errors import LocalError
from tests.cuda.shim.device import ORDERS, ShimDevice

SPECIAL = np.array(
    [0x00000000, 0x80000000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x7F800000, 0xFF800000, 1,
     0x80000001, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF],
    dtype=np.uint32,
).view(np.float32)  # fmt: skip


def elements(seed: int, count: int, kind: type[Any]) -> Any:
    """Random elements, many of them equal, special ones among them."""
    rng = np.random.default_rng(seed)
    if kind is np.float32:
        x = rng.integers(-9, 9, count).astype(np.float32) / 4
        special = rng.random(count) < 0.3
        x[special] = rng.choice(SPECIAL, int(special.sum()))
        return x
    x = rng.integers(-5, 5, count, dtype=kind)
    ends = rng.random(count) < 0.2
    x[ends] = rng.choice([np.iinfo(kind).min, np.iinfo(kind).max, 0, -1], int(ends.sum()))
    return x


def both(device: ShimDevice, x: Any, rows: int, n: int, count: int, *, descending: bool) -> None:
    """Sort here and there and compare."""
    want = np.empty(rows * count, np.int64)
    _native.argsort(want, x, rows, n, count, descending)
    out = device.empty((rows * count,), want.dtype)
    cuda.argsort(device, out, device.upload(x), rows, n, count, descending)
    assert (device.download(out) == want).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64])
def test_op_31__rows_are_sorted_inside_a_block(kind: type[Any], order: int) -> None:
    device = ShimDevice(order)
    for rows, n in [(1, 1), (70, 5), (3, 300), (2, 513), (5, 0), (0, 4)]:
        x = elements(n, rows * n, kind)
        for count in {n, n // 3, min(n, 1)}:
            both(device, x, rows, n, count, descending=bool(count % 2))
            both(device, x, rows, n, count, descending=not count % 2)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64])
def test_op_31__long_rows_are_sorted_by_digits(
    kind: type[Any], order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = ShimDevice(order)
    monkeypatch.setattr(cuda, "SHORT_ROW", 16)
    monkeypatch.setattr(cuda, "ROOM", 600)
    for rows, n, count in [(7, 150, 150), (2, 2049, 31)]:
        x = elements(n, rows * n, kind)
        both(device, x, rows, n, count, descending=False)
        both(device, x, rows, n, count, descending=True)


def test_a_row_too_long_for_a_position_is_refused() -> None:
    keys = np.zeros(0, np.uint32)
    with pytest.raises(LocalError, match="too many"):
        cuda.sort_pairs(ShimDevice(), keys, 1, 1 << 32, 32)


def test_what_cannot_be_sorted_is_refused() -> None:
    device = ShimDevice()
    out = device.empty((4,), np.dtype("<i8"))
    with pytest.raises(ValueError, match="float32"):
        cuda.argsort(device, out, np.zeros(4, np.uint8), 1, 4, 4, descending=False)
    with pytest.raises(ValueError, match="count"):
        cuda.argsort(device, out, np.zeros(4, np.int64), 1, 4, 5, descending=False)
