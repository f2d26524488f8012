"""The operators on the CPU through the native module ``identic.kernels._native``.

The vector path (AVX-512, AVX2, NEON, scalar) and the number of threads are the native
module's own; the bits depend on neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import Array, row_major, words
from identic.kernels.backend import Run
from identic.kernels.compiled import compile_step
from identic.kernels.draft import ALIGNMENT
from identic.kernels.engine import Calls
from identic.kernels.operators import KERNELS
from identic.kernels.reserve import Reserve
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import StepPlan


class NativeEngine:
    """The native module over numpy arrays."""

    calls: Calls = _native

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """A new row-major array."""
        return np.empty(shape, dtype)

    def flat(self, array: Array) -> Array:
        """The elements in row-major order, along one axis."""
        return row_major(array).reshape(-1)

    def arena(self, size: int) -> Array:
        """Bytes that begin at a multiple of ``ALIGNMENT``."""
        room = np.empty(size + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        return room[start : start + size]

    def words(self, array: Array) -> list[int]:
        """Bit patterns of the elements."""
        return words(array)


class StepEngine(NativeEngine):
    """The native module for one prepared step, whose new tensors take the memory of old ones."""

    def __init__(self) -> None:
        self._reserve = Reserve()

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """A new row-major array."""
        return self._reserve.empty(shape, dtype)


class CpuBackend:
    """Runs operators with the native module.

    Args:
        threads: how many threads the native module uses, for the whole process; its present
            number is kept where this is ``None``.
    """

    name = "cpu"

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None:
            _native.set_threads(threads)

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of one operator, a new row-major array."""
        result: Array = KERNELS[call.op.name](ENGINE, call, inputs)
        return result

    def compile(self, plan: StepPlan, loads: Sequence[Array] = (), *, given: bool = True) -> Run:
        """The whole step prepared; one step of it runs at a time, and writes no array it reads."""
        del loads, given
        return compile_step(plan, StepEngine())


ENGINE = NativeEngine()
"""The engine of single operators; it has no state of its own."""
