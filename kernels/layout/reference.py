"""Reference twin of the operators that move elements or create constant ones. Rule: NUM-2."""

from __future__ import annotations

import math

from identic.kernels.words import Reference, Words, broadcast, places, position
from identic.protocol.ops.base import Call


def reshape(call: Call, inputs: list[Words]) -> Words:
    """The same elements in the same order."""
    del call
    return list(inputs[0])


def permute(call: Call, inputs: list[Words]) -> Words:
    """Axis ``i`` of the result is axis ``axes[i]`` of the operand."""
    axes, shape = call.integers("axes"), call.inputs[0].shape
    out = []
    for place in places(call.output.shape):
        source = [place[axes.index(axis)] for axis in range(len(shape))]
        out.append(inputs[0][position(source, shape)])
    return out


def expand(call: Call, inputs: list[Words]) -> Words:
    """Repetition along axes of length 1 and new leading axes."""
    return list(broadcast(inputs[0], call.inputs[0].shape, call.output.shape))


def slices(call: Call, inputs: list[Words]) -> Words:
    """Every ``step``-th place from ``start``."""
    start, step = call.integers("start"), call.integers("step")
    shape = call.inputs[0].shape
    return [
        inputs[0][position([s + t * i for i, s, t in zip(p, start, step, strict=True)], shape)]
        for p in places(call.output.shape)
    ]


def concat(call: Call, inputs: list[Words]) -> Words:
    """Operands one after the other along an axis."""
    axis = call.integer("axis")
    rows: Words = []
    lead = math.prod(call.output.shape[:axis])
    for row in range(lead):
        for words, kind in zip(inputs, call.inputs, strict=True):
            piece = kind.elements // lead
            rows += words[row * piece : (row + 1) * piece]
    return rows


def pad(call: Call, inputs: list[Words]) -> Words:
    """The operand in the middle of a constant."""
    before, shape = call.integers("before"), call.inputs[0].shape
    value = call.inputs[0].dtype.pattern(call.integer("value"))
    out = []
    for place in places(call.output.shape):
        source = [i - b for i, b in zip(place, before, strict=True)]
        inside = all(0 <= i < n for i, n in zip(source, shape, strict=True))
        out.append(inputs[0][position(source, shape)] if inside else value)
    return out


def full(call: Call, inputs: list[Words]) -> Words:
    """One word everywhere."""
    del inputs
    return [call.output.dtype.pattern(call.integer("word"))] * call.output.elements


def iota(call: Call, inputs: list[Words]) -> Words:
    """Integers at equal distances, wrapped around."""
    del inputs
    start, step = call.integer("start"), call.integer("step")
    return [call.output.dtype.pattern(start + step * i) for i in range(call.integer("count"))]


REFERENCE: dict[str, Reference] = {
    "reshape": reshape,
    "permute": permute,
    "expand": expand,
    "slice": slices,
    "concat": concat,
    "pad": pad,
    "full": full,
    "iota": iota,
}
"""Operator names and their reference twins."""
