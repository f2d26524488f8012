"""Matrix product over the last two axes: ``C[m, n] = sum over k of A[m, k] * B[k, n]``.

The axes before broadcast as in numpy. An element is the contraction of NUM-10 over ``k``.
"""

from __future__ import annotations

from identic.protocol.dtypes import DType
from identic.protocol.ops.accumulate import contraction
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_dtype, need_rank, need_shape
from identic.protocol.ops.folds import Element, Fold, Operand
from identic.protocol.tensors import TensorType, broadcast_index, broadcast_shapes


class Matmul(Operator):
    """``matmul(a, b)`` on float32, both of rank 2 or more."""

    name = "matmul"
    code = 48
    arity = 2

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(batch..., M, K) and (batch..., K, N) give (batch..., M, N)."""
        del attributes
        a, b = inputs
        for kind in inputs:
            need_dtype(self.name, kind, (DType.FLOAT32,))
            need_rank(self.name, kind, 2)
        inner = a.shape[-1] == b.shape[-2]
        need_shape(self.name, inner, got=f"{a} and {b}", want="equal inner lengths")
        batch = broadcast_shapes([a.shape[:-2], b.shape[:-2]])
        return TensorType.of(DType.FLOAT32, (*batch, a.shape[-2], b.shape[-1]))

    def fold(self, call: Call, element: int) -> Fold:
        """Chains of 256 fused products; their sums of sixteen; the sum of those."""
        a, b = (t.shape for t in call.inputs)
        length, rows, columns = a[-1], a[-2], b[-1]
        place, column = divmod(element, columns)
        outer, row = divmod(place, rows)
        batch = call.output.shape[:-2]
        left = (broadcast_index(outer, batch, a[:-2]) * rows + row) * length
        right = broadcast_index(outer, batch, b[:-2]) * length * columns + column

        def factors(k: int) -> tuple[Operand, Operand]:
            return Element(0, left + k), Element(1, right + k * columns)

        return contraction(length, factors)

    def cost(self, call: Call) -> Cost:
        """Two operations a product."""
        plain = super().cost(call)
        return Cost(flops=2 * call.output.elements * call.inputs[0].shape[-1], bytes=plain.bytes)


OPERATORS: tuple[Operator, ...] = (Matmul(),)
"""Rows of the table."""
