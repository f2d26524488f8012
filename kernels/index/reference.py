"""Reference twin of the operators that read indices. Rules: OP-4, NUM-14."""

from __future__ import annotations

import math

from identic.kernels.words import Reference, Words, places, position
from identic.protocol.arithmetic import f32
from identic.protocol.ops.base import Call

CHUNK = 256


def signed(call: Call, number: int, words: Words) -> Words:
    """Values of an index input."""
    return [call.inputs[number].dtype.signed(w) for w in words]


def take_rows(call: Call, inputs: list[Words]) -> Words:
    """A row of the table for each index; zeros outside it."""
    table = call.inputs[0].shape
    width = math.prod(table[1:])
    out: Words = []
    for v in signed(call, 1, inputs[1]):
        inside = 0 <= v < table[0]
        out += inputs[0][v * width : (v + 1) * width] if inside else [0] * width
    return out


def gather(call: Call, inputs: list[Words]) -> Words:
    """Along one axis the indexed element, along the others the same place."""
    shape, axis = call.inputs[0].shape, call.integer("axis")
    out = []
    for v, place in zip(signed(call, 1, inputs[1]), places(call.output.shape), strict=True):
        source = [v if a == axis else i for a, i in enumerate(place)]
        out.append(inputs[0][position(source, shape)] if 0 <= v < shape[axis] else 0)
    return out


def take_windows(call: Call, inputs: list[Words]) -> Words:
    """Consecutive elements from each start; zero from a negative start and beyond the end."""
    tokens, length = inputs[0], call.integer("length")
    return [
        tokens[v + j] if v >= 0 and v + j < len(tokens) else 0
        for v in signed(call, 1, inputs[1])
        for j in range(length)
    ]


def add_rows(call: Call, inputs: list[Words]) -> Words:
    """Scatter-add of rows: a partial sum a chunk of 256 positions, added in order."""
    init, index, source = inputs
    width = math.prod(call.output.shape[1:])
    out = list(init)
    targets = signed(call, 1, index)
    for first in range(0, len(targets), CHUNK):
        partial = [f32.ZERO] * len(out)
        for t in range(first, min(first + CHUNK, len(targets))):
            if 0 <= targets[t] < call.output.shape[0]:
                for i in range(width):
                    at = targets[t] * width + i
                    partial[at] = f32.add(partial[at], source[t * width + i])
        out = [f32.add(a, b) for a, b in zip(out, partial, strict=True)]
    return out


REFERENCE: dict[str, Reference] = {
    "take_rows": take_rows,
    "gather": gather,
    "take_windows": take_windows,
    "add_rows": add_rows,
}
"""Operator names and their reference twins."""
