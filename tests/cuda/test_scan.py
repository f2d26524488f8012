"""Running sums on a device have the bits of the CPU twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.scan import cuda
from tests.cuda.operands import same_bits
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.cuda.test_reduce import KINDS, Dtype, elements
from tests.helpers.effort import examples


def check(device: ShimDevice, dtype: Dtype, rows: int, n: int, seed: int) -> None:
    """Running sums of rows against the CPU twin."""
    x = elements(dtype, (rows, n), seed)
    want = np.empty_like(x)
    _native.cumsum(want, x, rows, n)
    out = device.empty(want.shape, dtype)
    cuda.cumsum(device, out, device.upload(x), rows, n)
    assert same_bits(device.download(out), want)


@pytest.mark.parametrize("dtype", KINDS)
def test_op_30__rows_of_any_length(dtype: Dtype) -> None:
    @settings(max_examples=examples(30), deadline=None)
    @given(
        rows=st.integers(0, 40),
        n=st.one_of(st.integers(0, 70), st.sampled_from([255, 256, 257, 513, 800])),
        order=st.sampled_from(ORDERS),
        seed=st.integers(0, 1000),
    )
    def run(rows: int, n: int, order: int, seed: int) -> None:
        check(ShimDevice(order), dtype, rows, n, seed)

    run()


@pytest.mark.parametrize("dtype", KINDS)
def test_op_30__a_row_of_many_blocks(dtype: Dtype) -> None:
    check(ShimDevice(2), dtype, 1, 256 * 70 + 3, seed=5)


@pytest.mark.parametrize(("warps", "processors"), [(1, 1), (2, 30), (8, 2)])
def test_launch_shapes_change_no_bit(
    warps: int, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = {
        key: replace(kernel, defines=(*kernel.defines, ("IDN_WARPS", str(warps))))
        for key, kernel in cuda._KERNELS.items()
        if key[1] == KINDS[0]
    }
    monkeypatch.setattr(cuda, "_KERNELS", kernels)
    monkeypatch.setattr(cuda, "THREADS", 32 * warps)
    for rows, n in [(70, 20), (2, 3000)]:
        check(ShimDevice(multiprocessors=processors), KINDS[0], rows, n, seed=warps)


def test_op_30__a_first_zero_keeps_no_sign() -> None:
    device = ShimDevice()
    x: Any = device.upload(np.full((1, 300), -0.0, np.float32))
    out = device.empty((1, 300), x.dtype)
    cuda.cumsum(device, out, x, 1, 300)
    assert not device.download(out).view(np.uint32).any()


def test_a_missing_barrier_of_a_warp_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    x = elements(KINDS[0], (1, 9000), 3)
    want = np.empty_like(x)
    _native.cumsum(want, x, 1, 9000)
    broken = {
        key: replace(kernel, defines=(("__syncwarp()", ""),))
        for key, kernel in cuda._KERNELS.items()
        if key[1] == KINDS[0]
    }
    monkeypatch.setattr(cuda, "_KERNELS", broken)
    found = []
    for order in ORDERS:
        device = ShimDevice(order)
        out = device.empty(want.shape, want.dtype)
        cuda.cumsum(device, out, device.upload(x), 1, 9000)
        found.append(same_bits(device.download(out), want))
    assert not all(found)
