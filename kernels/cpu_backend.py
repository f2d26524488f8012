"""The operators on the CPU through the native module ``identic.kernels._native``.

The vector path (AVX-512, AVX2, NEON, scalar) and the number of threads are the native
module's own; the bits depend on neither. Types and shapes were checked when the call was
made (``Operator.call``); the native module checks sizes and address ranges again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import Array, empty, part, row_major, words
from identic.kernels.compiled import compile_step
from identic.kernels.windows import WINDOWED, native
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import StepPlan

Kernel = Callable[[Call, Sequence[Array]], Array]

_TWO_64 = 1 << 64
_SHARDS = 1 << 31


def broadcast_strides(
    shape: Sequence[int], operand: Sequence[int], strides: Sequence[int]
) -> list[int]:
    """Strides of an operand over the shape it broadcasts to: 0 along what repeats."""
    lead = len(shape) - len(operand)
    kept = [0 if n == 1 else s for n, s in zip(operand, strides, strict=True)]
    return [0] * lead + kept


def element_strides(array: Array) -> tuple[int, ...]:
    """Distances between neighbours in elements."""
    return tuple(s // array.itemsize for s in array.strides)


def over(shape: Sequence[int], operand: Array) -> list[int]:
    """Element strides of ``operand`` over the shape it broadcasts to."""
    return broadcast_strides(shape, operand.shape, element_strides(operand))


# ---- elementwise ----------------------------------------------------------------------------


def _unary(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    _native.unary(call.op.name, out, row_major(inputs[0]))
    return out


def _binary(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    a, b = inputs
    shape = out.shape
    _native.binary(call.op.name, out, a, b, shape, over(shape, a), over(shape, b))
    return out


def _where(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    condition, a, b = inputs
    shape = out.shape
    strides = (over(shape, condition), over(shape, a), over(shape, b))
    _native.where(out, condition, a, b, shape, *strides)
    return out


def _cast(call: Call, inputs: Sequence[Array]) -> Array:
    if call.inputs[0].dtype is call.output.dtype:
        return inputs[0].copy(order="C")
    out = empty(call.output)
    _native.cast(out, row_major(inputs[0]))
    return out


# ---- along an axis --------------------------------------------------------------------------


def _last(name: str) -> Kernel:
    function = getattr(_native, name)

    def run(call: Call, inputs: Sequence[Array]) -> Array:
        out = empty(call.output)
        function(out, row_major(inputs[0]), out.size, call.inputs[0].shape[-1])
        return out

    return run


def _sum_first(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    _native.sum_first(out, row_major(inputs[0]), call.inputs[0].shape[0], out.size)
    return out


def _cumsum(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    length = call.output.shape[-1]
    _native.cumsum(out, row_major(inputs[0]), out.size // max(1, length), length)
    return out


def _sorted(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    descending = call.integer("descending" if call.op.name == "argsort" else "largest")
    rows, length = math.prod(call.output.shape[:-1]), call.inputs[0].shape[-1]
    count = call.output.shape[-1]
    _native.argsort(out, row_major(inputs[0]), rows, length, count, bool(descending))
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


def matmul_operand(x: Array, batch: Sequence[int]) -> tuple[Array, tuple[int, int, int]]:
    """The operand and its (batch, row, column) strides, copied where no three suffice."""
    strides = element_strides(x)
    outer = broadcast_strides(batch, x.shape[:-2], strides[:-2])
    stride = batch_stride(batch, outer)
    if stride is None:
        if x.flags.c_contiguous:
            x = np.broadcast_to(x, (*batch, *x.shape[-2:]))
        return matmul_operand(x.copy(order="C"), batch)
    return x, (stride, strides[-2], strides[-1])


def _matmul(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    batch = call.output.shape[:-2]
    M, K = call.inputs[0].shape[-2:]
    N = call.output.shape[-1]
    a, a_strides = matmul_operand(inputs[0], batch)
    b, b_strides = matmul_operand(inputs[1], batch)
    _native.matmul(out, a, b, math.prod(batch), M, N, K, a_strides, b_strides)
    return out


# ---- convolutions and pools -----------------------------------------------------------------


def _windowed(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    native(call)(out, *(row_major(x) for x in inputs))
    return out


# ---- indices --------------------------------------------------------------------------------


def _take_rows(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    table = row_major(inputs[0])
    rows = call.inputs[0].shape[0]
    row_bytes = math.prod(call.inputs[0].shape[1:]) * table.itemsize
    _native.take_rows(out, table, row_major(inputs[1]), rows, row_bytes)
    return out


def _take_windows(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    tokens, starts = (row_major(x) for x in inputs)
    _native.take_windows(out, tokens, starts, call.integer("length"))
    return out


def _gather(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    x, index = (row_major(a) for a in inputs)
    _native.gather(out, x, index, call.integer("axis"))
    return out


def _add_rows(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    init, index, source = (row_major(x) for x in inputs)
    inner = math.prod(call.output.shape[1:])
    _native.add_rows(out, init, index, source, call.output.shape[0], inner)
    return out


def _set_rows(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    init, index, source = (row_major(x) for x in inputs)
    inner = math.prod(call.output.shape[1:])
    _native.set_rows(out, init, index, source, call.output.shape[0], inner)
    return out


def _scatter(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    x, index, source = (row_major(a) for a in inputs)
    function = _native.scatter if call.op.name == "scatter" else _native.scatter_add
    function(out, x, index, source, call.integer("axis"))
    return out


# ---- movement and creation ------------------------------------------------------------------


def _copy(out: Array, x: Array) -> Array:
    """Fill ``out`` with the elements of ``x``, an array or view of the same shape."""
    if out.size:
        _native.copy_strided(out, 0, element_strides(out), x, 0, element_strides(x), out.shape)
    return out


def _reshape(call: Call, inputs: Sequence[Array]) -> Array:
    x = inputs[0]
    return _copy(empty(call.inputs[0]), x).reshape(call.output.shape)


def _permute(call: Call, inputs: Sequence[Array]) -> Array:
    return _copy(empty(call.output), inputs[0].transpose(call.integers("axes")))


def _expand(call: Call, inputs: Sequence[Array]) -> Array:
    return _copy(empty(call.output), np.broadcast_to(inputs[0], call.output.shape))


def _slice(call: Call, inputs: Sequence[Array]) -> Array:
    bounds = zip(*(call.integers(n) for n in ("start", "stop", "step")), strict=True)
    return _copy(empty(call.output), part(inputs[0], *(slice(*b) for b in bounds)))


def _concat(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    axis, at = call.integer("axis"), 0
    for x in inputs:
        place = (slice(None),) * axis + (slice(at, at + x.shape[axis]),)
        _copy(out[place], x)
        at += x.shape[axis]
    return out


def _pad(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    _native.full(out, call.output.dtype.pattern(call.integer("value")))
    sides = zip(call.integers("before"), call.inputs[0].shape, strict=True)
    _copy(part(out, *(slice(b, b + n) for b, n in sides)), inputs[0])
    return out


def _full(call: Call, inputs: Sequence[Array]) -> Array:
    del inputs
    out = empty(call.output)
    _native.full(out, call.output.dtype.pattern(call.integer("word")))
    return out


def _iota(call: Call, inputs: Sequence[Array]) -> Array:
    del inputs
    out = empty(call.output)
    _native.iota(out, call.integer("start"), call.integer("step"))
    return out


# ---- random numbers -------------------------------------------------------------------------


def _random_uniform(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    _, _, k0, k1, _, shard = (w & 0xFFFFFFFF for w in words(inputs[0]))
    _native.philox_uniform(out, k0, k1, call.integer("stream"), shard)
    return out


def _random_index(call: Call, inputs: Sequence[Array]) -> Array:
    out = empty(call.output)
    _, _, k0, k1, _, shard = (w & 0xFFFFFFFF for w in words(inputs[0]))
    _native.philox_index(out, k0, k1, call.integer("bound"), call.integer("stream"), shard)
    return out


def _shuffled_index(call: Call, inputs: Sequence[Array]) -> Array:
    k0, k1, _, _, step, shard = words(inputs[0])
    out = empty(call.output)
    first = (step * call.integer("shards") + shard) * out.size % _TWO_64
    for start, piece in aligned_pieces(out, first):
        # The native twin names a position by step, shards and shard, in units of its length.
        high, low = divmod(start // piece.size, _SHARDS)
        key = (k0 & 0xFFFFFFFF, k1 & 0xFFFFFFFF)
        _native.shuffled_index(piece, *key, call.integer("bound"), high, _SHARDS, low)
    return out


def aligned_pieces(out: Array, first: int) -> Iterator[tuple[int, Array]]:
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
    "add_rows": _add_rows,
    "set_rows": _set_rows,
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
    "random_uniform": _random_uniform,
    "random_index": _random_index,
    "shuffled_index": _shuffled_index,
}
"""The CPU twin of every operator."""


class CpuBackend:
    """Runs operators with the native module.

    Args:
        threads: how many threads the native module uses, for the whole process; its present
            number is kept where this is ``None``.
    """

    name = "cpu"

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None:
            _native.set_threads(threads)

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of one operator, a new row-major array."""
        return KERNELS[call.op.name](call, inputs)

    def compile(self, plan: StepPlan) -> Callable[[list[Array]], list[Array]]:
        """The whole step prepared; one step of it runs at a time."""
        return compile_step(plan, self.run)
