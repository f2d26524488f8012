"""What operators and prepared steps are computed by: the native module, or a CUDA device.

An engine has the functions of the native module (``_native.pyi`` says where their text is) over
arrays of its own kind, numpy's on the CPU. Views, arenas, groups of operators and the order of
a step are decided once, above it.
"""
# ruff: noqa: D102 - each function is documented where it is defined

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np


class BuiltChain(Protocol):
    """A chain of elementwise operators and sums and maxima of rows, ready to run."""

    def run(
        self,
        outputs: list[Any],
        inputs: list[Any],
        shape: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> None:
        """Fill ``outputs``; inputs have strides over ``shape``, in elements."""
        ...


class BuiltJoin(Protocol):
    """A chain of elementwise operators that runs over many sets of buffers at once."""

    def run(
        self, outputs: list[list[Any]], inputs: list[list[Any]], elements: Sequence[int]
    ) -> None:
        """Fill the outputs of each set, dense and of so many elements."""
        ...


Over = Sequence[tuple[int, int]]
"""Results of a chain, by their places among its outputs, each with the number of an input that
it may be written over: that input's memory may be the result's."""


@runtime_checkable
class Joins(Protocol):
    """Functions of an engine for which one call over many buffers costs less than many calls."""

    def JoinedChain(
        self,
        inputs: Sequence[tuple[str, bool]],
        code: Sequence[tuple[str, Sequence[int]]],
        outputs: Sequence[int],
        scalars: Sequence[bool],
        over: Over = (),
    ) -> BuiltJoin:
        """A chain without rows; its inputs are dense, or scalars."""
        ...


@runtime_checkable
class Overwrites(Protocol):
    """Functions of an engine whose chains may write a result over an input."""

    def ChainOver(
        self,
        inputs: Sequence[tuple[str, bool]],
        code: Sequence[tuple[str, Sequence[int]]],
        outputs: Sequence[int],
        over: Over,
    ) -> BuiltChain:
        """A chain without rows that reads the inputs in ``over`` where it writes the results."""
        ...


@runtime_checkable
class SumsLongRows(Protocol):
    """Functions of an engine whose chains sum and search rows of more than 4,096 elements."""

    def sums_rows(self, rows: int, width: int) -> bool:
        """Whether a chain should take so many rows of so many elements."""
        ...


class Calls(Protocol):
    """The functions of an engine: outputs first, then inputs, then sizes.

    Strides are in elements; what each function computes stands in the native module.
    """

    def Chain(
        self,
        inputs: Sequence[tuple[str, bool]],
        code: Sequence[tuple[str, Sequence[int]]],
        outputs: Sequence[int],
    ) -> BuiltChain: ...

    def unary(self, op: str, out: Any, x: Any) -> None: ...
    def binary(
        self,
        op: str,
        out: Any,
        a: Any,
        b: Any,
        shape: Sequence[int] | None = None,
        a_strides: Sequence[int] | None = None,
        b_strides: Sequence[int] | None = None,
    ) -> None: ...
    def where(
        self,
        out: Any,
        c: Any,
        a: Any,
        b: Any,
        shape: Sequence[int] | None = None,
        c_strides: Sequence[int] | None = None,
        a_strides: Sequence[int] | None = None,
        b_strides: Sequence[int] | None = None,
    ) -> None: ...
    def cast(self, out: Any, x: Any) -> None: ...
    def matmul(
        self,
        out: Any,
        a: Any,
        b: Any,
        batch: int,
        m: int,
        n: int,
        k: int,
        a_strides: Sequence[int],
        b_strides: Sequence[int],
    ) -> None: ...
    def sum_last(self, out: Any, x: Any, rows: int, n: int) -> None: ...
    def sum_first(self, out: Any, x: Any, n: int, inner: int) -> None: ...
    def amax(self, out: Any, x: Any, rows: int, n: int) -> None: ...
    def argmax(self, out: Any, x: Any, rows: int, n: int) -> None: ...
    def cumsum(self, out: Any, x: Any, rows: int, n: int) -> None: ...
    def argsort(
        self, out: Any, x: Any, rows: int, n: int, count: int, descending: bool
    ) -> None: ...
    def set_rows(
        self, out: Any, init: Any, index: Any, src: Any, rows: int, inner: int
    ) -> None: ...
    def scatter(self, out: Any, x: Any, index: Any, src: Any, axis: int) -> None: ...
    def scatter_add(self, out: Any, x: Any, index: Any, src: Any, axis: int) -> None: ...
    def conv(
        self,
        out: Any,
        x: Any,
        w: Any,
        sizes: Sequence[int],
        down: Sequence[int],
        across: Sequence[int],
        plain: bool = False,
    ) -> None: ...
    def conv_dx(
        self,
        out: Any,
        grad: Any,
        w: Any,
        sizes: Sequence[int],
        down: Sequence[int],
        across: Sequence[int],
        plain: bool = False,
    ) -> None: ...
    def conv_dw(
        self,
        out: Any,
        grad: Any,
        x: Any,
        sizes: Sequence[int],
        down: Sequence[int],
        across: Sequence[int],
        plain: bool = False,
    ) -> None: ...
    def max_pool(
        self, out: Any, x: Any, planes: int, down: Sequence[int], across: Sequence[int]
    ) -> None: ...
    def max_pool_indices(
        self,
        out: Any,
        x: Any,
        planes: int,
        down: Sequence[int],
        across: Sequence[int],
        far: bool = False,
    ) -> None: ...
    def max_pool_dx(
        self,
        out: Any,
        grad: Any,
        indices: Any,
        planes: int,
        down: Sequence[int],
        across: Sequence[int],
    ) -> None: ...
    def sum_pool(
        self, out: Any, x: Any, planes: int, down: Sequence[int], across: Sequence[int]
    ) -> None: ...
    def sum_pool_dx(
        self, out: Any, grad: Any, planes: int, down: Sequence[int], across: Sequence[int]
    ) -> None: ...
    def copy_strided(
        self,
        out: Any,
        out_offset: int,
        out_strides: Sequence[int],
        x: Any,
        x_offset: int,
        x_strides: Sequence[int],
        shape: Sequence[int],
    ) -> None: ...
    def full(self, out: Any, pattern: int) -> None: ...
    def iota(self, out: Any, start: int, step: int) -> None: ...
    def take_rows(self, out: Any, table: Any, index: Any, rows: int, row_bytes: int) -> None: ...
    def take_windows(self, out: Any, tokens: Any, starts: Any, length: int) -> None: ...
    def gather(self, out: Any, x: Any, index: Any, axis: int) -> None: ...
    def add_rows(
        self, out: Any, init: Any, index: Any, src: Any, rows: int, inner: int
    ) -> None: ...
    def philox_uniform(self, out: Any, key0: int, key1: int, stream: int, shard: int) -> None: ...
    def philox_index(
        self, out: Any, key0: int, key1: int, bound: int, stream: int, shard: int
    ) -> None: ...
    def shuffled_index(
        self, out: Any, key0: int, key1: int, bound: int, step: int, shards: int, shard: int
    ) -> None: ...


class Engine(Protocol):
    """Functions, and the memory that they work on."""

    @property
    def calls(self) -> Calls:
        """The functions."""
        ...

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """A new row-major array whose elements are not set yet."""
        ...

    def flat(self, array: Any) -> Any:
        """The elements in row-major order along one axis; without a copy where that is possible."""
        ...

    def arena(self, size: int) -> Any:
        """``size`` bytes (uint8), the first at a multiple of ``draft.ALIGNMENT``."""
        ...

    def words(self, array: Any) -> list[int]:
        """Bit patterns of the elements, in row-major order."""
        ...


@runtime_checkable
class Apart(Protocol):
    """An engine whose arrays lie apart from those of its callers: on a device."""

    def holds(self, array: Any) -> bool:
        """Whether an array lies there."""
        ...

    def span(self, array: Any) -> range:
        """Addresses of the bytes of an array that lies there in one piece."""
        ...
