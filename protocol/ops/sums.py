"""Sums over the last axis (rows) and over the first axis (columns).

Float32 in the orders of NUM-12 and NUM-13; integers wrap around (NUM-9), in the same folds.
"""

from __future__ import annotations

import math

from identic.protocol.dtypes import DType
from identic.protocol.ops.accumulate import column_sum, row_sum
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_dtype, need_rank
from identic.protocol.ops.folds import Element, Fold
from identic.protocol.tensors import TensorType

_FI = (DType.FLOAT32, DType.INT64, DType.INT32)


class _Sum(Operator):
    """What both sums share."""

    arity = 1

    def fold(self, call: Call, element: int) -> Fold:
        """The accumulation order of the rule."""
        raise NotImplementedError

    def cost(self, call: Call) -> Cost:
        """One addition an operand element."""
        plain = super().cost(call)
        return Cost(flops=call.inputs[0].elements + plain.flops, bytes=plain.bytes)


class SumLast(_Sum):
    """Sum over the last axis: (..., n) gives (...)."""

    name = "sum_last"
    code = 40

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The operand without its last axis."""
        del attributes
        need_dtype(self.name, inputs[0], _FI)
        need_rank(self.name, inputs[0], 1)
        return TensorType.of(inputs[0].dtype, inputs[0].shape[:-1])

    def fold(self, call: Call, element: int) -> Fold:
        """64 lanes and folds, in blocks of 4,096."""
        (x,) = call.inputs
        length = x.shape[-1]
        first = element * length
        return row_sum(length, lambda i: Element(0, first + i), f"add.{x.dtype.label}")


class SumFirst(_Sum):
    """Sum over the first axis: (n, ...) gives (...)."""

    name = "sum_first"
    code = 41

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The operand without its first axis."""
        del attributes
        need_dtype(self.name, inputs[0], _FI)
        need_rank(self.name, inputs[0], 1)
        return TensorType.of(inputs[0].dtype, inputs[0].shape[1:])

    def fold(self, call: Call, element: int) -> Fold:
        """Chains of 256 rows, added in order."""
        (x,) = call.inputs
        stride = math.prod(x.shape[1:])
        label = x.dtype.label
        return column_sum(x.shape[0], lambda i: Element(0, element + i * stride), f"add.{label}")


OPERATORS: tuple[Operator, ...] = (SumLast(), SumFirst())
"""Rows of the table."""
