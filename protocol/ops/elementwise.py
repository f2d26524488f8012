"""Operators that compute each element from the elements at the same place.

Operands broadcast as in numpy (OP-2). The functions are those of NUM-1 to NUM-9.
"""

from __future__ import annotations

from typing import cast

from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import dtype_attribute, need_dtype, need_equal_dtypes
from identic.protocol.ops.folds import Element, Fold, single
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.tensors import TensorType, broadcast_index, broadcast_shapes

FUNCTION_FLOPS = 16
"""What one correctly rounded function counts for in the cost of a program."""

FUNCTIONS = frozenset({"exp", "log", "tanh", "erf", "sigmoid", "sin", "cos"})

_F = (DType.FLOAT32,)
_FI = (DType.FLOAT32, DType.INT64, DType.INT32)
_FIB = (*_FI, DType.BOOL)
_B = (DType.BOOL,)


def _operand(call: Call, number: int, flat: int) -> Element:
    """The element of input ``number`` that meets position ``flat`` of the result."""
    shape = call.inputs[number].shape
    return Element(number, broadcast_index(flat, call.output.shape, shape))


class Unary(Operator):
    """One operand; the result has its type."""

    arity = 1
    allowed: tuple[DType, ...] = _F

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The operand's type."""
        del attributes
        need_dtype(self.name, inputs[0], self.allowed)
        return inputs[0]

    def fold(self, call: Call, element: int) -> Fold:
        """One step."""
        return single(f"{self.name}.{call.inputs[0].dtype.label}", Element(0, element))

    def cost(self, call: Call) -> Cost:
        """A function counts ``FUNCTION_FLOPS``, anything else one."""
        plain = super().cost(call)
        weight = FUNCTION_FLOPS if self.name in FUNCTIONS else 1
        return Cost(flops=plain.flops * weight, bytes=plain.bytes)


class Binary(Operator):
    """Two operands of one type, broadcast; arithmetic keeps the type."""

    arity = 2
    allowed: tuple[DType, ...] = _FI

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The primitive's result type over the common shape."""
        del attributes
        a, b = inputs
        need_dtype(self.name, a, self.allowed)
        need_equal_dtypes(self.name, a, b)
        result = PRIMITIVES[f"{self.name}.{a.dtype.label}"].result
        return TensorType.of(result or a.dtype, broadcast_shapes([a.shape, b.shape]))

    def fold(self, call: Call, element: int) -> Fold:
        """One step."""
        primitive = f"{self.name}.{call.inputs[0].dtype.label}"
        return single(primitive, _operand(call, 0, element), _operand(call, 1, element))


class Where(Operator):
    """``where(condition, a, b)``: the bits of ``a`` where the condition is true, else of ``b``."""

    name = "where"
    code = 32
    arity = 3

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The branches' type over the common shape."""
        del attributes
        condition, a, b = inputs
        need_dtype(self.name, condition, _B)
        need_equal_dtypes(self.name, a, b)
        return TensorType.of(a.dtype, broadcast_shapes([t.shape for t in inputs]))

    def fold(self, call: Call, element: int) -> Fold:
        """One selection."""
        return single("select", *(_operand(call, n, element) for n in range(3)))


class Cast(Operator):
    """Conversion to the element type with code ``dtype`` (NUM-5)."""

    name = "cast"
    code = 33
    arity = 1
    attributes = (("dtype", False),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The operand's shape with the new type."""
        return TensorType.of(dtype_attribute(self.name, attributes["dtype"][0]), inputs[0].shape)

    def fold(self, call: Call, element: int) -> Fold:
        """One conversion."""
        source, target = call.inputs[0].dtype, call.output.dtype
        return single(f"cast.{source.label}.{target.label}", Element(0, element))


def _unary(word: str, number: int, types: tuple[DType, ...] = _F) -> Operator:
    row = type(f"Unary_{word}", (Unary,), {"name": word, "code": number, "allowed": types})
    return cast(Operator, row())


def _binary(word: str, number: int, types: tuple[DType, ...]) -> Operator:
    row = type(f"Binary_{word}", (Binary,), {"name": word, "code": number, "allowed": types})
    return cast(Operator, row())


OPERATORS: tuple[Operator, ...] = (
    _unary("neg", 1),
    _unary("abs", 2),
    _unary("exp", 3),
    _unary("log", 4),
    _unary("tanh", 5),
    _unary("erf", 6),
    _unary("sigmoid", 7),
    _unary("sin", 8),
    _unary("cos", 9),
    _unary("sqrt", 10),
    _unary("rsqrt", 11),
    _unary("not", 12, _B),
    _binary("add", 16, _FI),
    _binary("sub", 17, _FI),
    _binary("mul", 18, _FI),
    _binary("div", 19, _F),
    _binary("maximum", 20, _FI),
    _binary("minimum", 21, _FI),
    _binary("eq", 22, _FIB),
    _binary("ne", 23, _FIB),
    _binary("lt", 24, _FI),
    _binary("le", 25, _FI),
    _binary("gt", 26, _FI),
    _binary("ge", 27, _FI),
    _binary("and", 28, _B),
    _binary("or", 29, _B),
    Where(),
    Cast(),
)
"""Rows of the table."""
