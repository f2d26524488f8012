"""Every operator as calls of an engine (``engine.py``), on arrays of any layout.

Types and shapes were checked when the call was made (``Operator.call``); an engine checks
sizes and address ranges again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from identic.kernels.arrays import NUMPY, part
from identic.kernels.engine import Engine
from identic.kernels.windows import WINDOWED, bound
from identic.protocol.ops.base import Call
from identic.protocol.tensors import TensorType

Kernel = Callable[[Engine, Call, Sequence[Any]], Any]
"""Result of a call from arrays of the engine: a new row-major array."""

_TWO_64 = 1 << 64
_SHARDS = 1 << 31


def broadcast_strides(
    shape: Sequence[int], operand: Sequence[int], strides: Sequence[int]
) -> list[int]:
    """Strides of an operand over the shape it broadcasts to: 0 along what repeats."""
    lead = len(shape) - len(operand)
    kept = [0 if n == 1 else s for n, s in zip(operand, strides, strict=True)]
    return [0] * lead + kept


def element_strides(array: Any) -> tuple[int, ...]:
    """Distances between neighbours in elements."""
    return tuple(s // array.itemsize for s in array.strides)


def over(shape: Sequence[int], operand: Any) -> list[int]:
    """Element strides of ``operand`` over the shape it broadcasts to."""
    return broadcast_strides(shape, operand.shape, element_strides(operand))


def row_major(engine: Engine, array: Any) -> Any:
    """The array itself if it is row-major without gaps, else a copy that is."""
    if array.flags.c_contiguous:
        return array
    return _copy(engine, engine.empty(array.shape, array.dtype), array)


def _new(engine: Engine, kind: TensorType) -> Any:
    """An array of a type whose elements are not set yet."""
    return engine.empty(kind.shape, NUMPY[kind.dtype])


# ---- elementwise ----------------------------------------------------------------------------


def _unary(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    engine.calls.unary(call.op.name, out, row_major(engine, inputs[0]))
    return out


def _binary(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    a, b = inputs
    shape = out.shape
    engine.calls.binary(call.op.name, out, a, b, shape, over(shape, a), over(shape, b))
    return out


def _where(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    condition, a, b = inputs
    shape = out.shape
    strides = (over(shape, condition), over(shape, a), over(shape, b))
    engine.calls.where(out, condition, a, b, shape, *strides)
    return out


def _cast(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    if call.inputs[0].dtype is call.output.dtype:
        return _copy(engine, _new(engine, call.output), inputs[0])
    out = _new(engine, call.output)
    engine.calls.cast(out, row_major(engine, inputs[0]))
    return out


# ---- along an axis --------------------------------------------------------------------------


def _last(name: str) -> Kernel:
    def run(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
        out = _new(engine, call.output)
        function = getattr(engine.calls, name)
        function(out, row_major(engine, inputs[0]), out.size, call.inputs[0].shape[-1])
        return out

    return run


def _sum_first(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    engine.calls.sum_first(out, row_major(engine, inputs[0]), call.inputs[0].shape[0], out.size)
    return out


def _cumsum(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    length = call.output.shape[-1]
    engine.calls.cumsum(out, row_major(engine, inputs[0]), out.size // max(1, length), length)
    return out


def _sorted(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    descending = call.integer("descending" if call.op.name == "argsort" else "largest")
    rows, length = math.prod(call.output.shape[:-1]), call.inputs[0].shape[-1]
    count = call.output.shape[-1]
    engine.calls.argsort(out, row_major(engine, inputs[0]), rows, length, count, bool(descending))
    return out


# ---- matmul ---------------------------------------------------------------------------------


def batch_stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """One stride for all batch axes together, or ``None`` where there is none."""
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if not axes:
        return 0
    for (_, outer), (n, inner) in pairwise(axes):
        if outer != n * inner:
            return None
    return axes[-1][1]


def matmul_operand(
    engine: Engine, x: Any, batch: Sequence[int]
) -> tuple[Any, tuple[int, int, int]]:
    """The operand and its (batch, row, column) strides, copied where no three suffice."""
    strides = element_strides(x)
    outer = broadcast_strides(batch, x.shape[:-2], strides[:-2])
    stride = batch_stride(batch, outer)
    if stride is None:
        rows, columns = x.shape[-2:]
        whole = engine.empty((*batch, rows, columns), x.dtype)
        return _copy(engine, whole, x), (rows * columns, columns, 1)
    return x, (stride, strides[-2], strides[-1])


def _matmul(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    batch = call.output.shape[:-2]
    M, K = call.inputs[0].shape[-2:]
    N = call.output.shape[-1]
    a, a_strides = matmul_operand(engine, inputs[0], batch)
    b, b_strides = matmul_operand(engine, inputs[1], batch)
    engine.calls.matmul(out, a, b, math.prod(batch), M, N, K, a_strides, b_strides)
    return out


# ---- convolutions and pools -----------------------------------------------------------------


def _windowed(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    bound(engine.calls, call)(out, *(row_major(engine, x) for x in inputs))
    return out


# ---- indices --------------------------------------------------------------------------------


def _take_rows(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    table = row_major(engine, inputs[0])
    rows = call.inputs[0].shape[0]
    row_bytes = math.prod(call.inputs[0].shape[1:]) * table.itemsize
    engine.calls.take_rows(out, table, row_major(engine, inputs[1]), rows, row_bytes)
    return out


def _take_windows(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    tokens, starts = (row_major(engine, x) for x in inputs)
    engine.calls.take_windows(out, tokens, starts, call.integer("length"))
    return out


def _gather(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    x, index = (row_major(engine, a) for a in inputs)
    engine.calls.gather(out, x, index, call.integer("axis"))
    return out


def _into_rows(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    init, index, source = (row_major(engine, x) for x in inputs)
    inner = math.prod(call.output.shape[1:])
    function = engine.calls.set_rows if call.op.name == "set_rows" else engine.calls.add_rows
    function(out, init, index, source, call.output.shape[0], inner)
    return out


def _scatter(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    x, index, source = (row_major(engine, a) for a in inputs)
    function = engine.calls.scatter if call.op.name == "scatter" else engine.calls.scatter_add
    function(out, x, index, source, call.integer("axis"))
    return out


# ---- movement and creation ------------------------------------------------------------------


def _copy(engine: Engine, out: Any, x: Any) -> Any:
    """Fill ``out`` with the elements of ``x``, which broadcasts to it."""
    if out.size:
        steps = over(out.shape, x)
        engine.calls.copy_strided(out, 0, element_strides(out), x, 0, steps, out.shape)
    return out


def _reshape(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    x = inputs[0]
    return _copy(engine, _new(engine, call.inputs[0]), x).reshape(call.output.shape)


def _permute(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    return _copy(engine, _new(engine, call.output), inputs[0].transpose(call.integers("axes")))


def _expand(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    return _copy(engine, _new(engine, call.output), inputs[0])


def _slice(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    bounds = zip(*(call.integers(n) for n in ("start", "stop", "step")), strict=True)
    return _copy(engine, _new(engine, call.output), part(inputs[0], *(slice(*b) for b in bounds)))


def _concat(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    axis, at = call.integer("axis"), 0
    for x in inputs:
        place = (slice(None),) * axis + (slice(at, at + x.shape[axis]),)
        _copy(engine, out[place], x)
        at += x.shape[axis]
    return out


def _pad(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    engine.calls.full(out, call.output.dtype.pattern(call.integer("value")))
    sides = zip(call.integers("before"), call.inputs[0].shape, strict=True)
    _copy(engine, part(out, *(slice(b, b + n) for b, n in sides)), inputs[0])
    return out


def _full(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    del inputs
    out = _new(engine, call.output)
    engine.calls.full(out, call.output.dtype.pattern(call.integer("word")))
    return out


def _iota(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    del inputs
    out = _new(engine, call.output)
    engine.calls.iota(out, call.integer("start"), call.integer("step"))
    return out


# ---- random numbers -------------------------------------------------------------------------


RANDOM = ("random_uniform", "random_index", "shuffled_index")
"""Operators whose operand is a context."""


def fill_random(engine: Engine, call: Call, out: Any, context: Any) -> None:
    """Fill ``out`` with the result of one of ``RANDOM``; the context may be numpy's own."""
    written = engine.words(context)
    k0, k1, shard = (written[i] & 0xFFFFFFFF for i in (2, 3, 5))
    if call.op.name == "random_uniform":
        engine.calls.philox_uniform(out, k0, k1, call.integer("stream"), shard)
    elif call.op.name == "random_index":
        bound, stream = call.integer("bound"), call.integer("stream")
        engine.calls.philox_index(out, k0, k1, bound, stream, shard)
    else:
        _shuffle(engine, call, out, written)


def _random(engine: Engine, call: Call, inputs: Sequence[Any]) -> Any:
    out = _new(engine, call.output)
    fill_random(engine, call, out, inputs[0])
    return out


def _shuffle(engine: Engine, call: Call, out: Any, context: Sequence[int]) -> None:
    k0, k1, _, _, step, shard = context
    first = (step * call.integer("shards") + shard) * out.size % _TWO_64
    for start, piece in aligned_pieces(out.reshape(-1), first):
        # An engine names a position by step, shards and shard, in units of its length.
        high, low = divmod(start // piece.size, _SHARDS)
        key = (k0 & 0xFFFFFFFF, k1 & 0xFFFFFFFF)
        engine.calls.shuffled_index(piece, *key, call.integer("bound"), high, _SHARDS, low)


def aligned_pieces(out: Any, first: int) -> Iterator[tuple[int, Any]]:
    """Pieces of a flat array whose element ``i`` has position ``first + i`` modulo 2^64.

    Each has a power of two of elements and starts at a multiple of it; there are about twice
    as many as the length has bits. Yields the position of the first element with the piece.
    """
    at = 0
    while at < out.size:
        start = (first + at) % _TWO_64
        size = 1 << (out.size - at).bit_length() - 1
        size = min(size, start & -start) if start else size
        yield start, out[at : at + size]
        at += size


_UNARY = ("neg", "abs", "exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "sqrt", "rsqrt")
_BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "and", "or")
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")

KERNELS: dict[str, Kernel] = {
    **dict.fromkeys((*_UNARY, "not"), _unary),
    **dict.fromkeys((*_BINARY, *_COMPARE), _binary),
    "where": _where,
    "cast": _cast,
    "sum_last": _last("sum_last"),
    "sum_first": _sum_first,
    "amax": _last("amax"),
    "argmax": _last("argmax"),
    "cumsum": _cumsum,
    "argsort": _sorted,
    "argtopk": _sorted,
    "matmul": _matmul,
    **dict.fromkeys(WINDOWED, _windowed),
    "take_rows": _take_rows,
    "take_windows": _take_windows,
    "gather": _gather,
    "add_rows": _into_rows,
    "set_rows": _into_rows,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "full": _full,
    "iota": _iota,
    **dict.fromkeys(RANDOM, _random),
}
"""Every operator by the calls of an engine."""
