"""Lowering of gathers and scatters.

An index outside its range reads 0 and writes nothing in a program, where torch raises an
error; negative indices count from the end where torch lets them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.graph import Ref
from identic.protocol.lowering.builder import Builder
from identic.protocol.lowering.rules import Context, lowers
from identic.protocol.lowering.views import bounds, replaced
from identic.protocol.tensors import broadcast_shapes


def _front(b: Builder, value: int, axis: int) -> int:
    """The value with ``axis`` moved to the front."""
    rank = len(b.shape(value))
    return b.permute(value, [axis, *(a for a in range(rank) if a != axis)])


def _back(b: Builder, value: int, axis: int) -> int:
    """The value with its first axis moved to ``axis``."""
    rank = len(b.shape(value))
    order = list(range(1, rank))
    order.insert(axis, 0)
    return b.permute(value, order)


@lowers("index_select")
def index_select(c: Context) -> int:
    """Rows, or slices along another axis, by number."""
    b, value, index = c.builder, c.tensor(0), c.tensor(2)
    axis = c.axis(1, len(b.shape(value)))
    return _back(b, b.emit("take_rows", _front(b, value, axis), index), axis)


@lowers("index_add")
def index_add(c: Context) -> int:
    """Slices added along one axis at numbered places, in order."""
    b, value, index, source = c.builder, c.tensor(0), c.tensor(2), c.tensor(3)
    if c.scalar(4, "alpha", 1) != 1:
        raise c.refuse("alpha is 1")
    axis = c.axis(1, len(b.shape(value)))
    added = b.emit("add_rows", _front(b, value, axis), index, _front(b, source, axis))
    return _back(b, added, axis)


@lowers("gather")
def gather(c: Context) -> int:
    """Elements along one axis by number."""
    b, value = c.builder, c.tensor(0)
    return b.emit("gather", value, c.operand(2, DType.INT64), axis=c.axis(1, len(b.shape(value))))


@lowers("scatter", "scatter_add", "scatter_reduce")
def scatter(c: Context) -> int:
    """Elements written or added along one axis at numbered places.

    Where each row has one, it is found by comparing a ladder with the index.
    """
    b, value, index = c.builder, c.tensor(0), c.operand(2, DType.INT64)
    adds = _adds(c)
    shape, places = b.shape(value), b.shape(index)
    if not shape:
        raise c.refuse("writes into a scalar", "use torch.where.")
    axis = c.axis(1, len(shape))
    others = [n for a, n in enumerate(shape) if a != axis]
    source = c.operand(3, c.dtype)
    if places[axis] == 1 and [n for a, n in enumerate(places) if a != axis] == others:
        ladder = [n if a == axis else 1 for a, n in enumerate(shape)]
        if adds:
            source = b.elementwise("add", value, source)
        named = b.elementwise("eq", b.reshape(b.iota(shape[axis]), ladder), index)
        return b.elementwise("where", named, source, value)
    for a, n in enumerate(places if b.shape(source) else ()):
        source = b.slice(source, a, 0, n)
    source = b.expand(source, places)
    if adds and c.dtype != DType.FLOAT32:
        raise c.refuse(f"adds float32 elements only, not {c.dtype.label}")
    return b.emit("scatter_add" if adds else "scatter", value, index, source, axis=axis)


def _adds(c: Context) -> bool:
    """Whether a scatter adds to what is there."""
    if c.node.name == "aten.scatter_reduce":
        if c.argument(4, "reduce") != "sum" or not c.argument(5, "include_self", default=True):
            raise c.refuse("reduces by the sum that includes what is there, and by nothing else")
        return True
    if c.argument(4, "reduce") is not None:
        raise c.refuse("reduces while it writes", "use scatter_add.")
    return c.node.name == "aten.scatter_add"


def _product(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


@dataclass(frozen=True)
class _Named:
    """What index tensors over some axes of a tensor name, and where it goes in the result."""

    axes: tuple[int, ...]
    """Axes that have an index tensor."""
    rest: tuple[int, ...]
    """The other axes."""
    rows: int
    """Section value: for each place its number among the rows of ``table``, flat."""
    common: tuple[int, ...]
    """Shape that the index tensors broadcast to."""

    def order(self) -> list[int]:
        """Axes of the result, given as the common ones and then the rest.

        They stand where the indexed axes were if those are neighbours, else in front.
        """
        first, depth = self.axes[0], len(self.axes)
        together = self.axes == tuple(range(first, first + depth))
        at = first if together else 0
        common = range(len(self.common))
        rest = [len(self.common) + i for i in range(len(self.rest))]
        return [*rest[:at], *common, *rest[at:]]

    def table(self, b: Builder, value: int) -> int:
        """The tensor as rows, one for each place along the indexed axes."""
        shape = b.shape(value)
        moved = b.permute(value, [*self.axes, *self.rest])
        count = _product([shape[a] for a in self.axes])
        return b.reshape(moved, [count, *(shape[a] for a in self.rest)])


def _named(c: Context, shape: Sequence[int]) -> _Named:
    """The index tensors of an operator; negative indices count from the end."""
    b, argument = c.builder, c.argument(1)
    items = argument if isinstance(argument, tuple) else (argument,)
    found = {a: c.values[i.index] for a, i in enumerate(items) if isinstance(i, Ref)}
    if any(b.dtype(i) in (DType.BOOL, DType.UINT8) for i in found.values()):
        raise c.refuse("indexes with a mask", "use torch.where.")
    if not found or not all(i is None or isinstance(i, Ref) for i in items):
        raise c.refuse("has no index")
    common = broadcast_shapes([b.shape(i) for i in found.values()])
    row: int | None = None
    for axis, index in found.items():
        place = _from_front(b, index, shape[axis])
        if row is not None:
            length = b.full(DType.INT64, shape[axis])
            place = b.elementwise("add", b.elementwise("mul", row, length), place)
        row = place
    if row is None:
        raise c.refuse("has no index")
    rows = b.reshape(b.expand(row, common), [_product(common)])
    rest = tuple(a for a in range(len(shape)) if a not in found)
    return _Named(tuple(found), rest, rows, common)


def _from_front(b: Builder, index: int, length: int) -> int:
    """An index as int64, negative ones counted from the end."""
    place = b.cast(index, DType.INT64)
    wrapped = b.elementwise("add", place, b.full(DType.INT64, length))
    negative = b.elementwise("lt", place, b.full(DType.INT64, 0))
    return b.elementwise("where", negative, wrapped, place)


@lowers("index")
def index(c: Context) -> int:
    """Elements named by index tensors."""
    b, value = c.builder, c.tensor(0)
    shape = b.shape(value)
    named = _named(c, shape)
    taken = b.emit("take_rows", named.table(b, value), named.rows)
    whole = b.reshape(taken, [*named.common, *(shape[a] for a in named.rest)])
    return b.permute(whole, named.order())


@lowers("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(c: Context) -> int:
    """Elements written, the last one kept, or added, at places named by index tensors."""
    b, value = c.builder, c.tensor(0)
    shape = b.shape(value)
    named = _named(c, shape)
    rest = [shape[a] for a in named.rest]
    order = named.order()
    whole = [*named.common, *rest]
    given = b.expand(b.cast(c.tensor(2), c.dtype), [whole[a] for a in order])
    source = b.permute(given, [order.index(a) for a in range(len(order))])
    source = b.reshape(source, [_product(named.common), *rest])
    made = b.emit(_writer(c, 3), named.table(b, value), named.rows, source)
    moved = b.reshape(made, [*(shape[a] for a in named.axes), *rest])
    axes = [*named.axes, *named.rest]
    return b.permute(moved, [axes.index(a) for a in range(len(axes))])


def _writer(c: Context, position: int) -> str:
    """The operator that writes rows, or that adds them."""
    if not c.argument(position, "accumulate", default=False):
        return "set_rows"
    if c.dtype != DType.FLOAT32:
        raise c.refuse(f"adds float32 elements only, not {c.dtype.label}")
    return "add_rows"


@lowers("put")
def put(c: Context) -> int:
    """Elements written or added at flat places."""
    b, value = c.builder, c.tensor(0)
    count = _product(b.shape(value))
    flat = b.reshape(value, [count])
    places = b.reshape(c.tensor(1), [_product(b.shape(c.tensor(1)))])
    source = b.reshape(b.cast(c.tensor(2), c.dtype), b.shape(places))
    rows = _from_front(b, places, count)
    return b.reshape(b.emit(_writer(c, 3), flat, rows, source), c.shape)


@lowers("flip")
def flip(c: Context) -> int:
    """Axes the other way round."""
    b, value = c.builder, c.tensor(0)
    for axis in sorted({a % max(1, len(c.shape)) for a in c.integers(1, "dims")}):
        length = c.shape[axis]
        if length > 1:
            rows = b.iota(length, length - 1, -1)
            value = _back(b, b.emit("take_rows", _front(b, value, axis), rows), axis)
    return value


@lowers("slice_scatter")
def replace_every(c: Context) -> int:
    """A tensor with a range along one axis replaced, or every n-th element of it."""
    b, value, source = c.builder, c.tensor(0), c.tensor(1)
    shape = b.shape(value)
    axis = c.axis(2, len(shape), "dim", 0)
    start, stop, step = bounds(
        c.argument(3, "start"), c.argument(4, "end"), c.argument(5, "step"), shape[axis]
    )
    if step == 1:
        return replaced(b, value, source, axis, start, stop)
    rows = b.iota(b.shape(source)[axis], start, step)
    made = b.emit("set_rows", _front(b, value, axis), rows, _front(b, source, axis))
    return _back(b, made, axis)


# ---- diagonals and windows --------------------------------------------------------------------


def _diagonal(c: Context, position: int, shape: Sequence[int]) -> tuple[int, int, int, int]:
    """Axes of a diagonal, and where it starts and how long it is among R * C places."""
    offset = c.integer(position, "offset", 0)
    one = c.axis(position + 1, len(shape), "dim1", 0)
    other = c.axis(position + 2, len(shape), "dim2", 1)
    R, C = shape[one], shape[other]
    count = max(0, min(R, C - offset) if offset >= 0 else min(R + offset, C))
    start = offset if offset >= 0 else -offset * C
    return one, other, min(start, R * C), count


@lowers("diagonal")
def diagonal(c: Context) -> int:
    """Elements whose places along two axes differ by a number, along a new last axis."""
    b, value = c.builder, c.tensor(0)
    shape = b.shape(value)
    one, other, start, count = _diagonal(c, 1, shape)
    rest = [a for a in range(len(shape)) if a not in (one, other)]
    lengths = [shape[a] for a in rest]
    flat = b.reshape(b.permute(value, [*rest, one, other]), [*lengths, shape[one] * shape[other]])
    step = shape[other] + 1
    stop = start + (count - 1) * step + 1 if count else start
    return b.slice(flat, len(rest), start, stop, step)


@lowers("diagonal_scatter")
def diagonal_scatter(c: Context) -> int:
    """A tensor with a diagonal replaced."""
    b, value, source = c.builder, c.tensor(0), c.tensor(1)
    shape = b.shape(value)
    one, other, start, count = _diagonal(c, 2, shape)
    axes = [one, other, *(a for a in range(len(shape)) if a not in (one, other))]
    moved = [shape[a] for a in axes]
    table = b.reshape(b.permute(value, axes), [moved[0] * moved[1], *moved[2:]])
    rows = b.iota(count, start, shape[other] + 1)
    made = b.emit("set_rows", table, rows, _front(b, source, len(shape) - 2))
    return b.permute(b.reshape(made, moved), [axes.index(a) for a in range(len(axes))])


@lowers("unfold")
def unfold(c: Context) -> int:
    """Windows of one length along one axis, side by side along a new last axis."""
    b, value = c.builder, c.tensor(0)
    axis = c.axis(1, len(b.shape(value)))
    size, step = c.integer(2), c.integer(3)
    count = c.shape[axis]
    starts = b.reshape(b.iota(count, 0, step), [count, 1])
    rows = b.elementwise("add", starts, b.reshape(b.iota(size), [1, size]))
    taken = b.emit("take_rows", _front(b, value, axis), rows)
    rest = list(range(2, len(b.shape(taken))))
    return b.permute(taken, [*rest[:axis], 0, *rest[axis:], 1])
