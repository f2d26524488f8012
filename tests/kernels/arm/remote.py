"""The native module in another process: every function of it, called through a pipe.

``Remote`` has the functions of ``identic.kernels._native``. A call sends its arguments, arrays with
the memory that their strides reach, and writes the results back into the arrays it was given.
"""

from __future__ import annotations

import ctypes
import struct
import subprocess
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from identic.kernels.arrays import Array

FORMATS = {"f4": "f", "i8": "q", "i4": "i", "u1": "B", "b1": "?", "u2": "H"}
"""Letters of the buffer protocol for the types that kernels compute with."""

ERRORS: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "AttributeError": AttributeError,
}


class Remote(types.ModuleType):
    """A process that answers for the module.

    Args:
        command: what starts it.
        kept: a file for every request and its answer, with their lengths before them.
    """

    def __init__(self, command: Sequence[str], kept: Path | None = None) -> None:
        super().__init__("identic.kernels._native")
        self._kept = kept.open("wb") if kept else None
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        remote = self

        class Chain:
            """The class of this name, its object in the other process."""

            def __init__(self, *arguments: object) -> None:
                self._number = remote.call("Chain.__init__", (Handle(0), *arguments), {})

            def run(self, *arguments: object) -> None:
                """Run it."""
                remote.call("Chain.run", (self._number, *arguments), {})

        self.Chain = Chain

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def function(*arguments: object, **keywords: object) -> Any:
            return self.call(name, arguments, keywords)

        return function

    def call(self, name: str, arguments: Sequence[object], keywords: Mapping[str, object]) -> Any:
        """Call one function."""
        outs: list[Array] = []
        message = packed([name, list(arguments), dict(keywords)], outs)
        pipe, back = self._process.stdin, self._process.stdout
        if pipe is None or back is None:
            raise RuntimeError("the process has no pipes")
        pipe.write(struct.pack("<Q", len(message)) + message)
        pipe.flush()
        (size,) = struct.unpack("<Q", back.read(8))
        reply = back.read(size)
        if self._kept:
            self._kept.write(_text(message) + _text(reply))
        result, written = Unpacker(reply).value()
        if isinstance(result, str) and result in ERRORS and isinstance(written, str):
            raise ERRORS[result](written)
        for array, data in zip(outs, written, strict=True):
            _memory(array)[:] = data
        return result

    def close(self) -> None:
        """End the process."""
        if self._kept:
            self._kept.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


class Handle(int):
    """Number of an object in the other process."""


def _memory(array: Array) -> Any:
    """The bytes from the first element to the last."""
    reach = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    size = reach + array.itemsize if array.size else 0
    return (ctypes.c_char * size).from_address(array.ctypes.data)


def packed(value: object, outs: list[Array]) -> bytes:
    """A value as bytes; arrays that may be written are noted in ``outs``, in order."""
    if value is None:
        return b"n"
    if isinstance(value, Handle):
        return b"o" + struct.pack("<q", value)
    if isinstance(value, bool | np.bool_):
        return b"b" + bytes([int(value)])
    if isinstance(value, int | np.integer):
        return b"i" + struct.pack("<Q", int(value) & 0xFFFFFFFFFFFFFFFF)
    if isinstance(value, str):
        return b"s" + _text(value.encode())
    if isinstance(value, bytes | memoryview):
        return b"y" + _text(bytes(value))
    if isinstance(value, np.ndarray):
        return _array(value, outs)
    if isinstance(value, dict):
        items = [_text(key.encode()) + packed(item, outs) for key, item in value.items()]
        return b"d" + struct.pack("<Q", len(items)) + b"".join(items)
    if isinstance(value, Sequence):
        return b"l" + struct.pack("<Q", len(value)) + b"".join(packed(v, outs) for v in value)
    raise TypeError(f"cannot send {type(value).__name__}")


def _text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def _array(array: Array, outs: list[Array]) -> bytes:
    if array.flags.writeable:
        outs.append(array)
    letter = FORMATS.get(array.dtype.str[1:], "x")
    head = bytes([array.flags.writeable, ord(letter), array.itemsize, array.ndim])
    sizes = struct.pack(f"<{2 * array.ndim}q", *array.shape, *array.strides)
    backward = any(s < 0 for s in array.strides)
    return b"a" + head + sizes + _text(b"" if backward else bytes(_memory(array)))


class Unpacker:
    """Reads a value from bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def _number(self) -> int:
        return int.from_bytes(self._take(8), "little", signed=True)

    def value(self) -> Any:
        """The next value."""
        tag = self._take(1)
        if tag == b"i":
            return self._number()
        if tag == b"o":
            return Handle(self._number())
        if tag == b"b":
            return self._take(1) != b"\0"
        if tag == b"s":
            return self._take(self._number()).decode()
        if tag == b"y":
            return self._take(self._number())
        if tag == b"l":
            return [self.value() for _ in range(self._number())]
        if tag == b"d":
            pairs = [
                (self._take(self._number()).decode(), self.value()) for _ in range(self._number())
            ]
            return dict(pairs)
        return None
