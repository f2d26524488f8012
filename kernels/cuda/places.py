"""Strided operands for kernels that count over a flat number of elements.

The other half of ``common/cuda_places.h``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from identic.kernels.cuda.device import Words

AXES = 8
"""Axes of a tensor, at most."""

_SHORT = 1 << 31


@dataclass(frozen=True)
class Places:
    """A shape with the strides of several operands, its axes merged where all step evenly."""

    lengths: tuple[int, ...]
    """Lengths of the axes, outermost first; none is 1 unless it is the only one."""
    steps: tuple[tuple[int, ...], ...]
    """Strides of each operand, in elements."""

    @classmethod
    def of(cls, shape: Sequence[int], *operands: Sequence[int]) -> Places:
        """Merge the axes of ``shape``; each operand has one stride an axis."""
        merged: list[tuple[int, tuple[int, ...]]] = []
        for length, *steps in zip(shape, *operands, strict=True):
            if length == 1:
                continue
            if merged and merged[-1][1] == tuple(s * length for s in steps):
                merged[-1] = (merged[-1][0] * length, tuple(steps))
            else:
                merged.append((length, tuple(steps)))
        if not merged:
            merged = [(1, (0,) * len(operands))]
        return cls(
            tuple(length for length, _ in merged),
            tuple(tuple(steps[o] for _, steps in merged) for o in range(len(operands))),
        )

    @property
    def elements(self) -> int:
        """How many elements the shape has."""
        return math.prod(self.lengths)

    @property
    def arguments(self) -> tuple[int, Words, Words, Words]:
        """Rank, lengths, multipliers and strides, as kernels take them."""
        multipliers = tuple(multiplier(n) for n in self.lengths)
        flat = [step for steps in self.steps for step in (*steps, *(0,) * (AXES - len(steps)))]
        return (
            len(self.lengths),
            Words(self.lengths, AXES),
            Words(multipliers, AXES),
            Words(tuple(flat), AXES * len(self.steps)),
        )


def multiplier(length: int) -> int:
    """For ``idn_quotient``: by what a number below 2^31 is multiplied to be divided by a length."""
    if not 2 <= length < _SHORT:
        return -1
    power = 1 << (length - 1).bit_length()
    return (power - length << 32) // length + 1
