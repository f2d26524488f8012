"""What a step needs is measured on a device that runs nothing; launchers' own arrays count."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

from identic.kernels.cuda.measuring import MeasuringDevice
from identic.kernels.cuda_backend import ASIDE, need_bytes
from identic.kernels.index.cuda import add_rows
from identic.kernels.sort.cuda import argsort
from identic.protocol.dtypes import DType
from identic.protocol.errors import LocalError
from identic.protocol.ops import TABLE
from identic.protocol.tensors import TensorType
from tests.helpers.calls import BUILDERS, Maker
from tests.helpers.one_operator import job_of

MANY = 1 << 40


def test_memory_is_counted_while_an_array_or_a_view_of_it_lives() -> None:
    device = MeasuringDevice()
    held = device.empty((MANY,), np.dtype("<f4"))
    view = held[5 : 5 + (1 << 20)].reshape(1 << 10, -1).transpose()
    assert device.holds(view)
    assert device.address(view) == device.address(held) + 20
    del held
    gc.collect()
    assert device.live == 4 * MANY
    del view
    gc.collect()
    assert (device.live, device.peak) == (0, 4 * MANY)
    device.empty((3,), np.dtype("u1"))
    assert device.download(device.empty((0, 2), np.dtype("<i8"))).shape == (0, 2)
    device.synchronize()
    assert device.peak < device.free()


@pytest.mark.parametrize("elements", [1 << 44, 1 << 61])
def test_what_no_memory_has_room_for_is_refused(elements: int) -> None:
    device = MeasuringDevice()
    with pytest.raises(LocalError, match="GiB"):
        [device.empty((elements,), np.dtype("<i8")) for _ in range(20)]


def test_what_launchers_put_aside_is_in_the_peak() -> None:
    device, n = MeasuringDevice(), 1 << 20
    index, src = device.empty((n,), np.dtype("<i8")), device.empty((n, 4), np.dtype("<f4"))
    init, out = (device.empty((9, 4), np.dtype("<f4")) for _ in range(2))
    before = device.live
    add_rows(device, out, init, index, src, 9, 4)
    # Keys of 64 bits and positions of 32, twice.
    assert device.peak - before >= 2 * (8 + 4) * n
    gc.collect()
    assert device.live == before
    with pytest.raises(LocalError, match="too many"):
        argsort(
            device, index, device.empty((1 << 32,), np.dtype("<i8")), 1, 1 << 32, 1, descending=True
        )


def test_exe_24__what_a_step_needs_has_what_its_operators_put_aside() -> None:
    n = 1 << 20
    small = job_of(BUILDERS["add_rows"](Maker(1))).plan
    shapes = [(DType.FLOAT32, (7, 3)), (DType.INT64, (n,)), (DType.FLOAT32, (n, 3))]
    kinds = tuple(TensorType.of(*kind) for kind in shapes)
    operands = zip(small.loads[1:4], kinds, strict=True)
    loads = (*small.loads[:1], *(replace(load, type=k) for load, k in operands), *small.loads[4:])
    calls = (replace(small.calls[0], call=TABLE["add_rows"].call(kinds, ())), *small.calls[1:])
    needed = need_bytes(replace(small, loads=loads, calls=calls))
    assert needed > sum(k.nbytes for k in kinds) + 2 * (8 + 4) * n + ASIDE
