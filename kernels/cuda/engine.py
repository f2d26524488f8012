"""A CUDA device as an engine of operators and prepared steps (``kernels/engine.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from identic.kernels import operators
from identic.kernels.arrays import words
from identic.kernels.conv import cuda as conv
from identic.kernels.cuda.chain import Chain, sums_rows
from identic.kernels.cuda.device import Device
from identic.kernels.cuda.joined_chain import JoinedChain
from identic.kernels.elementwise import cuda as elementwise
from identic.kernels.engine import Calls
from identic.kernels.index import cuda as index
from identic.kernels.layout import cuda as layout
from identic.kernels.matmul import cuda as matmul
from identic.kernels.pool import cuda as pool
from identic.kernels.random import cuda as random
from identic.kernels.reduce import cuda as reduce
from identic.kernels.scan import cuda as scan
from identic.kernels.scatter import cuda as scatter
from identic.kernels.sort import cuda as sort

LAUNCHERS: dict[str, Callable[..., None]] = {
    "unary": elementwise.unary,
    "binary": elementwise.binary,
    "where": elementwise.where,
    "cast": elementwise.cast,
    "matmul": matmul.matmul,
    "conv": conv.conv,
    "conv_dx": conv.conv_dx,
    "conv_dw": conv.conv_dw,
    "max_pool": pool.max_pool,
    "max_pool_indices": pool.max_pool_indices,
    "max_pool_dx": pool.max_pool_dx,
    "sum_pool": pool.sum_pool,
    "sum_pool_dx": pool.sum_pool_dx,
    "sum_last": reduce.sum_last,
    "sum_first": reduce.sum_first,
    "amax": reduce.amax,
    "argmax": reduce.argmax,
    "cumsum": scan.cumsum,
    "argsort": sort.argsort,
    "set_rows": scatter.set_rows,
    "scatter": scatter.scatter,
    "scatter_add": index.scatter_add,
    "copy_strided": layout.copy_strided,
    "full": layout.full,
    "iota": layout.iota,
    "take_rows": index.take_rows,
    "take_windows": index.take_windows,
    "gather": index.gather,
    "add_rows": index.add_rows,
    "philox_uniform": random.philox_uniform,
    "philox_index": random.philox_index,
    "shuffled_index": random.shuffled_index,
}
"""Functions of an engine by their launchers, which take the device first."""


class CudaEngine:
    """Launches on one device, over arrays of the device.

    Args:
        device: what holds the arrays and runs the kernels.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        functions = {name: partial(launch, device) for name, launch in LAUNCHERS.items()}
        self.calls = cast(
            Calls,
            SimpleNamespace(
                **functions,
                Chain=partial(Chain, device),
                ChainOver=partial(Chain, device),
                sums_rows=partial(sums_rows, device),
                JoinedChain=partial(JoinedChain, device),
            ),
        )

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """A new row-major array of the device."""
        return self.device.empty(shape, dtype)

    def flat(self, array: Any) -> Any:
        """The elements in row-major order along one axis, on the device."""
        return operators.row_major(self, self.held(array)).reshape(-1)

    def held(self, array: Any) -> Any:
        """The array itself if it is the device's, else a copy on the device."""
        return array if self.device.holds(array) else self.device.upload(array)

    def holds(self, array: Any) -> bool:
        """Whether an array lies on the device."""
        return self.device.holds(array)

    def span(self, array: Any) -> range:
        """Addresses of the bytes of a row-major array of the device."""
        first = self.device.address(array) if array.size else 0
        return range(first, first + array.size * array.itemsize)

    def arena(self, size: int) -> Any:
        """Bytes of the device, which begin at a multiple of 256."""
        return self.device.empty((size,), np.dtype("u1"))

    def words(self, array: Any) -> list[int]:
        """Bit patterns of the elements; of the device's, after everything launched before."""
        return words(self.device.download(array) if self.device.holds(array) else array)
