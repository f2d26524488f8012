"""Tensors made from attributes alone."""

from __future__ import annotations

from identic.protocol.ops.base import Call, Operator
from identic.protocol.ops.checks import (
    dtype_attribute,
    need_attribute,
    need_dtype,
    shape_attribute,
    word_attribute,
)
from identic.protocol.ops.folds import Constant, Fold, single
from identic.protocol.ops.primitives import INDEX_DTYPES, INTEGERS
from identic.protocol.tensors import TensorType


class Full(Operator):
    """Every element is ``word``."""

    name = "full"
    code = 80
    arity = 0
    attributes = (("dtype", False), ("shape", True), ("word", False))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The stated type."""
        del inputs
        dtype = dtype_attribute(self.name, attributes["dtype"][0])
        word_attribute(self.name, "word", dtype, attributes["word"][0])
        return TensorType.of(dtype, shape_attribute(self.name, attributes["shape"]))

    def word(self, call: Call) -> int:
        """The word of every element."""
        return word_attribute(self.name, "word", call.output.dtype, call.integer("word"))

    def fold(self, call: Call, element: int) -> Fold:
        """One copy."""
        del element
        return single("copy", Constant(self.word(call)))


class Iota(Operator):
    """``start + step * i`` for ``i`` in ``[0, count)``, wrapped around (NUM-9)."""

    name = "iota"
    code = 81
    arity = 0
    attributes = (("count", False), ("dtype", False), ("start", False), ("step", False))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """``count`` integers."""
        del inputs
        (count,) = attributes["count"]
        dtype = dtype_attribute(self.name, attributes["dtype"][0])
        need_attribute(self.name, "count", count >= 0, got=count, want=">= 0")
        result = TensorType.of(dtype, (count,))
        need_dtype(self.name, result, INDEX_DTYPES)
        return result

    def fold(self, call: Call, element: int) -> Fold:
        """One copy of a number computed from the attributes."""
        value = call.integer("start") + call.integer("step") * element
        return single("copy", Constant(INTEGERS[call.output.dtype].word(value)))


OPERATORS: tuple[Operator, ...] = (Full(), Iota())
"""Rows of the table."""
