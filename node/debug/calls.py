"""Random small calls of every operator of the table."""

from __future__ import annotations

import math
from collections.abc import Callable

from identic.node.debug import windows
from identic.node.debug.cases import BOOL, F32, I32, I64, Case, Maker, case
from identic.protocol.dtypes import DType
from identic.protocol.program.context import context
from identic.protocol.program.types import CONTEXT_TYPE
from identic.protocol.tensors import TensorType


def _of(make: Maker, name: str, *kinds: TensorType, **attributes: object) -> Case:
    return case(name, kinds, [make.words(k) for k in kinds], **attributes)


def _elementwise(name: str, allowed: tuple[DType, ...], count: int) -> Callable[[Maker], Case]:
    def build(make: Maker) -> Case:
        dtype = make.dtype(*allowed)
        kinds = [TensorType.of(dtype, s) for s in make.broadcastable(count)]
        return _of(make, name, *kinds)

    return build


def _where(make: Maker) -> Case:
    dtype = make.dtype(*DType)
    condition, a, b = make.broadcastable(3)
    kinds = (TensorType.of(BOOL, condition), TensorType.of(dtype, a), TensorType.of(dtype, b))
    return _of(make, "where", *kinds)


def _cast(make: Maker) -> Case:
    kind = TensorType.of(make.dtype(*DType), make.shape())
    return _of(make, "cast", kind, dtype=make.dtype(*DType))


def _long(make: Maker) -> int:
    """A length on either side of the borders of the accumulation rules."""
    return make.random.choice([1, 2, 63, 64, 65, 130, 255, 256, 257, 600, 4095, 4096, 4097, 8300])


def _row(name: str, least: int) -> Callable[[Maker], Case]:
    def build(make: Maker) -> Case:
        dtype = make.dtype(F32, F32, I64, I32)
        if make.random.random() < 0.3:
            lead: tuple[int, ...] = (make.length(2),) if make.random.random() < 0.5 else ()
            shape = (*lead, _long(make))
        else:
            shape = (*make.shape(0, 2), max(least, make.length(9)))
        return _of(make, name, TensorType.of(dtype, shape))

    return build


def _sum_first(make: Maker) -> Case:
    dtype = make.dtype(F32, F32, I64, I32)
    length = _long(make) if make.random.random() < 0.3 else make.length(9)
    return _of(make, "sum_first", TensorType.of(dtype, (length, *make.shape(0, 2))))


def _matmul(make: Maker) -> Case:
    M, N = make.length(), make.length()
    K = _long(make) if make.random.random() < 0.2 else make.length(20)
    if K > 20:
        M, N = min(M, 2), min(N, 2)
    a, b = make.broadcastable(2) if K <= 20 else ((), ())
    return _of(make, "matmul", TensorType.of(F32, (*a, M, K)), TensorType.of(F32, (*b, K, N)))


def _convolution(name: str) -> Callable[[Maker], Case]:
    def build(make: Maker) -> Case:
        shapes, attributes = windows.convolution(make.random, name)
        return _of(make, name, *(TensorType.of(F32, s) for s in shapes), **attributes)

    return build


def _pool(name: str) -> Callable[[Maker], Case]:
    def build(make: Maker) -> Case:
        shapes, attributes = windows.pool(make.random, name)
        return _of(make, name, *(TensorType.of(F32, s) for s in shapes), **attributes)

    return build


def _max_pool_dx(make: Maker) -> Case:
    shapes, attributes = windows.pool(make.random, "max_pool_dx")
    kinds = [TensorType.of(dtype, s) for dtype, s in zip((F32, I64), shapes, strict=True)]
    plane = math.prod(attributes["size"])
    inputs = [make.words(kinds[0]), make.indices(kinds[1], plane)]
    return case("max_pool_dx", kinds, inputs, **attributes)


def _index_kind(make: Maker, shape: tuple[int, ...]) -> TensorType:
    return TensorType.of(make.dtype(I64, I32), shape)


def _take_rows(make: Maker) -> Case:
    table = TensorType.of(make.dtype(*DType), (make.length(), *make.shape(0, 2)))
    index = _index_kind(make, make.shape(0, 2))
    inputs = [make.words(table), make.indices(index, table.shape[0])]
    return case("take_rows", (table, index), inputs)


def _gather(make: Maker) -> Case:
    shape = make.shape(1, 3)
    axis = make.random.randrange(len(shape))
    x = TensorType.of(make.dtype(*DType), shape)
    lengths = [
        make.length() if i == axis else make.random.randint(0, n) for i, n in enumerate(shape)
    ]
    index = _index_kind(make, tuple(lengths))
    return case("gather", (x, index), [make.words(x), make.indices(index, shape[axis])], axis=axis)


def _take_windows(make: Maker) -> Case:
    tokens = TensorType.of(make.dtype(*DType), (make.length(12),))
    starts = _index_kind(make, (make.length(),))
    inputs = [make.words(tokens), make.indices(starts, tokens.shape[0])]
    return case("take_windows", (tokens, starts), inputs, length=make.length())


def _add_rows(make: Maker) -> Case:
    count = make.random.choice([0, 1, 3, 9, 256, 257, 530])
    row = make.shape(0, 1) if count > 9 else make.shape(0, 2)
    init = TensorType.of(F32, (make.length(4), *row))
    index = _index_kind(make, (count,))
    source = TensorType.of(F32, (count, *row))
    inputs = [make.words(init), make.indices(index, init.shape[0]), make.words(source)]
    return case("add_rows", (init, index, source), inputs)


def _cumsum(make: Maker) -> Case:
    dtype = make.dtype(F32, F32, I64, I32)
    shape = (*make.shape(0, 2), make.length(9))
    if make.random.random() < 0.15:
        shape = (make.random.choice([255, 256, 257, 520]),)
    return _of(make, "cumsum", TensorType.of(dtype, shape))


def _order(make: Maker) -> TensorType:
    """A small operand to sort: an element's fold has 32 or 64 steps for each of its row."""
    dtype = make.dtype(F32, F32, I64, I32)
    lead: tuple[int, ...] = (make.length(3),) if make.random.random() < 0.5 else ()
    return TensorType.of(dtype, (*lead, make.length(9)))


def _ties(make: Maker, kind: TensorType) -> list[int]:
    """Words of which some are equal."""
    words = make.words(kind)
    for i in range(1, len(words)):
        if make.random.random() < 0.2:
            words[i] = words[make.random.randrange(i)]
    return words


def _argsort(make: Maker) -> Case:
    kind = _order(make)
    return case("argsort", (kind,), [_ties(make, kind)], descending=make.random.getrandbits(1))


def _argtopk(make: Maker) -> Case:
    kind = _order(make)
    k = make.random.randint(0, min(9, kind.shape[-1]))
    largest = make.random.getrandbits(1)
    return case("argtopk", (kind,), [_ties(make, kind)], k=k, largest=largest)


def _set_rows(make: Maker) -> Case:
    row = make.shape(0, 2)
    init = TensorType.of(make.dtype(*DType), (make.length(4), *row))
    index = _index_kind(make, (make.random.choice([0, 1, 3, 9, 40]),))
    source = TensorType.of(init.dtype, (*index.shape, *row))
    inputs = [make.words(init), make.indices(index, init.shape[0]), make.words(source)]
    return case("set_rows", (init, index, source), inputs)


def _scatter(name: str, *allowed: DType) -> Callable[[Maker], Case]:
    def build(make: Maker) -> Case:
        shape = make.shape(1, 3)
        axis = make.random.randrange(len(shape))
        x = TensorType.of(make.dtype(*allowed), shape)
        count = make.random.choice([0, 1, 2, 5, 9])
        lengths = [count if i == axis else make.random.randint(0, n) for i, n in enumerate(shape)]
        if make.random.random() < 0.1 and all(n <= 2 for n in shape):
            lengths[axis] = make.random.choice([256, 257, 530])
        index = _index_kind(make, tuple(lengths))
        source = TensorType.of(x.dtype, index.shape)
        inputs = [make.words(x), make.indices(index, shape[axis]), make.words(source)]
        return case(name, (x, index, source), inputs, axis=axis)

    return build


def _reshape(make: Maker) -> Case:
    shape = make.shape()
    target = list(shape)
    make.random.shuffle(target)
    if make.random.random() < 0.5:
        target.insert(make.random.randint(0, len(target)), 1)
    return _of(make, "reshape", TensorType.of(make.dtype(*DType), shape), shape=target)


def _permute(make: Maker) -> Case:
    shape = make.shape()
    axes = list(range(len(shape)))
    make.random.shuffle(axes)
    return _of(make, "permute", TensorType.of(make.dtype(*DType), shape), axes=axes)


def _expand(make: Maker) -> Case:
    shape = make.shape()
    kept = shape[make.random.randint(0, len(shape)) :]
    source = tuple(1 if make.random.random() < 0.5 else n for n in kept)
    return _of(make, "expand", TensorType.of(make.dtype(*DType), source), shape=shape)


def _slice(make: Maker) -> Case:
    shape = tuple(make.length(9) for _ in make.shape())
    start = [make.random.randint(0, n) for n in shape]
    stop = [make.random.randint(s, n) for s, n in zip(start, shape, strict=True)]
    step = [make.random.randint(1, 3) for _ in shape]
    kind = TensorType.of(make.dtype(*DType), shape)
    return _of(make, "slice", kind, start=start, stop=stop, step=step)


def _concat(make: Maker) -> Case:
    shape = list(make.shape(1, 3))
    axis = make.random.randrange(len(shape))
    dtype = make.dtype(*DType)
    kinds = []
    for _ in range(make.random.randint(1, 3)):
        shape[axis] = make.length()
        kinds.append(TensorType.of(dtype, shape))
    return _of(make, "concat", *kinds, axis=axis)


def _attribute_word(make: Maker, dtype: DType) -> int:
    word = make.word(dtype)
    return dtype.signed(word) if dtype is I64 else word


def _pad(make: Maker) -> Case:
    kind = TensorType.of(make.dtype(*DType), make.shape(0, 2))
    before = [make.random.randint(0, 2) for _ in kind.shape]
    after = [make.random.randint(0, 2) for _ in kind.shape]
    value = _attribute_word(make, kind.dtype)
    return _of(make, "pad", kind, before=before, after=after, value=value)


def _full(make: Maker) -> Case:
    dtype = make.dtype(*DType)
    word = _attribute_word(make, dtype)
    return _of(make, "full", dtype=int(dtype), shape=make.shape(), word=word)


def _iota(make: Maker) -> Case:
    start, step = (make.random.choice([0, 1, -3, 2**62, make.random.getrandbits(40)]) for _ in "ab")
    dtype = make.dtype(I64, I32)
    return _of(make, "iota", dtype=int(dtype), count=make.length(9), start=start, step=step)


def _context(make: Maker) -> list[int]:
    seed, step = make.random.getrandbits(64), make.random.choice([0, 1, 7, 2**40])
    return list(context(seed, step, make.random.randrange(4)))


def _uniform(make: Maker) -> Case:
    attributes = {"shape": make.shape(), "stream": make.random.getrandbits(32)}
    return case("random_uniform", (CONTEXT_TYPE,), [_context(make)], **attributes)


def _random_index(make: Maker) -> Case:
    bound = make.random.choice([1, 2, 1000, 2**62])
    attributes = {"bound": bound, "count": make.length(9), "stream": make.random.getrandbits(32)}
    return case("random_index", (CONTEXT_TYPE,), [_context(make)], **attributes)


def _shuffled_index(make: Maker) -> Case:
    bound = make.random.choice([1, 2, 5, 64, 1000, 2**40])
    attributes = {"bound": bound, "count": make.length(9), "shards": make.random.randint(1, 4)}
    return case("shuffled_index", (CONTEXT_TYPE,), [_context(make)], **attributes)


_UNARY = ("neg", "abs", "exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "sqrt", "rsqrt")
_NUMBERS = (F32, F32, I64, I32)

BUILDERS: dict[str, Callable[[Maker], Case]] = {
    **{name: _elementwise(name, (F32,), 1) for name in _UNARY},
    "not": _elementwise("not", (BOOL,), 1),
    **{n: _elementwise(n, _NUMBERS, 2) for n in ("add", "sub", "mul", "maximum", "minimum")},
    "div": _elementwise("div", (F32,), 2),
    **{n: _elementwise(n, (*_NUMBERS, BOOL), 2) for n in ("eq", "ne")},
    **{n: _elementwise(n, _NUMBERS, 2) for n in ("lt", "le", "gt", "ge")},
    **{n: _elementwise(n, (BOOL,), 2) for n in ("and", "or")},
    "where": _where,
    "cast": _cast,
    "sum_last": _row("sum_last", 0),
    "sum_first": _sum_first,
    "amax": _row("amax", 1),
    "argmax": _row("argmax", 1),
    "cumsum": _cumsum,
    "argsort": _argsort,
    "argtopk": _argtopk,
    "matmul": _matmul,
    **{name: _convolution(name) for name in ("conv", "conv_dx", "conv_dw")},
    **{n: _pool(n) for n in ("max_pool", "max_pool_indices", "sum_pool", "sum_pool_dx")},
    "max_pool_dx": _max_pool_dx,
    "take_rows": _take_rows,
    "gather": _gather,
    "take_windows": _take_windows,
    "add_rows": _add_rows,
    "set_rows": _set_rows,
    "scatter": _scatter("scatter", *DType),
    "scatter_add": _scatter("scatter_add", F32),
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "full": _full,
    "iota": _iota,
    "random_uniform": _uniform,
    "random_index": _random_index,
    "shuffled_index": _shuffled_index,
}
"""How to make a case of each operator."""
