"""The phases of a convolution's strides, for ``conv_dx``: the places that meet the same taps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Axis = Sequence[int]
"""Size, window, stride, dilation, before, count."""


@dataclass(frozen=True)
class Phase:
    """Every ``stride``-th place of an axis, as places of windows that lie beside each other.

    Attributes:
        first: the first place.
        places: how many there are.
        tap: the first tap that meets a window here.
        apart: taps from one such tap to the next.
        taps: how many there are.
        dilation: windows from the one that a tap meets to that of the next.
        before: the window that tap meets at the first place.
    """

    first: int
    places: int
    tap: int
    apart: int
    taps: int
    dilation: int
    before: int

    @classmethod
    def of(cls, axis: Axis, first: int) -> Phase:
        """The phase of a place."""
        size, window, stride, dilation, before, _ = axis
        places, common = (size - 1 - first) // stride + 1, math.gcd(stride, dilation)
        apart = stride // common
        met = [t for t in range(apart) if (first + before - t * dilation) % stride == 0]
        if not met or met[0] >= window:
            return cls(first, places, 0, 1, 0, 1, 0)
        (tap,) = met
        taps = (window - 1 - tap) // apart + 1
        at = (first + before - tap * dilation) // stride
        return cls(first, places, tap, apart, taps, dilation // common, at)

    @property
    def met(self) -> range:
        """The taps that meet a window."""
        return range(self.tap, self.tap + self.taps * self.apart, self.apart)

    def axis(self, windows: int) -> Axis:
        """Size, window, stride, dilation, before and count, as of an axis of these places."""
        return (self.places, self.taps, 1, self.dilation, self.before, windows)


def phases(axis: Axis) -> list[Phase]:
    """The phases of an axis, first those of its first places."""
    return [Phase.of(axis, first) for first in range(min(axis[0], axis[2]))]


def most_steps(
    outputs: int, windows: tuple[int, int], pair: tuple[Phase, Phase], chunk: int
) -> int:
    """Steps (output, tap) that a chunk of ``chunk`` steps of all has of a phase, at most."""
    down, across = (np.isin(np.arange(n), p.met) for n, p in zip(windows, pair, strict=True))
    steps = np.tile((down[:, None] & across[None, :]).reshape(-1), outputs)
    firsts = np.arange(0, steps.size, chunk)
    return int(np.add.reduceat(steps, firsts, dtype=np.int64).max()) if steps.size else 0
