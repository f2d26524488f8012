"""Running sums along the last axis."""

from __future__ import annotations

from identic.protocol.dtypes import DType
from identic.protocol.ops.accumulate import column_sum
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_dtype, need_rank
from identic.protocol.ops.folds import Element, Fold
from identic.protocol.tensors import TensorType

_FI = (DType.FLOAT32, DType.INT64, DType.INT32)


class Cumsum(Operator):
    """``cumsum(x)``: element ``i`` of a row is the column sum of the row up to it (OP-30)."""

    name = "cumsum"
    code = 70
    arity = 1

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """F or I of shape (..., n) gives the same type."""
        del attributes
        need_dtype(self.name, inputs[0], _FI)
        need_rank(self.name, inputs[0], 1)
        return inputs[0]

    def fold(self, call: Call, element: int) -> Fold:
        """Chains of 256, the last one up to the element, added in order."""
        (x,) = call.inputs
        length = x.shape[-1]
        place = element % length
        first = element - place
        return column_sum(place + 1, lambda i: Element(0, first + i), f"add.{x.dtype.label}")

    def cost(self, call: Call) -> Cost:
        """Two additions an element: in its chain, and to the chains before it."""
        plain = super().cost(call)
        return Cost(flops=2 * plain.flops, bytes=plain.bytes)


OPERATORS: tuple[Operator, ...] = (Cumsum(),)
"""Rows of the table."""
