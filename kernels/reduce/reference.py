"""Reference twin of the reductions along an axis. Rules: NUM-4, NUM-9, NUM-12, NUM-13."""

from __future__ import annotations

import math
from collections.abc import Callable

from identic.kernels.words import Reference, Words
from identic.protocol.arithmetic import f32, integers
from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call

LANES = 64
BLOCK = 4096
CHUNK = 256

Add = Callable[[int, int], int]

INTEGER = {DType.INT64: integers.INT64, DType.INT32: integers.INT32}


def adder(dtype: DType) -> Add:
    """Addition on words of a type."""
    if dtype is DType.FLOAT32:
        return f32.add
    kind = INTEGER[dtype]
    return lambda a, b: kind.word(a + b)


def row_sum(row: Words, add: Add) -> int:
    """Sum of a row in 64 lanes; a long row in blocks."""
    if len(row) > BLOCK:
        blocks = [row_sum(row[i : i + BLOCK], add) for i in range(0, len(row), BLOCK)]
        return row_sum(blocks, add)
    lanes = [0] * LANES
    for i, x in enumerate(row):
        lanes[i % LANES] = add(lanes[i % LANES], x)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [add(lanes[i], lanes[i + half]) for i in range(half)]
    return lanes[0]


def column_sum(column: Words, add: Add) -> int:
    """Sum of a column in chunks of 256, in order."""
    total = None
    for first in range(0, len(column), CHUNK):
        chunk = 0
        for x in column[first : first + CHUNK]:
            chunk = add(chunk, x)
        total = chunk if total is None else add(total, chunk)
    return 0 if total is None else total


def rows(call: Call, words: Words) -> list[Words]:
    """The rows of the operand along its last axis."""
    length = call.inputs[0].shape[-1]
    return [words[i * length : (i + 1) * length] for i in range(call.output.elements)]


def sum_last(call: Call, inputs: list[Words]) -> Words:
    """Sum over the last axis."""
    add = adder(call.output.dtype)
    return [row_sum(row, add) for row in rows(call, inputs[0])]


def sum_first(call: Call, inputs: list[Words]) -> Words:
    """Sum over the first axis."""
    add = adder(call.output.dtype)
    width = math.prod(call.inputs[0].shape[1:])
    return [column_sum(inputs[0][c::width], add) for c in range(width)]


def amax(call: Call, inputs: list[Words]) -> Words:
    """Maximum over the last axis."""
    dtype = call.output.dtype
    out = []
    for row in rows(call, inputs[0]):
        if dtype is DType.FLOAT32:
            best = f32.maximum(row[0], row[0])
            for x in row[1:]:
                best = f32.maximum(best, x)
        else:
            best = max(row, key=INTEGER[dtype].value)
        out.append(best)
    return out


def argmax(call: Call, inputs: list[Words]) -> Words:
    """Position of the first of the largest."""
    return [row.index(max(row)) for row in _ranks(call, inputs[0])]


def _ranks(call: Call, words: Words) -> list[Words]:
    """Each row's elements as integers in the order of amax."""
    dtype = call.inputs[0].dtype
    if dtype is not DType.FLOAT32:
        return [[INTEGER[dtype].value(x) for x in row] for row in rows(call, words)]
    return [[float_rank(x) for x in row] for row in rows(call, words)]


def float_rank(x: int) -> int:
    """All NaNs at the top, then by value, -0 just below +0."""
    if f32.is_nan(x):
        return 1 << 32
    return x if x < f32.NEGATIVE_ZERO else f32.NEGATIVE_ZERO - 1 - x


REFERENCE: dict[str, Reference] = {
    "sum_last": sum_last,
    "sum_first": sum_first,
    "amax": amax,
    "argmax": argmax,
}
"""Operator names and their reference twins."""
