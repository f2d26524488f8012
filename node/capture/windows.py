"""The operators with windows under names that tracing can record: ``identic::conv`` and so on.

They have types but no values: a traced step is lowered, never run. Attributes stand in the
order of the operator table, spelled out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from identic.protocol.dtypes import DType
from identic.protocol.ops import TABLE
from identic.protocol.program.types import Attribute
from identic.protocol.tensors import TensorType

OPERATORS = {
    "conv": 2,
    "conv_dx": 2,
    "conv_dw": 2,
    "max_pool": 1,
    "max_pool_indices": 1,
    "max_pool_dx": 2,
    "sum_pool": 1,
    "sum_pool_dx": 1,
}
"""Numbers of operands."""

_LIBRARY = torch.library.Library("identic", "FRAGMENT")  # type: ignore[no-untyped-call]


def _define(name: str, operands: int) -> None:
    """Declare one operator: its operands, then its attributes in order."""
    tensors = [f"Tensor x{i}" for i in range(operands)]
    names = [f"int{'[]' if many else ''} {word}" for word, many in TABLE[name].attributes]
    schema = f"{name}({', '.join([*tensors, *names])}) -> Tensor"
    _LIBRARY.define(schema)  # type: ignore[no-untyped-call]
    torch.library.register_fake(f"identic::{name}", _type_of(name, operands), lib=_LIBRARY)


def _type_of(name: str, operands: int) -> Callable[..., Tensor]:
    """What tracing makes of a call: a tensor of the type that the operator's rule infers."""
    operator = TABLE[name]

    def infer(*given: Any) -> Tensor:
        tensors, values = given[:operands], given[operands:]
        kinds = {torch.int64: DType.INT64}
        inputs = (TensorType.of(kinds.get(t.dtype, DType.FLOAT32), t.shape) for t in tensors)
        words = zip(operator.attributes, values, strict=True)
        attributes = (
            Attribute(word, tuple(int(v) for v in value) if many else (int(value),))
            for (word, many), value in words
        )
        result = operator.call(tuple(inputs), tuple(attributes)).output
        dtype = torch.int64 if result.dtype is DType.INT64 else tensors[0].dtype
        return tensors[0].new_empty(tuple(result.shape), dtype=dtype)  # type: ignore[no-any-return]

    return infer


for _name, _operands in OPERATORS.items():
    _define(_name, _operands)


def call(name: str, *tensors: Tensor, **attributes: int | Sequence[int]) -> Tensor:
    """Apply an operator by its name, attributes by theirs."""
    values = [attributes[word] for word, _ in TABLE[name].attributes]
    return getattr(torch.ops.identic, name)(*tensors, *values)  # type: ignore[no-any-return]


def each(values: Sequence[int] | int, axes: int) -> list[int]:
    """One value an axis; a single value counts for all."""
    found = [values] if isinstance(values, int) else [int(v) for v in values]
    return found * axes if len(found) == 1 else found
