"""Operators that write or add elements at places read from another tensor.

Writes happen in the order of the index, so that the last one to a place stays (OP-32). An
index outside its axis writes nothing (OP-4).
"""

from __future__ import annotations

import math

from identic.protocol.dtypes import DType
from identic.protocol.ops.accumulate import scatter_sum
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import (
    need_attribute,
    need_dtype,
    need_equal_dtypes,
    need_rank,
    need_shape,
)
from identic.protocol.ops.folds import Constant, Element, Fold, Operand, Step, chain, single
from identic.protocol.ops.primitives import INDEX_DTYPES
from identic.protocol.tensors import TensorType, ravel, strides, unravel


class SetRows(Operator):
    """``set_rows(init, index, source)``: rows replaced by the last source row that names them."""

    name = "set_rows"
    code = 73
    arity = 3

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(R, ...), I of shape (T,) and (T, ...) of any one type give (R, ...)."""
        del attributes
        init, index, source = inputs
        need_equal_dtypes(self.name, init, source)
        need_rank(self.name, init, 1)
        need_dtype(self.name, index, INDEX_DTYPES)
        need_shape(self.name, len(index.shape) == 1, got=index, want="an index of rank 1")
        fits = source.shape == (*index.shape, *init.shape[1:])
        need_shape(self.name, fits, got=f"{init}, {index} and {source}", want="a row an index")
        return init

    def fold(self, call: Call, element: int) -> Fold:
        """A chain over the source rows: each that names the row replaces the word."""
        _, index, source = call.inputs
        width = math.prod(source.shape[1:])
        row, inner = divmod(element, width)
        primitive = f"set_if_equal.{index.dtype.label}"

        def step(t: int, word: Operand) -> Step:
            return Step(
                primitive, (word, Element(1, t), Constant(row), Element(2, t * width + inner))
            )

        count = index.shape[0]
        start = Element(0, element)
        return chain(count, step, start) if count else single("copy", start)

    def cost(self, call: Call) -> Cost:
        """Bytes only."""
        return Cost(flops=0, bytes=super().cost(call).bytes)


class _Along(Operator):
    """What both scatters share: ``(x, index, source)``, of equal rank, along ``axis``."""

    arity = 3
    attributes = (("axis", False),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The type of ``x``; the source has the index's shape, no longer than ``x`` elsewhere."""
        x, index, source = inputs
        (axis,) = attributes["axis"]
        need_equal_dtypes(self.name, x, source)
        need_dtype(self.name, index, INDEX_DTYPES)
        rank = len(x.shape)
        need_shape(self.name, len(index.shape) == rank, got=f"{x} and {index}", want="equal ranks")
        same = source.shape == index.shape
        need_shape(self.name, same, got=f"{index} and {source}", want="one element an index")
        need_attribute(self.name, "axis", 0 <= axis < rank, got=axis, want=f"in [0, {rank})")
        pairs = enumerate(zip(index.shape, x.shape, strict=True))
        fits = all(i <= n for number, (i, n) in pairs if number != axis)
        need_shape(self.name, fits, got=f"{x} and {index}", want="an index no longer than x")
        return x

    def line(self, call: Call, element: int) -> tuple[int, int, int, int]:
        """Where an element's indices lie: its place along the axis; first, step, count.

        The count is 0 where no index is in line with the element.
        """
        shape, axis = call.inputs[1].shape, call.integer("axis")
        place = list(unravel(element, call.output.shape))
        row, place[axis] = place[axis], 0
        outside = any(
            p >= n for a, (p, n) in enumerate(zip(place, shape, strict=True)) if a != axis
        )
        if outside:
            return row, 0, 0, 0
        return row, ravel(place, shape), strides(shape)[axis], shape[axis]


class Scatter(_Along):
    """``scatter(x, index, source)``: elements replaced along one axis, the last write kept."""

    name = "scatter"
    code = 74

    def fold(self, call: Call, element: int) -> Fold:
        """A chain over the indices in line with the element."""
        row, first, step, count = self.line(call, element)
        primitive = f"set_if_equal.{call.inputs[1].dtype.label}"

        def write(j: int, word: Operand) -> Step:
            at = first + j * step
            return Step(primitive, (word, Element(1, at), Constant(row), Element(2, at)))

        start = Element(0, element)
        return chain(count, write, start) if count else single("copy", start)

    def cost(self, call: Call) -> Cost:
        """Bytes only."""
        return Cost(flops=0, bytes=super().cost(call).bytes)


class ScatterAdd(_Along):
    """``scatter_add(x, index, source)``: elements added along one axis (NUM-14)."""

    name = "scatter_add"
    code = 75

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """float32 only."""
        need_dtype(self.name, inputs[0], (DType.FLOAT32,))
        return super().infer(inputs, attributes)

    def fold(self, call: Call, element: int) -> Fold:
        """Chunks of 256 indices; an index adds where it names the element."""
        row, first, step, count = self.line(call, element)
        primitive = f"add_if_equal.{call.inputs[1].dtype.label}"

        def add(j: int, total: Operand) -> Step:
            at = first + j * step
            return Step(primitive, (total, Element(1, at), Constant(row), Element(2, at)))

        return scatter_sum(count, Element(0, element), add)

    def cost(self, call: Call) -> Cost:
        """One addition a source element and one a result element."""
        plain = super().cost(call)
        return Cost(flops=plain.flops + call.inputs[2].elements, bytes=plain.bytes)


OPERATORS: tuple[Operator, ...] = (SetRows(), Scatter(), ScatterAdd())
"""Rows of the table."""
