"""Random shapes and attributes of convolutions and pools, small, with every kind of border."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]
Call = tuple[list[Shape], dict[str, Any]]
"""Shapes of the operands, and attributes."""


@dataclass(frozen=True)
class Windows:
    """Windows over one or two axes."""

    size: Shape
    window: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    after: Shape

    @property
    def counts(self) -> Shape:
        """Windows along each axis."""
        rows = zip(
            self.size,
            self.window,
            self.stride,
            self.dilation,
            self.before,
            self.after,
            strict=True,
        )
        return tuple((n + b + a - d * (k - 1) - 1) // s + 1 for n, k, s, d, b, a in rows)

    def attributes(self, *names: str) -> dict[str, Any]:
        """Attributes of every operator with windows, and those named."""
        kept = ("after", "before", "stride", *names)
        return {name: getattr(self, name) for name in kept}


def windows(source: random.Random, *, dilated: bool = True, small: bool = False) -> Windows:
    """Windows that fit; now and then they are far apart, or lie in the padding."""
    rank, most = source.choice([1, 2]), 2 if small else 6
    size: list[int] = []
    window: list[int] = []
    stride: list[int] = []
    dilation: list[int] = []
    before: list[int] = []
    after: list[int] = []
    for _ in range(rank):
        k = source.choice([1, 2, 3, source.randint(1, 5)])
        d = source.choice([1, 1, 2, 3]) if dilated else 1
        n = source.choice([0, 1, 2, source.randint(1, most), source.randint(1, most)])
        b, a = (source.choice([0, 0, 1, 2, source.randint(0, 5)]) for _ in "ba")
        a += max(0, d * (k - 1) + 1 - n - b - a)
        found = (n, k, source.choice([1, 1, 2, 3, 5]), d, b, a)
        for values, value in zip(
            (size, window, stride, dilation, before, after), found, strict=True
        ):
            values.append(value)
    return Windows(*(tuple(v) for v in (size, window, stride, dilation, before, after)))


def _channels(source: random.Random, over: Windows) -> tuple[int, int, int]:
    """Groups, and channels in and out of a group; sometimes enough for a second chain."""
    if source.random() < 0.1 and math.prod(over.size) <= 4:
        return 1, 257 // math.prod(over.window) + 2, source.choice([1, 2])
    groups = source.choice([1, 1, 2, 3])
    return groups, source.choice([0, 1, 2, 3]), source.choice([0, 1, 2, 3])


def convolution(source: random.Random, name: str) -> Call:
    """A call of ``conv``, ``conv_dx`` or ``conv_dw``."""
    over = windows(source, small=source.random() < 0.3)
    groups, channels, outputs = _channels(source, over)
    if name == "conv_dx" and channels > 3:
        channels, outputs = outputs, channels
    batch = source.choice([0, 1, 2])
    if name == "conv_dw" and source.random() < 0.1 and math.prod(over.counts) <= 4:
        batch, channels, outputs = 70, 1, 1
    x = (batch, groups * channels, *over.size)
    w = (groups * outputs, channels, *over.window)
    y = (batch, groups * outputs, *over.counts)
    shapes, extra = {
        "conv": ([x, w], ()),
        "conv_dx": ([y, w], ("size",)),
        "conv_dw": ([y, x], ("window",)),
    }[name]
    return shapes, {**over.attributes("dilation", *extra), "groups": groups}


def pool(source: random.Random, name: str) -> Call:
    """A call of a pool."""
    over = windows(source, dilated=name.startswith("max"))
    lead = tuple(source.choice([0, 1, 1, 2, 3]) for _ in range(source.choice([0, 1, 2])))
    back = name.endswith("dx")
    names = ["window"]
    if name.startswith("max"):
        names.append("dilation")
    if back:
        names.append("size")
    shape = (*lead, *(over.counts if back else over.size))
    return [shape] * (2 if name == "max_pool_dx" else 1), over.attributes(*names)
