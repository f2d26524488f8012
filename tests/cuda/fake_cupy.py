"""As much of CuPy's interface as ``cupy_device.py`` uses, over the stand-in for a device.

It checks what it is given as CuPy does: structures are arrays of one element, integers have a
width, arrays lie on the device, and something is current when a kernel is launched. Of
``RawModule``, which adds an option of its own, there is nothing.
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


class NVRTCError(RuntimeError):
    """The compiler's."""


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
        compiled: options and texts that the compiler was given.
        refuses: what the compiler says of the next text.
        architectures: those it knows.
    """

    def __init__(self) -> None:
        self.shim = ShimDevice()
        self.fails: Exception | None = None
        self.compiled: list[tuple[tuple[str, ...], str]] = []
        self.refuses = ""
        self.architectures = [75, 80, 86, 90]

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
            driver=SimpleNamespace(
                CUDADriverError=CUDADriverError,
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
                funcSetAttribute=_set_attribute,
            ),
            nvrtc=self.nvrtc(),
            function=SimpleNamespace(Module=lambda: Module(self)),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=Current,
            Stream=Stream,
            MemoryPool=lambda: pool,
        )
        made: Any = ModuleType("cupy")
        made.__version__ = "14.2.0"
        made.cuda, made.ndarray = cuda, FakeArray
        return made  # type: ignore[no-any-return]

    def malloc(self, size: int) -> Any:
        self.check()
        return self.shim.empty((size,), np.dtype("u1"))

    def check(self) -> None:
        assert Current.depth
        failure, self.fails = self.fails, None
        if failure is not None:
            raise failure

    def nvrtc(self) -> Any:
        """The compiler's binding; a program is its text, and so is its code."""

        def create(text: str, name: str, headers: tuple[str, ...], names: tuple[str, ...]) -> str:
            assert name
            assert (headers, names) == ((), ())
            return text

        def compile_program(text: str, options: tuple[str, ...]) -> None:
            self.compiled.append((options, text))
            if self.refuses:
                raise NVRTCError("NVRTC_ERROR_COMPILATION (6)")

        return SimpleNamespace(
            NVRTCError=NVRTCError,
            getVersion=lambda: (12, 9),
            getSupportedArchs=lambda: tuple(self.architectures),
            createProgram=create,
            compileProgram=compile_program,
            getProgramLog=lambda _: self.refuses,
            getCUBIN=lambda text: text.encode(),
            getPTX=lambda text: text.encode(),
            destroyProgram=lambda _: None,
        )


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
        assert (array.shape, array.dtype) == (self.shape, self.dtype)
        assert isinstance(stream, Stream)
        self[...] = array


class Module:
    """Code that was loaded."""

    def __init__(self, fake: Fake) -> None:
        self.fake, self.code = fake, ""

    def load(self, code: bytes) -> None:
        assert type(code) is bytes
        assert code.endswith(b"\0")
        self.fake.check()
        self.code = code.rstrip(b"\0").decode()

    def get_function(self, entry: str) -> Function:
        assert self.code
        return Function(self.fake, self.code, entry)


class Function:
    """An entry point of a module."""

    def __init__(self, fake: Fake, code: str, entry: str) -> None:
        self.fake, self.code, self.entry = fake, code, entry
        self.most_shared = 48 << 10
        self.ptr = self  # where the driver has an address

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], shared_mem: int
    ) -> None:
        self.fake.check()
        assert shared_mem <= self.most_shared
        passed = map(_taken, args)
        self.fake.shim.run(self.code, self.entry, grid, block, *passed, shared=shared_mem)


def _set_attribute(function: Function, attribute: int, value: int) -> None:
    assert attribute == 8
    function.most_shared = value


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
