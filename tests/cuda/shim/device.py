"""A device that runs kernels on the CPU: numpy arrays, and ``shim.h`` compiled around each text."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import subprocess
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from identic.kernels.arrays import Array
from identic.kernels.cuda import source
from identic.kernels.cuda.device import Argument, Kernel, Words
from identic.protocol.errors import LocalError

HERE = Path(__file__).parent
BUILT = HERE.parents[2] / "build" / "shim"
"""Compiled modules, by the digest of what they were made from."""

FLAGS = (
    *("-x", "c++", "-std=c++17", "-O1", "-ffp-contract=off", "-fno-fast-math", "-fPIC", "-shared"),
    *("-w", *(("-mfma",) if platform.machine() == "x86_64" else ())),
)

ORDERS = (0, 1, 2)
"""Threads and blocks ascending, descending, and mixed."""

GUARD = 64
"""Bytes before and behind every array that no kernel may change."""

_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?([\w ]+?)\s+(\w+)\s*\[\s*\]\s*;"
)
_FAULTS = {
    1: "threads wait for others that never come",
    2: "the kernel has another number of parameters",
    3: "the kernel has parameters of other types",
    4: "no room for stacks",
}
_ARRAY, _SIGNED64, _UNSIGNED32, _FLOAT32, _WORDS = range(5)


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_longlong * 3),
        ("block", ctypes.c_longlong * 3),
        ("dynamic", ctypes.c_longlong),
        ("order", ctypes.c_int),
        ("count", ctypes.c_int),
        ("kinds", ctypes.POINTER(ctypes.c_int)),
        ("bytes", ctypes.POINTER(ctypes.c_int)),
        ("values", ctypes.POINTER(ctypes.c_void_p)),
    )


class OnDevice(np.ndarray[Any, Any]):
    """An array that a device made; where tests tell those from numpy's own."""

    def get(self) -> Array:
        """A copy of numpy's, as arrays of CuPy give it."""
        return np.array(self, order="C", copy=True, subok=False)


class ShimError(AssertionError):
    """A kernel did what no kernel may do."""


class ShimDevice:
    """Runs kernels thread by thread.

    Args:
        order: one of ``ORDERS``.
        multiprocessors: what the device claims to have.
        compute_capability: the architecture it claims to be.
        capacity: bytes of memory it claims to have.
    """

    name = "shim"

    def __init__(
        self,
        order: int = 0,
        *,
        multiprocessors: int = 2,
        compute_capability: int = 75,
        capacity: int = 1 << 34,
    ) -> None:
        self.order = order
        self.multiprocessors = multiprocessors
        self.compute_capability = compute_capability
        self.capacity = capacity
        self.launches: list[Kernel] = []
        """Everything that was launched, in order."""
        self._rooms: dict[int, tuple[weakref.ref[Array], int, int]] = {}
        """By its identity, an allocation and where the array handed out begins and ends."""

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        """Run a kernel to its end.

        Raises:
            ShimError: it waits for ever, writes outside its arrays, or takes other arguments.
        """
        self.launches.append(kernel)
        self.run(source.text(kernel), kernel.entry, grid, block, *arguments, shared=shared)

    def run(
        self,
        text: str,
        entry: str,
        grid: Sequence[int],
        block: Sequence[int],
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        """Run an entry point of a text to its end."""
        sizes = [(*s, 1, 1)[:3] for s in (grid, block)]
        if min(min(s) for s in sizes) < 1 or np.prod(sizes[1]) > 1024:
            raise ShimError(f"{entry}: a launch of {grid} blocks of {block}")
        if max(sizes[0][1:]) > 65535 or sizes[0][0] >= 1 << 31 or shared > 232448:
            raise ShimError(f"{entry}: no device has a grid of {grid}, {shared} bytes")
        passed = [_passed(x) for x in arguments]
        kinds = (ctypes.c_int * len(passed))(*(kind for kind, _ in passed))
        lengths = (ctypes.c_int * len(passed))(*(ctypes.sizeof(value) for _, value in passed))
        values = (ctypes.c_void_p * len(passed))(*(ctypes.addressof(v) for _, v in passed))
        how = _Launch(
            *((ctypes.c_longlong * 3)(*s) for s in sizes),
            *(shared, self.order, len(passed), kinds, lengths, values),
        )
        fault = _entry(text, entry)(ctypes.byref(how))
        if fault:
            raise ShimError(f"{entry}: {_FAULTS[fault]}")
        for x in arguments:
            if isinstance(x, np.ndarray):
                self._check_guards(entry, x)

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array of no particular content, between guards."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if size > self.free():
            raise LocalError(f"no room for {size} bytes on {self.name}", remedy="")
        room = np.full(size + 3 * GUARD, 0xA5, np.uint8)
        first = GUARD + -(room.ctypes.data + GUARD) % GUARD
        self._rooms[id(room)] = weakref.ref(room), first, first + size
        return room[first : first + size].view(dtype).reshape(shape).view(OnDevice)

    def holds(self, array: Any) -> bool:
        """Whether this kind of device made the array, or what it is a view of."""
        return isinstance(array, OnDevice)

    def address(self, array: Array) -> int:
        """Where an array begins."""
        return array.ctypes.data

    def upload(self, array: Array) -> Array:
        """A copy of an array."""
        copy = self.empty(array.shape, array.dtype)
        copy[...] = array
        return copy

    def download(self, array: Array) -> Array:
        """A copy of an array."""
        return OnDevice.get(array)  # type: ignore[arg-type]

    def free(self) -> int:
        """What arrays that still live leave of the capacity."""
        gone = [k for k, (room, _, _) in self._rooms.items() if room() is None]
        for key in gone:
            del self._rooms[key]
        return self.capacity - sum(end - first for _, first, end in self._rooms.values())

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def _check_guards(self, entry: str, array: Array) -> None:
        room = array
        while isinstance(room.base, np.ndarray):
            room = room.base
        known, first, end = self._rooms.get(id(room), (None, 0, 0))
        if known is None or known() is not room:
            return
        if (room[:first] != 0xA5).any() or (room[end:] != 0xA5).any():
            raise ShimError(f"{entry}: writes outside an array")


def _passed(argument: Argument) -> tuple[int, Any]:
    """Kind and value of a parameter."""
    if isinstance(argument, np.ndarray):
        return _ARRAY, ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, Words):
        return _WORDS, (ctypes.c_longlong * argument.size)(*argument.padded)
    if isinstance(argument, np.uint32):
        return _UNSIGNED32, ctypes.c_uint32(int(argument))
    if isinstance(argument, np.float32):
        return _FLOAT32, ctypes.c_float(float(argument))
    if isinstance(argument, int) and not isinstance(argument, bool):
        return _SIGNED64, ctypes.c_longlong(argument)
    raise TypeError(f"{type(argument).__name__} is no argument of a kernel")


@cache
def _entry(text: str, entry: str) -> Any:
    function = getattr(_module(text), f"shim_{entry}")
    function.argtypes = (ctypes.POINTER(_Launch),)
    function.restype = ctypes.c_int
    return function


@cache
def _module(text: str) -> ctypes.CDLL:
    """The text compiled with the shim around it, from ``build/`` where it lies there."""
    shim = (HERE / "shim.h").read_text(encoding="utf-8")
    body = _DYNAMIC.sub(r"\1* const \2 = reinterpret_cast<\1*>(shim::dynamic);", text)
    whole = f"{shim}\n{body}"
    digest = hashlib.sha256("\n".join((*FLAGS, whole)).encode()).hexdigest()[:32]
    built = BUILT / f"{digest}.so"
    if not built.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        made = BUILT / f"{digest}.{os.getpid()}.so"
        marked = _compiler("-E", "-P", "-D__global__=__shim_global__", text=whole)
        names = re.findall(r'extern\s+"C"\s+__shim_global__\s+void\s+(\w+)\s*\(', marked)
        whole += "".join(f"\nSHIM_ENTRY({name})" for name in names)
        _compiler("-o", str(made), text=f"{whole}\n")
        made.replace(built)
    return ctypes.CDLL(str(built))


def _compiler(*words: str, text: str) -> str:
    command = ["g++", *FLAGS, *words, "-"]
    result = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if result.returncode:
        raise ShimError(result.stderr)
    return result.stdout
