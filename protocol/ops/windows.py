"""Windows that move over one or two spatial axes: what convolutions and pools share.

Along one axis, window ``o`` has the taps ``o * stride - before + i * dilation`` for ``i`` in
``[0, window)``, counted from the first place of the operand. ``before`` and ``after`` places
of padding lie around it (OP-40).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from identic.protocol.ops.checks import need_attribute, need_shape
from identic.protocol.tensors import Shape

MOST = 1 << 46
"""Bound of padding, stride, dilation and window: as of the length of an axis."""

Attributes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Axis:
    """The windows along one spatial axis of ``size`` places."""

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    count: int
    """Number of windows."""

    @property
    def span(self) -> int:
        """Places from the first to the last tap of a window, both included."""
        return self.dilation * (self.window - 1) + 1

    @property
    def most_covering(self) -> int:
        """Most windows whose span covers one place."""
        return min(self.count, (self.span - 1) // self.stride + 1)

    def place(self, number: int, tap: int) -> int | None:
        """The place of a window's tap, or ``None`` in the padding."""
        at = number * self.stride - self.before + tap * self.dilation
        return at if 0 <= at < self.size else None

    def places(self, number: int) -> range:
        """The places of a window's taps, those in the padding left out."""
        start = number * self.stride - self.before
        step = self.dilation
        first = max(0, -(start // step))
        stop = max(first, min(self.window, -((start - self.size) // step)))
        return range(start + first * step, start + stop * step, step)

    def meeting(self, place: int, tap: int) -> int | None:
        """The window whose tap ``tap`` is at ``place``, or ``None`` where there is none."""
        number, rest = divmod(place + self.before - tap * self.dilation, self.stride)
        return number if not rest and 0 <= number < self.count else None

    def covering(self, place: int) -> range:
        """The windows whose span covers ``place``."""
        first = -(-(place + self.before - self.span + 1) // self.stride)
        last = (place + self.before) // self.stride
        return range(max(0, first), max(0, first, min(self.count, last + 1)))


def axes(op: str, size: Sequence[int], window: Sequence[int], attributes: Attributes) -> list[Axis]:
    """The windows of each spatial axis.

    Args:
        op: operator that asks, for its refusals.
        size: lengths of the operand's spatial axes.
        window: lengths of the window.
        attributes: ``after``, ``before``, ``stride`` and, where the operator has it,
            ``dilation``, one value an axis.

    Raises:
        ProtocolError: an attribute is out of range (OP-5), or a window is longer than the
            padded axis (OP-3).
    """
    rank = len(size)
    dilation = attributes.get("dilation", (1,) * rank)
    for name, values, least in (
        ("after", attributes["after"], 0),
        ("before", attributes["before"], 0),
        ("dilation", dilation, 1),
        ("stride", attributes["stride"], 1),
        ("window", window, 1),
    ):
        holds = len(values) == rank and all(least <= v < MOST for v in values)
        want = f"{rank} numbers from {least}, below 2^46"
        need_attribute(op, name, holds, got=tuple(values), want=want)
    sides = zip(attributes["before"], attributes["after"], attributes["stride"], strict=True)
    found = []
    for n, k, d, (before, after, s) in zip(size, window, dilation, sides, strict=True):
        room = n + before + after - (d * (k - 1) + 1)
        got = f"a window of {k} with dilation {d} over {n} + {before} + {after} places"
        # OP-40: a window is no longer than the padded axis.
        need_shape(op, room >= 0, got=got, want="no window longer than its axis")
        found.append(Axis(n, k, s, d, before, room // s + 1))
    return found


def counts(over: Sequence[Axis]) -> Shape:
    """Number of windows along each axis."""
    return tuple(a.count for a in over)


def taps(over: Sequence[Axis]) -> int:
    """Taps of one window."""
    return math.prod(a.window for a in over)


def spatial_size(op: str, attributes: Attributes, rank: int) -> tuple[int, ...]:
    """Attribute ``size``: lengths of the spatial axes of an operand that is not given."""
    size = attributes["size"]
    holds = len(size) == rank and all(0 <= n < MOST for n in size)
    need_attribute(op, "size", holds, got=size, want=f"{rank} lengths >= 0")
    return size
