"""As much of CuPy's interface as ``cupy_device.py`` uses, over the stand-in for a device.

It checks what it is given as CuPy does: structures are arrays of one element, integers have a
width, arrays lie on the device, and something is current when a kernel is launched.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any, Self

import numpy as np

from identic.kernels.cuda.device import Words
from tests.cuda.shim.device import OnDevice, ShimDevice


class CUDARuntimeError(RuntimeError):
    """The runtime's."""


class CUDADriverError(RuntimeError):
    """The driver's."""


class CompileException(Exception):
    """NVRTC's."""


class OutOfMemoryError(MemoryError):
    """The pool's."""


class Current(AbstractContextManager["Current"]):
    """A device or a stream."""

    depth = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.attributes = {"MultiProcessorCount": 3}
        self.compute_capability = "86"

    def __enter__(self) -> Self:
        Current.depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        Current.depth -= 1

    def synchronize(self) -> None:
        assert Current.depth


class Stream(Current):
    """A stream that the default one waits for."""

    def __init__(self, *, non_blocking: bool) -> None:
        assert not non_blocking
        super().__init__()


class Fake:
    """A machine with one device.

    Attributes:
        fails: raised by the next launch or allocation.
        loaded: options and texts of modules.
    """

    def __init__(self) -> None:
        self.shim = ShimDevice()
        self.fails: Exception | None = None
        self.loaded: list[tuple[tuple[str, ...], str]] = []

    def module(self) -> ModuleType:
        """What ``import cupy`` gives."""
        runtime = SimpleNamespace(
            getDeviceCount=lambda: 1,
            getDeviceProperties=lambda _: {"name": b"A card", "major": 8, "minor": 6},
            runtimeGetVersion=lambda: 12090,
            driverGetVersion=lambda: 13000,
            memGetInfo=lambda: (self.shim.free(), self.shim.capacity),
            CUDARuntimeError=CUDARuntimeError,
        )
        pool = SimpleNamespace(malloc=self.malloc, free_bytes=lambda: 0)
        cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            compiler=SimpleNamespace(CompileException=CompileException),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=Current,
            Stream=Stream,
            MemoryPool=lambda: pool,
        )
        made: Any = ModuleType("cupy")
        made.__version__ = "14.2.0"
        made.cuda, made.RawModule, made.ndarray = cuda, self.raw_module, FakeArray
        return made  # type: ignore[no-any-return]

    def malloc(self, size: int) -> Any:
        self.check()
        return self.shim.empty((size,), np.dtype("u1"))

    def check(self) -> None:
        assert Current.depth
        failure, self.fails = self.fails, None
        if failure is not None:
            raise failure

    def raw_module(self, *, code: str, options: tuple[str, ...]) -> Any:
        self.loaded.append((options, code))
        return SimpleNamespace(get_function=lambda entry: Function(self, code, entry))


class FakeArray(OnDevice):
    """CuPy's array: made over memory of a pool."""

    def __new__(cls, shape: tuple[int, ...], dtype: Any, memptr: Any) -> Self:
        return memptr.view(dtype).reshape(shape).view(cls)  # type: ignore[no-any-return]

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)

    @property
    def device(self) -> Any:
        return SimpleNamespace(id=0)

    def get(self, stream: Any = None, order: str = "C") -> Any:
        assert order == "C"
        assert stream is None or isinstance(stream, Stream)
        return np.array(self, copy=True, subok=False)

    def set(self, array: Any, stream: Any = None) -> None:
        assert type(array) is np.ndarray
        assert array.flags.c_contiguous
        assert isinstance(stream, Stream)
        self[...] = array


class Function:
    """An entry point of a module."""

    def __init__(self, fake: Fake, code: str, entry: str) -> None:
        self.fake, self.code, self.entry = fake, code, entry
        self.max_dynamic_shared_size_bytes = 48 << 10

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], shared_mem: int
    ) -> None:
        self.fake.check()
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        passed = map(_taken, args)
        self.fake.shim.run(self.code, self.entry, grid, block, *passed, shared=shared_mem)


def _taken(argument: Any) -> Any:
    if isinstance(argument, FakeArray):
        return np.asarray(argument)
    if isinstance(argument, np.ndarray):
        assert argument.shape == (1,)
        words = argument["v"][0]
        return Words(tuple(int(w) for w in words), len(words))
    if isinstance(argument, np.int64):
        return int(argument)
    assert isinstance(argument, np.uint32 | np.float32)
    return argument
