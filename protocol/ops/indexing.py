"""Operators that find elements or rows through integers read from another tensor.

An index outside the table reads 0 and writes nothing (OP-4): no index can crash a node.
"""

from __future__ import annotations

import math

from identic.protocol.dtypes import DType
from identic.protocol.ops.accumulate import scatter_sum
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_attribute, need_dtype, need_rank, need_shape
from identic.protocol.ops.folds import Constant, Element, Fold, Looked, Operand, Step, single
from identic.protocol.ops.primitives import INDEX_DTYPES
from identic.protocol.tensors import TensorType, ravel, strides, unravel


class TakeRows(Operator):
    """``take_rows(table, index)``: rows of the first axis, in the order of the index."""

    name = "take_rows"
    code = 56
    arity = 2

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(R, ...) and I of any shape give the index's shape and the row's."""
        del attributes
        table, index = inputs
        need_rank(self.name, table, 1)
        need_dtype(self.name, index, INDEX_DTYPES)
        return TensorType.of(table.dtype, (*index.shape, *table.shape[1:]))

    def fold(self, call: Call, element: int) -> Fold:
        """One copy."""
        table = call.inputs[0].shape
        width = math.prod(table[1:])
        place, inner = divmod(element, width)
        return single("copy", Looked(0, Element(1, place), width, inner, table[0]))


class Gather(Operator):
    """``gather(x, index)`` along ``axis``: one element for each index, other positions equal."""

    name = "gather"
    code = 57
    arity = 2
    attributes = (("axis", False),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The index's shape with the elements of ``x``."""
        x, index = inputs
        (axis,) = attributes["axis"]
        need_dtype(self.name, index, INDEX_DTYPES)
        rank = len(x.shape)
        need_shape(self.name, len(index.shape) == rank, got=f"{x} and {index}", want="equal ranks")
        need_attribute(self.name, "axis", 0 <= axis < rank, got=axis, want=f"in [0, {rank})")
        pairs = zip(index.shape, x.shape, strict=True)
        fits = all(i <= n for number, (i, n) in enumerate(pairs) if number != axis)
        need_shape(self.name, fits, got=f"{x} and {index}", want="an index no longer than x")
        return TensorType.of(x.dtype, index.shape)

    def fold(self, call: Call, element: int) -> Fold:
        """One copy."""
        shape, axis = call.inputs[0].shape, call.integer("axis")
        place = list(unravel(element, call.output.shape))
        place[axis] = 0
        step = strides(shape)[axis]
        # With an empty axis no index is inside, and the offset is never used.
        offset = ravel(place, shape)
        return single("copy", Looked(0, Element(1, element), step, offset, shape[axis]))


class TakeWindows(Operator):
    """``take_windows(tokens, starts)``: ``length`` consecutive elements from each start."""

    name = "take_windows"
    code = 58
    arity = 2
    attributes = (("length", False),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(N,) and (B,) give (B, length)."""
        tokens, starts = inputs
        (length,) = attributes["length"]
        need_shape(self.name, len(tokens.shape) == 1, got=tokens, want="rank 1")
        need_shape(self.name, len(starts.shape) == 1, got=starts, want="rank 1")
        need_dtype(self.name, starts, INDEX_DTYPES)
        need_attribute(self.name, "length", length >= 0, got=length, want=">= 0")
        return TensorType.of(tokens.dtype, (starts.shape[0], length))

    def fold(self, call: Call, element: int) -> Fold:
        """One copy; a place beyond the end reads 0, and so does all of a negative start."""
        place, offset = divmod(element, call.integer("length"))
        bound = max(0, call.inputs[0].shape[0] - offset)
        return single("copy", Looked(0, Element(1, place), 1, offset, bound))


class AddRows(Operator):
    """``add_rows(init, index, source)``: scatter-add of rows along the first axis (NUM-14)."""

    name = "add_rows"
    code = 59
    arity = 3

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(R, ...), I of shape (T,) and (T, ...) give (R, ...)."""
        del attributes
        init, index, source = inputs
        for kind in (init, source):
            need_dtype(self.name, kind, (DType.FLOAT32,))
            need_rank(self.name, kind, 1)
        need_dtype(self.name, index, INDEX_DTYPES)
        need_shape(self.name, len(index.shape) == 1, got=index, want="an index of rank 1")
        fits = source.shape == (*index.shape, *init.shape[1:])
        need_shape(self.name, fits, got=f"{init}, {index} and {source}", want="a row an index")
        return init

    def fold(self, call: Call, element: int) -> Fold:
        """Chunks of 256 source positions; a position adds where its index is the row."""
        _, index, source = call.inputs
        width = math.prod(source.shape[1:])
        row, inner = divmod(element, width)
        primitive = f"add_if_equal.{index.dtype.label}"

        def step(t: int, total: Operand) -> Step:
            addend = Element(2, t * width + inner)
            return Step(primitive, (total, Element(1, t), Constant(row), addend))

        return scatter_sum(index.shape[0], Element(0, element), step)

    def cost(self, call: Call) -> Cost:
        """One addition a source element and one a result element."""
        plain = super().cost(call)
        return Cost(flops=plain.flops + call.inputs[2].elements, bytes=plain.bytes)


OPERATORS: tuple[Operator, ...] = (TakeRows(), Gather(), TakeWindows(), AddRows())
"""Rows of the table."""
