"""A device that runs nothing and counts memory: what a step needs, launchers' own arrays included.

Its arrays have addresses and no pages: everything about them is true but their content, which
nobody can read.
"""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from identic.kernels.arrays import Array
from identic.kernels.cuda.device import Argument, Kernel
from identic.protocol.errors import LocalError

GRAIN = 512
"""Bytes of which memory pools hand out multiples."""


class Unreadable(np.ndarray[Any, Any]):
    """An array of this device."""


class MeasuringDevice:
    """Counts the bytes of the arrays that live at once.

    Args:
        multiprocessors: of the device that it stands for; some launchers put aside more for more.
        compute_capability: of the same.
    """

    name = "a CUDA device"

    def __init__(self, multiprocessors: int = 132, compute_capability: int = 90) -> None:
        self.multiprocessors = multiprocessors
        self.compute_capability = compute_capability
        self.live = 0
        """Bytes of the arrays there are."""
        self.peak = 0
        """The most there were."""

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        """Nothing runs."""

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array without pages.

        Raises:
            LocalError: it is larger than any memory.
        """
        size = math.prod(shape) * dtype.itemsize
        taken = -(-size // GRAIN) * GRAIN
        if not taken:
            return np.empty(shape, dtype).view(Unreadable)
        try:
            room = mmap.mmap(-1, taken, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)
        except (OSError, OverflowError) as error:
            raise LocalError(
                f"a step needs {(self.live + taken) >> 30} GiB on {self.name} and more",
                remedy="take the job to a CPU worker, or a smaller one",
            ) from error
        self.live += taken
        self.peak = max(self.peak, self.live)
        weakref.finalize(room, self._given_back, taken)
        found = np.frombuffer(room, np.uint8)[:size].view(dtype).reshape(shape)
        return found.view(Unreadable)

    def holds(self, array: Any) -> bool:
        """Whether this kind of device made the array."""
        return isinstance(array, Unreadable)

    def address(self, array: Array) -> int:
        """Where an array begins."""
        return array.ctypes.data

    def upload(self, array: Array) -> Array:
        """Room for an array."""
        return self.empty(array.shape, array.dtype)

    def download(self, array: Array) -> Array:
        """Zeros."""
        return np.zeros(array.shape, array.dtype)

    def free(self) -> int:
        """More than any step needs."""
        return 1 << 62

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def _given_back(self, size: int) -> None:
        self.live -= size
