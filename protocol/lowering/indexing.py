"""Lowering of gathers and scatters.

An index outside its range reads 0 and writes nothing in a program, where torch raises an
error; negative indices count from the end where torch lets them.
"""

from __future__ import annotations

from collections.abc import Sequence

from identic.protocol.dtypes import DType
from identic.protocol.graph import Ref
from identic.protocol.lowering.builder import Builder
from identic.protocol.lowering.rules import Context, lowers
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


@lowers("scatter", "scatter_add")
def scatter(c: Context) -> int:
    """One written element per row along one axis, by comparing a ladder with the index."""
    b, value, index = c.builder, c.tensor(0), c.operand(2, DType.INT64)
    shape, places = b.shape(value), b.shape(index)
    axis = c.axis(1, len(shape))
    others = [n for a, n in enumerate(shape) if a != axis]
    if places[axis] != 1 or [n for a, n in enumerate(places) if a != axis] != others:
        raise c.refuse(
            "writes more than one element a row",
            "use one_hot, index_add or a mask with torch.where.",
        )
    ladder = b.reshape(b.iota(shape[axis]), [n if a == axis else 1 for a, n in enumerate(shape)])
    source = c.operand(3, c.dtype)
    if c.node.name == "aten.scatter_add":
        source = b.elementwise("add", value, source)
    return b.elementwise("where", b.elementwise("eq", ladder, index), source, value)


def _linear(c: Context, shape: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Row number that leading indices name, flat, and the shape they broadcast to."""
    b, argument = c.builder, c.argument(1)
    items = argument if isinstance(argument, tuple) else (argument,)
    indices = [c.values[i.index] for i in items if isinstance(i, Ref)]
    masks = any(b.dtype(i) in (DType.BOOL, DType.UINT8) for i in indices)
    if len(indices) != len(items) or masks:
        raise c.refuse(
            "indexes with a mask, or not from the first axis on",
            "use torch.where for masks, and index_select along other axes.",
        )
    common = broadcast_shapes([b.shape(i) for i in indices])
    row: int | None = None
    for index, length in zip(indices, shape, strict=False):
        place = b.cast(index, DType.INT64)
        wrapped = b.elementwise("add", place, b.full(DType.INT64, length))
        negative = b.elementwise("lt", place, b.full(DType.INT64, 0))
        place = b.elementwise("where", negative, wrapped, place)
        if row is not None:
            place = b.elementwise(
                "add", b.elementwise("mul", row, b.full(DType.INT64, length)), place
            )
        row = place
    if row is None:
        raise c.refuse("has no index")
    return b.reshape(b.expand(row, common), [_product(common)]), common


def _product(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


@lowers("index")
def index(c: Context) -> int:
    """Elements named by index tensors over the leading axes."""
    b, value = c.builder, c.tensor(0)
    shape = b.shape(value)
    rows, common = _linear(c, shape)
    rest = shape[_depth(c) :]
    table = b.reshape(value, [_product(shape[: _depth(c)]), *rest])
    return b.reshape(b.emit("take_rows", table, rows), [*common, *rest])


@lowers("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(c: Context) -> int:
    """Elements added at places named by index tensors over the leading axes."""
    b, value = c.builder, c.tensor(0)
    if not c.argument(3, "accumulate", default=False):
        raise c.refuse("writes at computed places", "use torch.where with a mask, or index_add.")
    shape = b.shape(value)
    rows, common = _linear(c, shape)
    rest = shape[_depth(c) :]
    table = b.reshape(value, [_product(shape[: _depth(c)]), *rest])
    source = b.reshape(b.expand(c.tensor(2), [*common, *rest]), [_product(common), *rest])
    return b.reshape(b.emit("add_rows", table, rows, source), shape)


def _depth(c: Context) -> int:
    argument = c.argument(1)
    return len(argument) if isinstance(argument, tuple) else 1
