"""Lowering of reductions and matrix products (CAP-7)."""

from __future__ import annotations

from collections.abc import Sequence

from identic.protocol.dtypes import DType
from identic.protocol.lowering.builder import Builder
from identic.protocol.lowering.rules import Context, lowers


def to_last(b: Builder, value: int, axes: Sequence[int]) -> int:
    """The value with ``axes`` merged into one last axis, the others before it in order."""
    shape = b.shape(value)
    kept = [a for a in range(len(shape)) if a not in axes]
    length = 1
    for axis in axes:
        length *= shape[axis]
    moved = b.permute(value, [*kept, *sorted(axes)])
    return b.reshape(moved, [*(shape[a] for a in kept), length])


def total(b: Builder, value: int, axes: Sequence[int]) -> int:
    """Sum over ``axes``, which the result loses.

    Axes of length 1 take no part in the choice. The last axes become one row, summed by the
    row rule; the first axes become one column, summed by the column rule; any other set is
    first moved to the end.
    """
    shape = b.shape(value)
    kept = [a for a in range(len(shape)) if a not in axes]
    result = [shape[a] for a in kept]
    active = [a for a in sorted(axes) if shape[a] != 1]
    broad = [a for a in kept if shape[a] != 1]
    if not active:
        return b.reshape(value, result)
    # CAP-7: leading axes are summed by the column rule, all others as one last axis.
    if broad and max(active) < min(broad):
        return b.emit("sum_first", b.reshape(value, [-(-_size(shape) // _size(result)), *result]))
    return b.reshape(b.emit("sum_last", to_last(b, value, active)), result)


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _axes(c: Context, rank: int) -> list[int]:
    """The axes a reduction names; none or an empty list means all."""
    argument = c.argument(1, "dim")
    if argument is None or argument == ():
        return list(range(rank))
    return sorted({a % max(rank, 1) for a in c.integers(1, "dim")}) if rank else []


@lowers("sum")
def sum_over(c: Context) -> int:
    """Sum in the element type of the result."""
    b = c.builder
    value = b.cast(c.tensor(0), c.dtype)
    return b.reshape(total(b, value, _axes(c, len(b.shape(value)))), c.shape)


def comparable(b: Builder, value: int) -> int:
    """The value in an element type that has an order: small ones become int32."""
    if b.dtype(value) in (DType.UINT8, DType.BOOL):
        return b.cast(value, DType.INT32)
    return value


def reversed_order(b: Builder, value: int) -> int:
    """The value with its order the other way round: negated, or -1 less an integer."""
    if b.dtype(value) == DType.FLOAT32:
        return b.emit("neg", value)
    return b.elementwise("sub", b.full(b.dtype(value), -1), value)


@lowers("amax", "amin")
def extreme(c: Context) -> int:
    """Largest element; the smallest is the largest in the reversed order, reversed again."""
    b = c.builder
    value = comparable(b, c.tensor(0))
    lowest = c.node.name == "aten.amin"
    axes = _axes(c, len(b.shape(value)))
    if not axes:
        return c.tensor(0)
    row = to_last(b, reversed_order(b, value) if lowest else value, axes)
    result = b.emit("amax", row)
    result = reversed_order(b, result) if lowest else result
    return b.cast(b.reshape(result, c.shape), c.dtype)


@lowers("any", "all")
def some(c: Context) -> int:
    """Whether any element, or every element, is set."""
    b = c.builder
    value = b.cast(c.tensor(0), DType.BOOL)
    every = c.node.name == "aten.all"
    axes = _axes(c, len(b.shape(value)))
    if not axes:
        return value
    if every:
        value = b.emit("not", value)
    found = b.cast(b.emit("amax", b.cast(to_last(b, value, axes), DType.INT32)), DType.BOOL)
    return b.reshape(b.emit("not", found) if every else found, c.shape)


@lowers("argmax", "argmin")
def argmax(c: Context) -> int:
    """Position of the first largest or smallest element along one axis, or of all elements."""
    b = c.builder
    value = comparable(b, c.tensor(0))
    if c.node.name == "aten.argmin":
        value = reversed_order(b, value)
    rank = len(b.shape(value))
    axes = list(range(rank)) if c.argument(1, "dim") is None else [c.axis(1, rank, "dim")]
    return b.reshape(b.emit("argmax", to_last(b, value, axes)), c.shape)


@lowers("mm", "bmm")
def matmul(c: Context) -> int:
    """Product of matrices."""
    if c.dtype != DType.FLOAT32:
        raise c.refuse(f"is defined on float32, not on {c.dtype.label}")
    return c.builder.emit("matmul", c.tensor(0), c.tensor(1))
