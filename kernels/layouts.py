"""Where a value's elements lie in a buffer: offset, shape and strides, in elements.

Views (reshape, permute, expand, slice) are layouts over the buffer of the value they show;
nothing is copied until a kernel needs its elements next to each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from identic.protocol.tensors import Shape, strides


@dataclass(frozen=True)
class Layout:
    """The elements of a value inside buffer ``slot``."""

    slot: int
    offset: int
    shape: Shape
    strides: Shape

    @classmethod
    def dense(cls, slot: int, shape: Sequence[int]) -> Layout:
        """Row-major over a whole buffer."""
        return cls(slot, 0, tuple(shape), strides(shape))

    @property
    def elements(self) -> int:
        """Number of elements shown."""
        return math.prod(self.shape)

    @property
    def row_major(self) -> bool:
        """Whether the elements lie next to each other, in order."""
        want = strides(self.shape)
        steps = zip(self.shape, self.strides, want, strict=True)
        return self.elements == 0 or all(s == w for n, s, w in steps if n != 1)

    def permuted(self, axes: Sequence[int]) -> Layout:
        """Axis ``i`` of the result is axis ``axes[i]``."""
        shape = tuple(self.shape[a] for a in axes)
        return replace(self, shape=shape, strides=tuple(self.strides[a] for a in axes))

    def expanded(self, shape: Sequence[int]) -> Layout:
        """Repeated to ``shape``."""
        return replace(self, shape=tuple(shape), strides=self.over(shape))

    def over(self, shape: Sequence[int]) -> Shape:
        """Strides over a shape this one broadcasts to: 0 along what repeats."""
        lead = len(shape) - len(self.shape)
        kept = (0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        return (*(0,) * lead, *kept)

    def sliced(self, start: Sequence[int], stop: Sequence[int], step: Sequence[int]) -> Layout:
        """Every ``step``-th place from ``start`` to before ``stop``, along each axis."""
        offset = self.offset + sum(a * s for a, s in zip(start, self.strides, strict=True))
        bounds = zip(start, stop, step, strict=True)
        shape = tuple(-(-(b - a) // c) for a, b, c in bounds)
        if not math.prod(shape):
            return Layout(self.slot, 0, shape, strides(shape))
        moved = tuple(s * c for s, c in zip(self.strides, step, strict=True))
        return Layout(self.slot, offset, shape, moved)

    def reshaped(self, shape: Sequence[int]) -> Layout | None:
        """The same elements as another shape, or ``None`` where no strides give it."""
        if self.row_major:
            return Layout(self.slot, self.offset, tuple(shape), strides(shape))
        runs = _runs(self.shape, self.strides)
        steps: list[int] = []
        run_length, run_stride = 1, 0
        for n in reversed(shape):
            if n == 1:
                steps.append(0)
                continue
            if run_length == 1:
                run_length, run_stride = runs.pop()
            if run_length % n:
                return None
            steps.append(run_stride)
            run_length, run_stride = run_length // n, run_stride * n
        return Layout(self.slot, self.offset, tuple(shape), tuple(reversed(steps)))


def _runs(shape: Sequence[int], steps: Sequence[int]) -> list[tuple[int, int]]:
    """Axes merged where one follows the other in memory: (length, stride), outermost first."""
    runs: list[tuple[int, int]] = []
    for n, s in zip(shape, steps, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    return runs


def one_stride(shape: Sequence[int], steps: Sequence[int]) -> int | None:
    """One stride for all axes together, or ``None`` where there is none."""
    axes = [(n, s) for n, s in zip(shape, steps, strict=True) if n != 1]
    if not axes:
        return 0
    if any(outer != n * inner for (_, outer), (n, inner) in pairwise(axes)):
        return None
    return axes[-1][1]
