"""The operator table: everything a program may do.

Each operator states its operands, its result's type and, through its fold, the value of
every element of the result (``base.py``). A row's name and code are never used again for
another meaning; another numerics is another kernel set (NUM-20).

Spec: docs/spec/operators.md.
"""

from __future__ import annotations

from identic.protocol.ops import (
    convolution,
    creation,
    elementwise,
    indexing,
    matmul,
    pooling,
    random,
    scan,
    scatter,
    select,
    shape,
    sorting,
    sums,
)
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.kernel_set import KERNEL_SET

TABLE: dict[str, Operator] = {
    operator.name: operator
    for family in (
        elementwise.OPERATORS,
        sums.OPERATORS,
        select.OPERATORS,
        scan.OPERATORS,
        sorting.OPERATORS,
        matmul.OPERATORS,
        convolution.OPERATORS,
        pooling.OPERATORS,
        indexing.OPERATORS,
        scatter.OPERATORS,
        shape.OPERATORS,
        creation.OPERATORS,
        random.OPERATORS,
    )
    for operator in family
}
"""Every operator by name."""

__all__ = ["KERNEL_SET", "TABLE", "Call", "Cost", "Operator"]
