"""Lowering of operators that move or repeat elements without computing any."""

from __future__ import annotations

from identic.protocol.graph import Argument
from identic.protocol.lowering.builder import Builder
from identic.protocol.lowering.constants import word
from identic.protocol.lowering.rules import Context, lowers


@lowers(
    "view",
    "_unsafe_view",
    "reshape",
    "unsqueeze",
    "squeeze",
    "alias",
    "detach",
    "detach_",
    "clone",
    "lift_fresh",
    "lift_fresh_copy",
    "contiguous",
)
def reshape(c: Context) -> int:
    """The same elements under another shape; tensors of a program are always row-major."""
    return c.builder.reshape(c.tensor(0), c.shape)


@lowers("t", "numpy_T", "transpose", "permute")
def permute(c: Context) -> int:
    """Axes in another order."""
    value = c.tensor(0)
    rank = len(c.builder.shape(value))
    axes = list(range(rank))
    if c.node.name == "aten.permute":
        axes = [a % rank for a in c.integers(1)]
    elif c.node.name == "aten.transpose":
        one, other = c.axis(1, rank), c.axis(2, rank)
        axes[one], axes[other] = axes[other], axes[one]
    else:
        axes.reverse()
    return c.builder.permute(value, axes)


@lowers("expand")
def expand(c: Context) -> int:
    """Axes of length 1 repeated."""
    return c.builder.expand(c.tensor(0), c.shape)


@lowers("repeat")
def repeat(c: Context) -> int:
    """The whole tensor repeated along each axis."""
    b, value, times = c.builder, c.tensor(0), c.integers(1)
    shape = [1] * (len(times) - len(b.shape(value))) + list(b.shape(value))
    spread = [n for pair in zip([1] * len(shape), shape, strict=True) for n in pair]
    target = [n for pair in zip(times, shape, strict=True) for n in pair]
    return b.reshape(b.expand(b.reshape(value, spread), target), c.shape)


def bounds(start: Argument, stop: Argument, step: Argument, length: int) -> tuple[int, int, int]:
    """Python's slice, normalised to a length."""
    low, high, stride = (a if isinstance(a, int) else None for a in (start, stop, step))
    first, last, by = slice(low, high, stride).indices(length)
    return first, max(first, last), by


@lowers("slice")
def take_slice(c: Context) -> int:
    """A range along one axis."""
    value = c.tensor(0)
    shape = c.builder.shape(value)
    axis = c.axis(1, len(shape), "dim", 0)
    start, stop, step = bounds(
        c.argument(2, "start"), c.argument(3, "end"), c.argument(4, "step"), shape[axis]
    )
    return c.builder.slice(value, axis, start, stop, step)


@lowers("select")
def select(c: Context) -> int:
    """One index along one axis."""
    value = c.tensor(0)
    shape = c.builder.shape(value)
    axis = c.axis(1, len(shape))
    index = c.integer(2) % shape[axis]
    return c.builder.reshape(c.builder.slice(value, axis, index, index + 1), c.shape)


@lowers("select_scatter")
def replace(c: Context) -> int:
    """A tensor with one index along one axis replaced."""
    b, value = c.builder, c.tensor(0)
    shape = b.shape(value)
    axis = c.axis(2, len(shape), "dim", 0)
    start = c.integer(3) % shape[axis]
    source = b.reshape(c.tensor(1), [1 if i == axis else n for i, n in enumerate(shape)])
    return replaced(b, value, source, axis, start, start + 1)


def replaced(b: Builder, value: int, source: int, axis: int, start: int, stop: int) -> int:
    """The value with the range ``[start, stop)`` of an axis replaced."""
    shape = b.shape(value)
    pieces = [b.slice(value, axis, 0, start)] if start else []
    pieces.append(source)
    if stop < shape[axis]:
        pieces.append(b.slice(value, axis, stop, shape[axis]))
    return b.concat(pieces, axis)


@lowers("cat")
def concat(c: Context) -> int:
    """Tensors one after another; torch lets empty vectors take part, which add nothing."""
    b = c.builder
    axis = c.axis(1, len(c.shape), "dim", 0)
    pieces = [b.cast(v, c.dtype) for v in c.tensors(0) if b.shape(v) != (0,)]
    return b.concat(pieces, axis)


@lowers("constant_pad_nd")
def pad(c: Context) -> int:
    """A constant border; negative amounts cut instead."""
    b, value, amounts = c.builder, c.tensor(0), c.integers(1)
    rank = len(b.shape(value))
    before, after = [0] * rank, [0] * rank
    for index in range(len(amounts) // 2):
        axis = rank - 1 - index
        low, high = amounts[2 * index], amounts[2 * index + 1]
        length = b.shape(value)[axis]
        value = b.slice(value, axis, max(0, -low), length - max(0, -high))
        before[axis], after[axis] = max(0, low), max(0, high)
    if not any(before) and not any(after):
        return value
    filler = word(c.dtype, c.scalar(2, "value", 0))
    return b.emit("pad", value, before=before, after=after, value=filler)
