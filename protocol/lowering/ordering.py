"""Lowering of running sums and sorted positions, which the operators take along the last axis."""

from __future__ import annotations

from collections.abc import Callable

from identic.protocol.lowering.builder import Builder
from identic.protocol.lowering.reductions import comparable
from identic.protocol.lowering.rules import Context, lowers


def along_last(b: Builder, value: int, axis: int, make: Callable[[int], int]) -> int:
    """The result of ``make``, which works along the last axis, along another one."""
    rank = len(b.shape(value))
    order = [*(a for a in range(rank) if a != axis), axis]
    return b.permute(make(b.permute(value, order)), [order.index(a) for a in range(rank)])


@lowers("cumsum")
def cumsum(c: Context) -> int:
    """Sums up to each element along one axis, in the element type of the result."""
    b = c.builder
    value = b.cast(c.tensor(0), c.dtype)
    if not c.shape:
        return value
    axis = c.axis(1, len(c.shape), "dim")
    return along_last(b, value, axis, lambda x: b.emit("cumsum", x))


@lowers("identic.argsort")
def argsort(c: Context) -> int:
    """Positions along one axis in order."""
    b = c.builder
    value = comparable(b, c.tensor(0))
    axis, descending = c.axis(1, len(c.shape)), bool(c.argument(2))
    return along_last(b, value, axis, lambda x: b.emit("argsort", x, descending=descending))


@lowers("identic.argtopk")
def argtopk(c: Context) -> int:
    """Positions of the largest or smallest along one axis, in order."""
    b = c.builder
    value = comparable(b, c.tensor(0))
    k, axis, largest = c.integer(1), c.axis(2, len(c.shape)), bool(c.argument(3))
    return along_last(b, value, axis, lambda x: b.emit("argtopk", x, k=k, largest=largest))
