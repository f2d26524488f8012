"""What launches kernels: a CUDA device, or the tests' stand-in for one on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from identic.kernels.arrays import Array
from identic.protocol.errors import Unsound

WAVES = 16
"""Blocks a multiprocessor is given at most where a kernel strides over its elements."""


@dataclass(frozen=True)
class Kernel:
    """One entry point of a source file, with its macros."""

    file: str
    """Path below ``kernels/``, e.g. ``matmul/cuda.cu``."""
    entry: str
    """Name of the ``extern "C"`` function."""
    defines: tuple[tuple[str, str], ...] = ()
    """Macros and their values; kernels with other macros are other modules."""
    body: str = ""
    """Text after the file's, where a generator writes the entry point."""


@dataclass(frozen=True)
class Words:
    """Integers passed by value as ``Words<size>`` of ``common/cuda.h``, padded with zeros."""

    values: tuple[int, ...]
    size: int

    def __post_init__(self) -> None:
        if len(self.values) > self.size:
            raise ValueError(f"{len(self.values)} words in a structure of {self.size}")

    @property
    def padded(self) -> tuple[int, ...]:
        """All the words of the structure."""
        return self.values + (0,) * (self.size - len(self.values))


Argument = Any
"""A kernel's argument: an array of the device, an int (passed as ``long long``), ``Words``, or a
numpy scalar (passed as its own type)."""


class DeviceFault(Unsound):
    """A device has gone, or does not do what it must: nothing that it computes counts any more."""


class Device(Protocol):
    """A device that holds arrays and runs kernels, one after another in the order of launch."""

    @property
    def name(self) -> str:
        """``cuda:0``, or the word of a stand-in."""
        ...

    @property
    def multiprocessors(self) -> int:
        """How many blocks run side by side at least; tunes speed, never a bit."""
        ...

    @property
    def compute_capability(self) -> int:
        """Architecture as NVRTC counts: 75, 80, 90, ..."""
        ...

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        """Queue a kernel over ``grid`` blocks of ``block`` threads.

        Args:
            kernel: what to run; compiled on first use.
            grid: blocks along x, y, z; missing ones are 1.
            block: threads of a block along x, y, z.
            arguments: in the order of the kernel's parameters.
            shared: bytes of dynamic shared memory.

        Raises:
            LocalError: the device cannot compile it, or has no room.
            DeviceFault: it cannot run it, or a launch before has failed.
        """
        ...

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """A new row-major array whose elements are not set yet."""
        ...

    def holds(self, array: Any) -> bool:
        """Whether an array lies on this device."""
        ...

    def address(self, array: Any) -> int:
        """Where the first element of a device's array lies, for tables of arrays."""
        ...

    def upload(self, array: Array) -> Any:
        """A copy of a numpy array on the device."""
        ...

    def download(self, array: Any) -> Array:
        """A copy of a device's array as a numpy array, after all launches before.

        Raises:
            DeviceFault: one of them has failed.
        """
        ...

    def free(self) -> int:
        """Bytes that arrays may still take, those of arrays that are given back among them.

        Raises:
            DeviceFault: the device does not answer.
        """
        ...

    def synchronize(self) -> None:
        """Wait until everything launched has run.

        Raises:
            DeviceFault: something has not.
        """
        ...


def blocks_over(device: Device, elements: int, block: int) -> int:
    """Blocks of ``block`` threads for a kernel that strides over ``elements``; at least one."""
    return max(1, min(-(-elements // block), device.multiprocessors * WAVES))
