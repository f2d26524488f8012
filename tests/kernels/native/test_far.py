"""Elements beyond 2^31 and bytes beyond 2^32 are addressed right.

The tensors are larger than they look: their memory is zero pages that nobody touches, so only
the few elements that a kernel reads or writes exist.
"""

from __future__ import annotations

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array, part
from identic.kernels.cpu_backend import CpuBackend
from identic.protocol.dtypes import DType
from identic.protocol.ops import TABLE
from identic.protocol.program.types import Attribute
from identic.protocol.tensors import TensorType

FAR = (1 << 31) + 5
"""Elements of a far tensor: their positions take more than 31 bits, their bytes more than 32."""


@pytest.fixture(scope="module")
def far() -> Array:
    """A far vector of float32 whose first, middle and last numbers are 1, 2 and 3."""
    x = np.zeros(FAR, "<f4")
    x[0], x[FAR // 2], x[-1] = 1, 2, 3
    return x


@pytest.fixture(params=_native.paths())
def path(request: pytest.FixtureRequest) -> str:
    """Every vector path in turn."""
    name: str = request.param
    return name


def run(path: str, op: str, *inputs: Array, **attributes: int | tuple[int, ...]) -> list[float]:
    """Elements of a small result."""
    kinds = {"float32": DType.FLOAT32, "int64": DType.INT64, "bool": DType.BOOL}
    types = tuple(TensorType.of(kinds[x.dtype.name], x.shape) for x in inputs)
    given = tuple(
        Attribute(name, (value,) if isinstance(value, int) else value)
        for name, value in sorted(attributes.items())
    )
    try:
        _native.set_path(path)
        found = CpuBackend().run(TABLE[op].call(types, given), inputs)
    finally:
        _native.set_path("auto")
    return [float(v) for v in found.reshape(-1)]


STEP = FAR // 2


def test_slices_and_look_ups_reach_the_end(far: Array, path: str) -> None:
    assert run(path, "slice", far, start=(0,), step=(STEP,), stop=(FAR,)) == [1, 2, 3]
    ends = np.array([FAR - 1, 0, FAR, STEP])
    assert run(path, "take_rows", far, ends) == [3, 1, 0, 2]
    assert run(path, "gather", far, ends, axis=0) == [3, 1, 0, 2]
    assert run(path, "take_windows", far, np.array([FAR - 2, -1]), length=3) == [0, 3, 0, 0, 0, 0]
    rows = part(far, slice(0, FAR - 1)).reshape(2, STEP)
    wide = np.array([[0], [1], [2]])
    assert run(path, "gather", rows, wide, axis=0) == [1, 2, 0]


def test_operands_far_apart_meet(far: Array, path: str) -> None:
    three = part(far, slice(None, None, STEP))
    assert three.tolist() == [1, 2, 3]
    assert run(path, "add", three, three) == [2, 4, 6]
    assert run(path, "lt", three, np.full(3, 2, np.float32)) == [1, 0, 0]
    assert run(path, "where", np.array([True, False, True]), three, three) == [1, 2, 3]
    assert run(path, "matmul", three[None], three[:, None]) == [14]
    assert run(path, "matmul", three[:, None], three[None]) == [1, 2, 3, 2, 4, 6, 3, 6, 9]


def test_results_are_written_far_out() -> None:
    out = np.zeros(FAR, "<f4")
    x = np.arange(1, 4, dtype=np.float32)
    _native.copy_strided(out, 0, [STEP], x, 0, [1], [3])
    assert part(out, slice(None, None, STEP)).tolist() == [1, 2, 3]
