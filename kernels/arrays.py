"""Tensors as numpy arrays: containers only, no arithmetic.

bfloat16 has no type in numpy; its elements are held as their bit patterns in ``uint16``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identic.protocol.dtypes import DType
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.tensors import TensorType

Array = NDArray[Any]
"""An array of one of the types below, row-major unless a function says otherwise."""

NUMPY: dict[DType, np.dtype[Any]] = {
    DType.FLOAT32: np.dtype("<f4"),
    DType.INT64: np.dtype("<i8"),
    DType.INT32: np.dtype("<i4"),
    DType.UINT8: np.dtype("u1"),
    DType.BOOL: np.dtype("?"),
    DType.BFLOAT16: np.dtype("<u2"),
}
"""The numpy type that holds each element type."""

_WORD: dict[int, np.dtype[Any]] = {
    1: np.dtype("u1"),
    2: np.dtype("<u2"),
    4: np.dtype("<u4"),
    8: np.dtype("<u8"),
}


def on_host(array: Any) -> Array:
    """The array itself, or numpy's copy of one that lies on a device."""
    get = getattr(array, "get", None)
    copy: Array = array if get is None else get()
    return copy


def row_major(array: Array) -> Array:
    """The array itself if it is row-major without gaps, else a copy that is."""
    return array if array.flags.c_contiguous else array.copy(order="C")


def part(array: Array, *bounds: slice) -> Array:
    """A view of part of an array, one slice an axis; of a scalar too."""
    index: Any = (..., *bounds)
    view: Array = array[index]
    return view


def words(array: Array) -> list[int]:
    """Bit patterns of the elements, in row-major order."""
    flat = row_major(array).reshape(-1)
    return [int(w) for w in flat.view(_WORD[array.dtype.itemsize])]


def from_words(kind: TensorType, values: Sequence[int]) -> Array:
    """The array of type ``kind`` with these bit patterns in row-major order."""
    flat: Array = np.array(values, dtype=_WORD[kind.dtype.size]).view(NUMPY[kind.dtype])
    return flat.reshape(kind.shape)


def from_bytes(kind: TensorType, data: bytes | memoryview) -> Array:
    """The array of type ``kind`` over ``data``, without a copy; read-only over ``bytes``.

    Raises:
        ProtocolError: a truth value is a byte other than 0 and 1 (PRG-2).
    """
    if kind.dtype is DType.BOOL:
        largest = int(np.frombuffer(data, dtype=np.uint8).max(initial=0))
        # PRG-2: an element of type bool is the byte 0 or 1.
        if largest > 1:
            raise ProtocolError("PRG-2", Code.MALFORMED, got=f"a bool {largest}", want="0 or 1")
    return np.frombuffer(data, dtype=NUMPY[kind.dtype]).reshape(kind.shape)


def to_bytes(array: Array) -> bytes:
    """The elements' bytes, in row-major order."""
    return row_major(on_host(array)).tobytes()


def empty(kind: TensorType) -> Array:
    """An array of type ``kind`` whose elements are not set yet."""
    return np.empty(kind.shape, dtype=NUMPY[kind.dtype])
