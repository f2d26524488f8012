"""Reference twin of sorted positions. Rule: OP-31."""

from __future__ import annotations

from identic.kernels.reduce.reference import INTEGER
from identic.kernels.words import Reference, Words
from identic.protocol.arithmetic import f32
from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call


def value(dtype: DType, word: int) -> int:
    """A number that grows with the element: +0 and -0 are one, and so are all NaNs, on top."""
    if dtype is not DType.FLOAT32:
        return INTEGER[dtype].value(word)
    if f32.is_nan(word):
        return 1 << 32
    return word if word < f32.NEGATIVE_ZERO else f32.NEGATIVE_ZERO - word


def ordered(call: Call, words: Words, count: int, *, descending: bool) -> Words:
    """The first ``count`` positions of each row in order."""
    kind = call.inputs[0]
    length = kind.shape[-1]
    sign = -1 if descending else 1
    out: Words = []
    for first in range(0, len(words), max(1, length)):
        keys = [sign * value(kind.dtype, x) for x in words[first : first + length]]
        # Python's sort is stable: equal elements stay as they come.
        out += sorted(range(length), key=keys.__getitem__)[:count]
    return out


def argsort(call: Call, inputs: list[Words]) -> Words:
    """Positions in order."""
    descending = bool(call.integer("descending"))
    return ordered(call, inputs[0], call.inputs[0].shape[-1], descending=descending)


def argtopk(call: Call, inputs: list[Words]) -> Words:
    """Positions of the largest or smallest in order."""
    return ordered(call, inputs[0], call.integer("k"), descending=bool(call.integer("largest")))


REFERENCE: dict[str, Reference] = {"argsort": argsort, "argtopk": argtopk}
"""Operator names and their reference twins."""
