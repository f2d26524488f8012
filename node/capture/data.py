"""Where batches come from: data tensors, and the instructions that sample them (CAP-10).

A sampler is part of the gradient section: ordinary operators over committed data and the
step's context, so that a dispute can descend into it. ``batch`` computes the same batch on
the client with the one-element reference functions, for the comparison with torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from identic.node.capture.examples import OnRead, names_of, read
from identic.protocol.arithmetic.permutation import permute
from identic.protocol.arithmetic.philox import bounded, philox4x32
from identic.protocol.dtypes import DType
from identic.protocol.lowering import Builder, CaptureError

INDEX_STREAM = 0
"""Stream of random window starts."""

Array = NDArray[Any]


_WIDENED = {np.dtype(t): np.int32 for t in (np.int8, np.uint16, np.int16)}
_LARGEST = 2**31 - 1


def committed(name: str, value: Any) -> Array:
    """A data tensor as a contiguous array of an element type of programs.

    Raises:
        CaptureError: the value has another element type, or is empty (CAP-3).
    """
    array: Array = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    if array.dtype == np.uint32 and array.size and int(array.max()) <= _LARGEST:
        array = array.astype(np.int32)
    array = np.ascontiguousarray(array, _WIDENED.get(array.dtype)).reshape(array.shape)
    # CAP-3: data tensors have the element types of programs, and hold something.
    if array.dtype.newbyteorder("<") not in _DTYPES or array.size == 0:
        raise CaptureError(
            "CAP-3",
            f"data tensor {name} is {array.dtype}{list(array.shape)}.",
            advice="give at least one element of float32, int64, int32, uint8 or bool.",
        )
    return array


_DTYPES = {
    np.dtype("<f4"): DType.FLOAT32,
    np.dtype("<i8"): DType.INT64,
    np.dtype("<i4"): DType.INT32,
    np.dtype("u1"): DType.UINT8,
    np.dtype("?"): DType.BOOL,
}


def dtype_of(array: Array) -> DType:
    """Element type of a data or state array."""
    return _DTYPES[array.dtype.newbyteorder("<")]


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of a token stream at random places: ``x``, and ``y`` one token later.

    Attributes:
        tokens: one-dimensional, uint8 or another integer type; a ``numpy.memmap``, too.
        length: tokens in ``x``.
        batch: windows a step, over all shards.
    """

    tokens: Any
    length: int
    batch: int

    def tensors(self) -> list[tuple[str, Array]]:
        """Named data tensors."""
        tokens = committed("tokens", self.tokens)
        # CAP-10: a window and the token after it fit into the stream.
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or len(tokens) <= self.length:
            raise CaptureError(
                "CAP-10",
                f"tokens are {tokens.dtype}{list(tokens.shape)} for windows of {self.length}.",
                advice="give one axis of whole numbers, longer than a window.",
            )
        return [("tokens", tokens)]

    def sample(self, builder: Builder, data: Sequence[int], context: int, shards: int) -> list[int]:
        """Instructions that make one shard's ``x`` and ``y``, int64 (batch/shards, length)."""
        (tokens,) = data
        count = self.batch // shards
        bound = builder.shape(tokens)[0] - self.length
        # CAP-10: starts are uniform over all places where a window and its next token fit.
        starts = builder.emit(
            "random_index", context, bound=bound, count=count, stream=INDEX_STREAM
        )
        windows = builder.emit("take_windows", tokens, starts, length=self.length + 1)
        return [
            builder.cast(builder.slice(windows, 1, first, first + self.length), DType.INT64)
            for first in (0, 1)
        ]

    def arrange(self, batch: Sequence[Any]) -> tuple[Any, ...]:
        """The tensors of a batch as the loss is given them."""
        return tuple(batch)

    def batch_of(self, context: Sequence[int], shards: int) -> list[Array]:
        """The same ``x`` and ``y``, on the client."""
        ((_, tokens),) = self.tensors()
        count, bound = self.batch // shards, len(tokens) - self.length
        key = (context[2], context[3])
        rows = []
        for i in range(count):
            block = philox4x32(key, (i // 2, 0, INDEX_STREAM, context[5]))
            start = bounded(block[2 * (i % 2)], block[2 * (i % 2) + 1], bound)
            rows.append(tokens[start : start + self.length + 1].astype(np.int64))
        windows = np.stack(rows)
        return [np.ascontiguousarray(windows[:, :-1]), np.ascontiguousarray(windows[:, 1:])]


class Rows:
    """Examples of a table, each once an epoch, in an order shuffled anew for every epoch.

    Args:
        tensors: arrays or torch tensors with the same first axis; a batch takes the same
            rows of each. Or one dictionary of them, which the loss is then given as it is.
        batch: rows a step, over all shards.
    """

    def __init__(self, *tensors: Any, batch: int) -> None:
        self.batch = batch
        one = tensors[0] if len(tensors) == 1 else None
        self._leaves = list(one.values() if isinstance(one, Mapping) else tensors)
        places = range(len(self._leaves))
        whole = dict(zip(one, places, strict=True)) if isinstance(one, Mapping) else tuple(places)
        self._spec = pytree.tree_structure(whole)
        self._names = names_of(self._spec, len(self._leaves))

    def tensors(self) -> list[tuple[str, Array]]:
        """Named data tensors."""
        named = [f"rows.{_PRINTABLE.sub('_', n)}" for n in self._names]
        arrays = [(n, committed(n, t)) for n, t in zip(named, self._leaves, strict=True)]
        # CAP-10: all tables have the same number of rows.
        if not arrays or len({a.shape[:1] for _, a in arrays}) != 1 or arrays[0][1].ndim == 0:
            raise CaptureError(
                "CAP-10",
                f"tables have shapes {[list(a.shape) for _, a in arrays]}.",
                advice="give at least one tensor, all with the same first axis.",
            )
        return arrays

    def arrange(self, batch: Sequence[Any]) -> tuple[Any, ...]:
        """The tensors of a batch as the loss is given them."""
        whole = pytree.tree_unflatten(list(batch), self._spec)
        return whole if isinstance(whole, tuple) else (whole,)

    def sample(self, builder: Builder, data: Sequence[int], context: int, shards: int) -> list[int]:
        """Instructions that take one shard's rows of every table."""
        bound = builder.shape(data[0])[0]
        # CAP-10: position p of the job's stream of rows is row permute(epoch, p mod rows).
        order = builder.emit(
            "shuffled_index", context, bound=bound, count=self.batch // shards, shards=shards
        )
        return [builder.emit("take_rows", table, order) for table in data]

    def batch_of(self, context: Sequence[int], shards: int) -> list[Array]:
        """The same rows, on the client."""
        arrays = [array for _, array in self.tensors()]
        bound, count = len(arrays[0]), self.batch // shards
        first = (context[4] * shards + context[5]) * count
        key = (context[0], context[1])
        order = [permute(key, p // bound, bound, p % bound) for p in range(first, first + count)]
        return [np.ascontiguousarray(array[order]) for array in arrays]


_PRINTABLE = re.compile(r"[^!-~]")


class Examples(Rows):
    """Examples of a dataset, read once into tables; then as ``Rows``.

    A batch is what torch's loader makes of the items: the loss is given the fields of a tuple
    one by one, and a dictionary as it is.

    Args:
        dataset: anything with ``len(dataset)`` and ``dataset[i]`` that gives tensors, numbers,
            or tuples and dictionaries of them; or a table with ``column_names``, such as
            ``datasets.Dataset``.
        batch: examples a step, over all shards.
        columns: fields of dictionary items to keep; None keeps all.
        most_bytes: larger datasets are refused before they are read.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        batch: int,
        columns: Sequence[str] | None = None,
        most_bytes: int = 4 << 30,
    ) -> None:
        self.batch = batch
        self._dataset, self._columns, self._most = dataset, columns, most_bytes
        self._read = False

    def __len__(self) -> int:
        """How many examples there are."""
        return len(self._dataset)

    def read(self, on_read: OnRead = lambda _done, _total: None) -> None:
        """Read the dataset, once.

        Raises:
            CaptureError: it cannot become tables (CAP-16).
        """
        if not self._read:
            found = read(self._dataset, self._columns, self._most, on_read)
            self._leaves, self._spec, self._names = found
            self._read = True

    def tensors(self) -> list[tuple[str, Array]]:
        """Named data tensors."""
        self.read()
        return super().tensors()
