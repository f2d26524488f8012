"""Reference twin of the elementwise operators. Rules: NUM-1 to NUM-9, OP-2."""

from __future__ import annotations

import operator
from collections.abc import Callable

from identic.kernels.words import Reference, Words, broadcast
from identic.protocol.arithmetic import f32, functions, integers
from identic.protocol.arithmetic.integers import Integer
from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call

INTEGER: dict[DType, Integer] = {
    DType.INT64: integers.INT64,
    DType.INT32: integers.INT32,
    DType.UINT8: integers.UINT8,
    DType.BOOL: Integer(1, signed=False),
}

UNARY: dict[str, Callable[[int], int]] = {
    "neg": f32.neg,
    "abs": f32.absolute,
    "exp": functions.exp,
    "log": functions.log,
    "tanh": functions.tanh,
    "erf": functions.erf,
    "sigmoid": functions.sigmoid,
    "sin": functions.sin,
    "cos": functions.cos,
    "sqrt": f32.sqrt,
    "rsqrt": lambda x: f32.div(f32.ONE, f32.sqrt(x)),
    "not": lambda x: 1 - x,
}
FLOAT: dict[str, Callable[[int, int], int]] = {
    "add": f32.add,
    "sub": f32.sub,
    "mul": f32.mul,
    "div": f32.div,
    "maximum": f32.maximum,
    "minimum": f32.minimum,
    "eq": f32.eq,
    "ne": f32.ne,
    "lt": f32.lt,
    "le": f32.le,
    "gt": f32.gt,
    "ge": f32.ge,
}
VALUES: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "maximum": max,
    "minimum": min,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": min,
    "or": max,
}


def unary(call: Call, inputs: list[Words]) -> Words:
    """One function of each element."""
    function = UNARY[call.op.name]
    return [function(x) for x in inputs[0]]


def binary(call: Call, inputs: list[Words]) -> Words:
    """One function of each pair, after broadcasting."""
    dtype, result = call.inputs[0].dtype, call.output
    pairs = zip(
        *(
            broadcast(values, kind.shape, result.shape)
            for values, kind in zip(inputs, call.inputs, strict=True)
        ),
        strict=True,
    )
    if dtype is DType.FLOAT32:
        function = FLOAT[call.op.name]
        return [function(a, b) for a, b in pairs]
    kind, combine = INTEGER[dtype], VALUES[call.op.name]
    target = INTEGER[result.dtype]
    return [target.word(combine(kind.value(a), kind.value(b))) for a, b in pairs]


def where(call: Call, inputs: list[Words]) -> Words:
    """The second operand's element where the first's is true, else the third's."""
    columns = (
        broadcast(values, kind.shape, call.output.shape)
        for values, kind in zip(inputs, call.inputs, strict=True)
    )
    return [a if condition else b for condition, a, b in zip(*columns, strict=True)]


def cast(call: Call, inputs: list[Words]) -> Words:
    """Each element as another type (NUM-5)."""
    source, target = call.inputs[0].dtype, call.output.dtype
    if source is target:
        return list(inputs[0])
    if source.is_float:
        numbers = inputs[0] if source is DType.FLOAT32 else [f32.from_bf16(x) for x in inputs[0]]
        return [_from_float(x, target) for x in numbers]
    return [_from_integer(INTEGER[source].value(x), target) for x in inputs[0]]


def _from_float(x: int, target: DType) -> int:
    if target is DType.FLOAT32:
        return x
    if target is DType.BFLOAT16:
        return f32.to_bf16(x)
    if target is DType.INT64:
        return integers.INT64.word(f32.to_int64(x))
    if target is DType.INT32:
        return integers.INT32.word(f32.to_int32(x))
    return f32.to_uint8(x) if target is DType.UINT8 else f32.to_bool(x)


def _from_integer(value: int, target: DType) -> int:
    if target is DType.FLOAT32:
        return f32.from_int(value)
    if target is DType.BFLOAT16:
        return f32.to_bf16(f32.from_int(value))
    return int(value != 0) if target is DType.BOOL else INTEGER[target].word(value)


REFERENCE: dict[str, Reference] = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys({*FLOAT, *VALUES}, binary),
    "where": where,
    "cast": cast,
}
"""Operator names and their reference twins."""
