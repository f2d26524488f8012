"""Shapes of tensors given as lists of words, for the reference twins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from identic.protocol.ops.base import Call

Words = list[int]
Reference = Callable[[Call, list[Words]], Words]
"""A reference twin: the call and the words of each input give the words of the result."""


def places(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every index of a tensor of this shape, in row-major order."""
    return product(*(range(n) for n in shape))


def position(place: Sequence[int], shape: Sequence[int]) -> int:
    """Flat position of the element at ``place``."""
    flat = 0
    for i, n in zip(place, shape, strict=True):
        flat = flat * n + i
    return flat


def broadcast(values: Words, shape: Sequence[int], result: Sequence[int]) -> Words:
    """The words of an operand, repeated to the shape of the result."""
    if tuple(shape) == tuple(result):
        return values
    lead = len(result) - len(shape)
    return [
        values[position([0 if n == 1 else i for i, n in zip(p[lead:], shape, strict=True)], shape)]
        for p in places(result)
    ]
