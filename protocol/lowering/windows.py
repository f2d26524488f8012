"""Lowering of convolutions and pools, which capture records under the table's own names.

Operands come first, then the operator's attributes in the order of the table.
"""

from __future__ import annotations

from identic.protocol.lowering.rules import Context, lowers
from identic.protocol.ops import TABLE


@lowers(
    "identic.conv",
    "identic.conv_dx",
    "identic.conv_dw",
    "identic.max_pool",
    "identic.max_pool_indices",
    "identic.max_pool_dx",
    "identic.sum_pool",
    "identic.sum_pool_dx",
)
def windowed(c: Context) -> int:
    """The operator itself."""
    name = c.node.name.removeprefix("identic.")
    operator = TABLE[name]
    operands = [c.tensor(i) for i in range(operator.arity or 0)]
    attributes = {
        word: c.integers(position) if many else c.integer(position)
        for position, (word, many) in enumerate(operator.attributes, start=len(operands))
    }
    return c.builder.emit(name, *operands, **attributes)
