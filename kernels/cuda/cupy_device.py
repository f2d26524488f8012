"""A CUDA device through CuPy: its arrays, its memory pool, and modules compiled from text.

The only file that imports CuPy. One stream carries everything, in the order of the calls, so
that memory given back is used again only by what was launched later.

Texts are compiled here and not by ``cupy.RawModule``, which flushes subnormals to zero whatever
options it is given: it puts ``-ftz=true`` behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy
import numpy as np

from identic.kernels.arrays import Array
from identic.kernels.cuda import kept, source
from identic.kernels.cuda.device import Argument, DeviceFault, Kernel, Words
from identic.kernels.cuda.survey import Found, Survey
from identic.protocol.errors import LocalError

SHARED = 48 << 10
"""Bytes of dynamic shared memory that a kernel may take without being asked to."""


class CupyDevice:
    """One device of this machine.

    Args:
        index: its number, as CUDA counts.

    Raises:
        LocalError: there is no such device, or no driver.
    """

    def __init__(self, index: int = 0) -> None:
        self.name = f"cuda:{index}"
        count = _count()
        if index >= count:
            raise LocalError(
                f"there is no device {self.name}",
                remedy=f"this machine has {count}, from cuda:0 on",
            )
        self._index = index
        self._device = cupy.cuda.Device(index)
        self._functions: dict[Kernel, Any] = {}
        self._modules: dict[str, Any] = {}
        with self._faults(), self._device:
            # One that the default stream waits for: copies to the host may be made there.
            self._stream = cupy.cuda.Stream(non_blocking=False)
            self._pool = cupy.cuda.MemoryPool()
            self.multiprocessors = int(self._device.attributes["MultiProcessorCount"])
            self.compute_capability = int(self._device.compute_capability)

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        """Queue a kernel.

        Raises:
            LocalError: the device cannot compile it.
            DeviceFault: it cannot run it, or a launch before has failed.
        """
        with self._current():
            function = self._function(kernel)
            if shared > SHARED:
                driver = cupy.cuda.driver
                most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                driver.funcSetAttribute(function.ptr, most, shared)
            passed = tuple(_passed(a) for a in arguments)
            function(tuple(grid), tuple(block), passed, shared_mem=shared)

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """A new array, from memory given back where there is some.

        Raises:
            LocalError: there is no room.
        """
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        with self._current():
            return cupy.ndarray(tuple(shape), dtype, memptr=self._pool.malloc(size))

    def holds(self, array: Any) -> bool:
        """Whether an array lies on this device."""
        return isinstance(array, cupy.ndarray) and int(array.device.id) == self._index

    def address(self, array: Any) -> int:
        """Address of the first element."""
        return int(array.data.ptr)

    def upload(self, array: Array) -> Any:
        """A copy of a numpy array on the device."""
        copy = self.empty(array.shape, array.dtype)
        with self._current():
            # Of the same shape, which numpy's ascontiguousarray is not where there are no axes.
            copy.set(np.asarray(array, order="C"), stream=self._stream)
        return copy

    def download(self, array: Any) -> Array:
        """A numpy copy, after all launches before."""
        with self._current():
            copy: Array = array.get(stream=self._stream, order="C")
        return copy

    def free(self) -> int:
        """What the driver has left, and what the pool keeps for later."""
        with self._current():
            left, _ = cupy.cuda.runtime.memGetInfo()
            return int(left) + int(self._pool.free_bytes())

    def synchronize(self) -> None:
        """Wait until everything launched has run."""
        with self._current():
            self._stream.synchronize()

    def _function(self, kernel: Kernel) -> Any:
        """The compiled entry point."""
        found = self._functions.get(kernel)
        if found is None:
            text = source.text(kernel)
            module = self._modules.get(text)
            if module is None:
                module = cupy.cuda.function.Module()
                module.load(self._machine_code(text))
                self._modules[text] = module
            found = self._functions[kernel] = module.get_function(kernel.entry)
        return found

    def _machine_code(self, text: str) -> bytes:
        """What the driver loads, from the disk if it was compiled before.

        Raises:
            LocalError: NVRTC is missing, or refuses the text.
        """
        try:
            nvrtc = cupy.cuda.nvrtc
            # NUM-1: the options are these and no others.
            options = (*source.OPTIONS, f"--gpu-architecture={self._target()}")
            name = kept.name(text, *options, *map(str, nvrtc.getVersion()))
            code = kept.read(name)
            if code is None:
                code = _compiled(text, options)
                kept.write(name, code)
        except RuntimeError as error:
            # What CuPy raises where the library is missing has no type of its own.
            raise LocalError(
                f"{self.name} cannot compile a kernel ({error})",
                remedy="install the NVRTC that fits the driver; see docs/gpu.md",
            ) from error
        return code

    def _target(self) -> str:
        """The device's architecture, or the latest before it that NVRTC knows, as PTX."""
        own = self.compute_capability
        known = cupy.cuda.nvrtc.getSupportedArchs()
        if own in known:
            return f"sm_{own}"
        return f"compute_{max((n for n in known if n < own), default=own)}"

    @contextmanager
    def _current(self) -> Iterator[None]:
        """The device and its stream in use, with failures by their own names."""
        with self._faults(), self._device, self._stream:
            yield

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise LocalError(
                f"{self.name} has no room left ({error})",
                remedy="free the device, take another with device = cuda:N, or set device to cpu",
            ) from error
        except (
            cupy.cuda.runtime.CUDARuntimeError,
            cupy.cuda.driver.CUDADriverError,
        ) as error:
            raise DeviceFault(
                f"{self.name} has failed ({error})", remedy="look at the card, and at `nvidia-smi`"
            ) from error


def survey() -> Survey:
    """What there is, without a look at whether it computes.

    Raises:
        LocalError: there is no driver.
        DeviceFault: a device does not answer.
    """
    devices = tuple(_found(index) for index in range(_count()))
    runtime, driver = (
        f"{number // 1000}.{number % 1000 // 10}"
        for number in (
            cupy.cuda.runtime.runtimeGetVersion(),
            cupy.cuda.runtime.driverGetVersion(),
        )
    )
    return Survey(str(cupy.__version__), runtime, driver, devices)


def _count() -> int:
    """How many devices the driver lists."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise LocalError(
            f"no CUDA driver answers ({error})",
            remedy="install NVIDIA's driver, or use the CPU",
        ) from error


def _found(index: int) -> Found:
    try:
        properties = cupy.cuda.runtime.getDeviceProperties(index)
        with cupy.cuda.Device(index):
            free, total = cupy.cuda.runtime.memGetInfo()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceFault(
            f"cuda:{index} does not answer ({error})",
            remedy="look at the card, and at `nvidia-smi`",
        ) from error
    capability = 10 * int(properties["major"]) + int(properties["minor"])
    model = bytes(properties["name"]).decode(errors="replace")
    return Found(f"cuda:{index}", model, capability, int(total), int(free))


def _compiled(text: str, options: tuple[str, ...]) -> bytes:
    """Machine code, or PTX for an architecture that stands for later ones.

    Raises:
        RuntimeError: the compiler's words.
    """
    nvrtc = cupy.cuda.nvrtc
    program = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        if options[-1].startswith("--gpu-architecture=compute_"):
            return bytes(nvrtc.getPTX(program)) + b"\0"
        # CuPy gives the code without its last byte, as if that ended a text.
        return bytes(nvrtc.getCUBIN(program)) + b"\0"
    except nvrtc.NVRTCError as error:
        raise RuntimeError(nvrtc.getProgramLog(program) or str(error)) from error
    finally:
        nvrtc.destroyProgram(program)


def _passed(argument: Argument) -> Any:
    """An argument as CuPy passes it: integers of 64 bits, structures by value."""
    if isinstance(argument, Words):
        words = np.zeros(1, _structure(argument.size))
        words["v"][0] = argument.padded
        return words
    return np.int64(argument) if isinstance(argument, int) else argument


@cache
def _structure(size: int) -> np.dtype[Any]:
    """``Words<size>`` of ``common/cuda.h``."""
    return np.dtype([("v", "<i8", (size,))])
