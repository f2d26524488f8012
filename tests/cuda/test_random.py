"""Random numbers on a device are those of the CPU twin, whatever the order of its threads."""

from __future__ import annotations

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.random import cuda
from tests.cuda.shim.device import ORDERS, ShimDevice

KEYS = (0x9E3779B9, 0xFFFFFFFE)
SIZES = (0, 1, 3, 4, 5, 700, 5000)


@pytest.mark.parametrize("order", ORDERS)
def test_num_17__uniforms(order: int) -> None:
    device = ShimDevice(order)
    for n in SIZES:
        want = np.empty(n, np.float32)
        _native.philox_uniform(want, *KEYS, 2**32 - 1, 7)
        out = device.empty((n,), want.dtype)
        cuda.philox_uniform(device, out, *KEYS, 2**32 - 1, 7)
        assert (device.download(out) == want).all()


def test_num_17__uniforms_of_an_array_that_begins_anywhere() -> None:
    device = ShimDevice()
    want = np.empty(90, np.float32)
    _native.philox_uniform(want, *KEYS, 1, 2)
    for first in range(4):
        out = device.empty((100,), want.dtype)[first : first + 90]
        cuda.philox_uniform(device, out, *KEYS, 1, 2)
        assert (device.download(out) == want).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bound", [1, 2, 50257, 2**32 + 1, 2**63 - 1])
def test_num_17__indices(bound: int, order: int) -> None:
    device = ShimDevice(order)
    for n in SIZES[:-1]:
        want = np.empty(n, np.int64)
        _native.philox_index(want, *KEYS, bound, 3, 2**32 - 1)
        out = device.empty((n,), want.dtype)
        cuda.philox_index(device, out, *KEYS, bound, 3, 2**32 - 1)
        assert (device.download(out) == want).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bound", [1, 2, 4, 5, 17, 1000, 2**40 + 3, 2**63 - 1])
def test_num_18__positions(bound: int, order: int) -> None:
    device = ShimDevice(order)
    for n, step, shards, shard in [
        (1, 0, 1, 0),
        (40, 3, 2, 1),
        (16, 2**59, 2**31, 5),
        (1, 2**61, 4, 3),
    ]:
        want = np.empty(n, np.int64)
        _native.shuffled_index(want, *KEYS, bound, step, shards, shard)
        out = device.empty((n,), want.dtype)
        cuda.shuffled_index(device, out, *KEYS, bound, step, shards, shard)
        assert (device.download(out) == want).all()


@pytest.mark.parametrize("bound", [0, -1, 2**63])
def test_a_bound_out_of_range_is_refused(bound: int) -> None:
    device = ShimDevice()
    out = device.empty((1,), np.dtype("<i8"))
    with pytest.raises(ValueError, match="bound"):
        cuda.philox_index(device, out, *KEYS, bound, 0, 0)
    with pytest.raises(ValueError, match="bound"):
        cuda.shuffled_index(device, out, *KEYS, bound, 0, 1, 0)
