"""Lowering of elementwise operators and of tensors that are made from numbers."""

from __future__ import annotations

import math

from identic.protocol.dtypes import DType
from identic.protocol.graph import Ref
from identic.protocol.lowering.rules import Context, lowers

_RANK = {
    DType.BOOL: 0,
    DType.UINT8: 1,
    DType.INT32: 2,
    DType.INT64: 3,
    DType.BFLOAT16: 4,
    DType.FLOAT32: 5,
}

_LOGIC = {"and": "and", "or": "or", "xor": "ne"}


@lowers("neg", "abs", "exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "sqrt", "rsqrt")
def unary(c: Context) -> int:
    """A function of one float32 element."""
    if c.dtype != DType.FLOAT32:
        if c.node.name == "aten.neg" and c.dtype in (DType.INT64, DType.INT32):
            return c.builder.elementwise("sub", c.builder.full(c.dtype, 0), c.tensor(0))
        if c.node.name == "aten.abs" and c.dtype in (DType.INT64, DType.INT32):
            b, value, zero = c.builder, c.tensor(0), c.builder.full(c.dtype, 0)
            below = b.elementwise("lt", value, zero)
            return b.elementwise("where", below, b.elementwise("sub", zero, value), value)
        raise c.refuse(f"is defined on float32, not on {c.dtype.label}")
    return c.builder.emit(c.node.name.removeprefix("aten."), c.operand(0, DType.FLOAT32))


@lowers("logical_not", "bitwise_not")
def negation(c: Context) -> int:
    """The other truth value."""
    if c.node.name == "aten.bitwise_not" and c.dtype != DType.BOOL:
        raise c.refuse("is defined on bool only")
    return c.builder.emit("not", _truth(c, 0))


@lowers("isnan", "isinf")
def unusual(c: Context) -> int:
    """Whether an element is not equal to itself, or its magnitude is infinite."""
    b, value = c.builder, c.tensor(0)
    if b.dtype(value) not in (DType.FLOAT32, DType.BFLOAT16):
        return b.expand(b.full(DType.BOOL, 0), c.shape)
    wide = b.cast(value, DType.FLOAT32)
    if c.node.name == "aten.isnan":
        return b.elementwise("ne", wide, wide)
    return b.elementwise("eq", b.emit("abs", wide), b.full(DType.FLOAT32, math.inf))


@lowers("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor")
def logic(c: Context) -> int:
    """And, or, either of truth values."""
    name = c.node.name.removeprefix("aten.")
    if c.dtype != DType.BOOL:
        raise c.refuse("is defined on bool only")
    return c.builder.elementwise(_LOGIC[name.rpartition("_")[2]], _truth(c, 0), _truth(c, 1))


def _truth(c: Context, position: int) -> int:
    """An operand as a truth value: whether it differs from zero."""
    argument = c.argument(position)
    if not isinstance(argument, Ref):
        return c.builder.full(DType.BOOL, bool(c.scalar(position)))
    return c.builder.cast(c.values[argument.index], DType.BOOL)


@lowers("add", "sub", "mul", "div", "maximum", "minimum")
def arithmetic(c: Context) -> int:
    """Arithmetic of two operands in the element type of the result."""
    name, b = c.node.name.removeprefix("aten."), c.builder
    if c.argument(2, "rounding_mode") is not None and name == "div":
        raise c.refuse(
            "rounding division is not an operator", "use div, or integer shapes known at capture."
        )
    if c.dtype == DType.BOOL:
        if name not in ("mul", "add", "maximum", "minimum"):
            raise c.refuse("is not defined on bool")
        word = "and" if name in ("mul", "minimum") else "or"
        return b.elementwise(word, c.operand(0, DType.BOOL), c.operand(1, DType.BOOL))
    left, right = c.operand(0, c.dtype), c.operand(1, c.dtype)
    if name in ("add", "sub"):
        alpha = c.scalar(2, "alpha", 1)
        if alpha != 1:
            right = b.elementwise("mul", right, b.full(c.dtype, alpha))
    return b.elementwise(name, left, right)


@lowers("eq", "ne", "lt", "le", "gt", "ge")
def comparison(c: Context) -> int:
    """A comparison, in the wider element type of the two operands."""
    dtype = max((_kind(c, 0), _kind(c, 1)), key=lambda d: _RANK[d])
    name = c.node.name.removeprefix("aten.")
    if dtype == DType.UINT8 or (dtype == DType.BOOL and name not in ("eq", "ne")):
        dtype = DType.INT32
    if dtype == DType.BFLOAT16:
        dtype = DType.FLOAT32
    return c.builder.elementwise(name, c.operand(0, dtype), c.operand(1, dtype))


def _kind(c: Context, position: int) -> DType:
    """Element type an operand brings to a comparison; a number takes its partner's kind."""
    argument = c.argument(position)
    if isinstance(argument, Ref):
        return c.graph.type(argument.index).dtype
    if isinstance(argument, float):
        return DType.FLOAT32
    return DType.BOOL if isinstance(argument, bool) else DType.UINT8


@lowers("sign", "sgn")
def sign(c: Context) -> int:
    """1, 0 or -1: whether an element is above zero less whether it is below."""
    b, value = c.builder, c.tensor(0)
    zero = b.full(c.dtype, 0)
    above, below = b.elementwise("gt", value, zero), b.elementwise("lt", value, zero)
    return b.elementwise("sub", b.cast(above, c.dtype), b.cast(below, c.dtype))


@lowers("where")
def where(c: Context) -> int:
    """One of two operands, by a truth value."""
    return c.builder.elementwise("where", c.tensor(0), c.operand(1, c.dtype), c.operand(2, c.dtype))


@lowers("masked_fill")
def masked_fill(c: Context) -> int:
    """A number where a mask is set."""
    return c.builder.elementwise("where", c.tensor(1), c.operand(2, c.dtype), c.tensor(0))


@lowers("_to_copy", "prims.convert_element_type")
def convert(c: Context) -> int:
    """Another element type."""
    return c.builder.cast(c.tensor(0), c.dtype)


# ---- tensors made from numbers ----------------------------------------------------------------


@lowers("full", "full_like", "new_full", "scalar_tensor", "fill")
def full(c: Context) -> int:
    """One number everywhere."""
    position = (
        0 if c.node.name == "aten.scalar_tensor" else 2 if c.node.name == "aten.new_full" else 1
    )
    argument = c.argument(position, "fill_value")
    if isinstance(argument, Ref):
        return c.builder.expand(c.builder.cast(c.values[argument.index], c.dtype), c.shape)
    return c.builder.expand(c.builder.full(c.dtype, c.scalar(position, "fill_value")), c.shape)


@lowers(
    "empty",
    "empty_like",
    "new_empty",
    "empty_permuted",
    "empty_strided",
    "new_empty_strided",
    "zero",
)
def zeros(c: Context) -> int:
    """Memory that is about to be written counts as zeros."""
    return c.builder.expand(c.builder.full(c.dtype, 0), c.shape)


@lowers("copy")
def copy(c: Context) -> int:
    """The second operand, repeated to the shape of the first."""
    return c.builder.expand(c.builder.cast(c.tensor(1), c.dtype), c.shape)


@lowers("arange")
def arange(c: Context) -> int:
    """A ladder of numbers with whole start and step."""
    overload, b = c.node.overload, c.builder
    start = 0 if overload == "default" else c.scalar(0)
    step = c.scalar(2, "step", 1) if overload != "default" else 1
    if start != int(start) or step != int(step):
        raise c.refuse(
            "start and step are whole numbers", "make the table with numpy outside the step."
        )
    return b.cast(b.iota(c.shape[0], int(start), int(step)), c.dtype)


@lowers("identic.uniform")
def uniform(c: Context) -> int:
    """Random numbers in [0, 1) of one stream of the step (CAP-8)."""
    return c.builder.emit("random_uniform", c.tensor(0), shape=c.integers(2), stream=c.integer(1))
