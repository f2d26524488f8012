"""Reference twin of writes at places read from an index. Rules: OP-4, OP-32, NUM-14."""

from __future__ import annotations

import math

from identic.kernels.index.reference import CHUNK, signed
from identic.kernels.words import Reference, Words, places, position
from identic.protocol.arithmetic import f32
from identic.protocol.ops.base import Call


def set_rows(call: Call, inputs: list[Words]) -> Words:
    """Rows replaced one after the other."""
    out, source = list(inputs[0]), inputs[2]
    width = math.prod(call.output.shape[1:])
    for t, row in enumerate(signed(call, 1, inputs[1])):
        if 0 <= row < call.output.shape[0]:
            out[row * width : (row + 1) * width] = source[t * width : (t + 1) * width]
    return out


def scatter(call: Call, inputs: list[Words]) -> Words:
    """Elements replaced one after the other."""
    out, shape, axis = list(inputs[0]), call.output.shape, call.integer("axis")
    named = zip(signed(call, 1, inputs[1]), inputs[2], places(call.inputs[1].shape), strict=True)
    for v, word, place in named:
        if 0 <= v < shape[axis]:
            out[position([v if a == axis else i for a, i in enumerate(place)], shape)] = word
    return out


def scatter_add(call: Call, inputs: list[Words]) -> Words:
    """Line by line along the axis: a partial sum a chunk of 256 indices, added in order."""
    out, shape, axis = list(inputs[0]), call.output.shape, call.integer("axis")
    at = call.inputs[1].shape
    targets = signed(call, 1, inputs[1])
    for line in places([1 if a == axis else n for a, n in enumerate(at)]):
        for first in range(0, at[axis], CHUNK):
            partial = [f32.ZERO] * shape[axis]
            for j in range(first, min(first + CHUNK, at[axis])):
                here = position([j if a == axis else i for a, i in enumerate(line)], at)
                if 0 <= targets[here] < shape[axis]:
                    partial[targets[here]] = f32.add(partial[targets[here]], inputs[2][here])
            for v, word in enumerate(partial):
                there = position([v if a == axis else i for a, i in enumerate(line)], shape)
                out[there] = f32.add(out[there], word)
    return out


REFERENCE: dict[str, Reference] = {
    "set_rows": set_rows,
    "scatter": scatter,
    "scatter_add": scatter_add,
}
"""Operator names and their reference twins."""
