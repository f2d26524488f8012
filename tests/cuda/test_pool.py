"""Pools on a device have the bits of the CPU twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.pool import cuda
from tests.cuda.axes import Six, axes, axis
from tests.cuda.operands import floats, same_bits
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.helpers.effort import examples


def check(device: ShimDevice, name: str, planes: int, down: Six, across: Six, seed: int) -> None:
    """One pool against the CPU twin."""
    rng = np.random.default_rng(seed)
    backward = name.endswith("dx")
    places, windows = (planes, down[0], across[0]), (planes, down[5], across[5])
    inputs: list[Array] = [floats(rng, windows if backward else places, endless=seed % 3)]
    if name == "max_pool_dx":
        inputs.append(rng.integers(-1, down[0] * across[0] + 1, windows))
    made = np.int64 if name == "max_pool_indices" else np.float32
    want = np.empty(places if backward else windows, made)
    getattr(_native, name)(want, *inputs, planes, down, across)
    out = device.empty(want.shape, want.dtype)
    launcher: Any = getattr(cuda, name)
    launcher(device, out, *map(device.upload, inputs), planes, down, across)
    assert same_bits(device.download(out), want)


NAMES = ("max_pool", "max_pool_indices", "max_pool_dx", "sum_pool", "sum_pool_dx")


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_op_43__pools_of_any_shape(
    name: str, *, far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "_FAR", 0 if far else 1 << 30)

    @settings(max_examples=examples(40), deadline=None)
    @given(
        planes=st.integers(0, 3),
        down=axes(),
        across=axes(),
        order=st.sampled_from(ORDERS),
        seed=st.integers(0, 1000),
    )
    def run(planes: int, down: Six, across: Six, order: int, seed: int) -> None:
        plain = name.startswith("sum")
        narrow = [axis(a[0], 1, a[2], 1, a[4]) if plain else a for a in (down, across)]
        check(ShimDevice(order), name, planes, narrow[0], narrow[1], seed)
        if plain:
            check(ShimDevice(order), name, planes, axis(9, 3, 2, 1, 2), narrow[1], seed)

    run()


def test_op_42__equal_maxima_and_windows_of_padding_alone() -> None:
    device = ShimDevice()
    x = device.upload(np.array([[0.0, -0.0, np.nan, -np.nan, -np.inf]], np.float32))
    line, alone = axis(5, 2), axis(1, 1)
    out = device.empty((4,), np.dtype(np.int64))
    cuda.max_pool_indices(device, out, x, 1, alone, line)
    assert device.download(out).tolist() == [0, 2, 2, 3]
    out = device.empty((6,), np.dtype(np.int64))
    beside = (5, 1, 2, 1, 3, 6)
    cuda.max_pool_indices(device, out, x, 1, alone, beside)
    assert device.download(out).tolist() == [-1, -1, 1, 3, -1, -1]


@pytest.mark.parametrize("block", [32, 128, 1024])
def test_launch_shapes_change_no_bit(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "BLOCK", block)
    for name in NAMES:
        device = ShimDevice(multiprocessors=block // 32)
        check(device, name, 5, axis(13, 3, 2, 1, 1), axis(17, 2, 1, 1, 1), seed=block)


@pytest.mark.parametrize("name", NAMES)
def test_op_40__paddings_beyond_32_bits(name: str) -> None:
    far = axis(3, 2, 1 << 33, 1 << 34 if name.startswith("max") else 1, 1 << 34)
    check(ShimDevice(), name, 2, far, axis(4, 2), seed=1)
