"""Step plans of the size of real trainings: shapes only, nothing that could be executed.

``transformer`` writes the operators of a decoder's training step as capture does: matrix
products, layer norms, softmax, embedding, AdamW. ``large_call`` is one operator at the largest
shapes that such a step has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.ids import Count
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import Load, Part, PlannedCall, Source, StepPlan
from identic.protocol.program.types import CONTEXT_TYPE, LOSS_TYPE, Program, Section, Variable
from identic.protocol.tensors import TensorType
from tests.helpers.calls import BUILDERS, Maker, case

F32, I64, BOOL = DType.FLOAT32, DType.INT64, DType.BOOL


@dataclass(frozen=True)
class Sizes:
    """A decoder and its batch."""

    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int
    context: int
    batch: int
    shards: int

    @property
    def tokens(self) -> int:
        """Tokens of a shard."""
        return self.batch * self.context


GPT2 = Sizes(12, 768, 12, 3072, 50_257, 1024, 8, 18)
"""GPT-2 small, 18 shards of 8 windows."""

LLAMA = Sizes(32, 4096, 32, 14_336, 128_256, 2048, 1, 7)
"""Llama 3, 8B, without grouped queries; 7 shards of a window."""


class Writer:
    """Writes a plan one operator at a time; values are their numbers."""

    def __init__(self, parameters: Sequence[TensorType]) -> None:
        state = [*parameters, *parameters, *parameters]
        self.loads = [Load(Source.STATE, i, kind) for i, kind in enumerate(state)]
        self.loads.append(Load(Source.DATA, 0, TensorType.of(I64, (1 << 24,))))
        self.loads.append(Load(Source.CONTEXT, 0, CONTEXT_TYPE))
        self.types = [load.type for load in self.loads]
        self.calls: list[PlannedCall] = []
        self.known = {kind: value for value, kind in enumerate(self.types)}

    def op(self, name: str, *inputs: int, **attributes: object) -> int:
        """Append an operator."""
        kinds = [self.types[i] for i in inputs]
        return self.call(case(name, kinds, [], **attributes).call, inputs)

    def call(self, call: Call, inputs: Sequence[int]) -> int:
        """Append a checked call."""
        self.calls.append(PlannedCall(call, tuple(inputs), Part.GRADIENT, 0, len(self.calls)))
        self.types.append(call.output)
        self.known[call.output] = len(self.types) - 1
        return len(self.types) - 1

    def plan(self, parameters: Sequence[TensorType], outputs: Sequence[int]) -> StepPlan:
        """The finished plan."""
        empty = Section((), (), ())
        named = tuple(Variable(f"p{i}", kind) for i, kind in enumerate(parameters))
        kept = tuple(Variable(f"s{i}", kind) for i, kind in enumerate((*parameters, *parameters)))
        data = (Variable("tokens", self.types[len(self.loads) - 2]),)
        program = Program(
            version=Count(1),
            shards=Count(1),
            examples=Count(1),
            parameters=named,
            trainable=(),
            buffers=(),
            optimizer=kept,
            data=data,
            gradient=empty,
            update=empty,
        )
        return StepPlan(program, tuple(self.loads), tuple(self.calls), tuple(outputs))


def f32(*shape: int) -> TensorType:
    """float32 of a shape."""
    return TensorType.of(F32, shape)


def transformer(sizes: Sizes, extra: Sequence[Call] = ()) -> StepPlan:
    """The unrolled training step of a decoder, with calls of ``extra`` at its end."""
    C, V = sizes.width, sizes.vocabulary
    matrices = [(C, 3 * C), (C, C), (C, sizes.hidden), (sizes.hidden, C)]
    parameters = [f32(V, C), *(f32(*shape) for _ in range(sizes.layers) for shape in matrices)]
    w = Writer(parameters)
    gradients: list[int] = []
    for _ in range(sizes.shards):
        gradients = _shard(w, sizes)
    outputs = [_adamw(w, i, gradients[i]) for i in range(len(parameters))]
    for call in extra:
        w.call(call, [_like(w, kind) for kind in call.inputs])
    loss = w.op("full", dtype=int(LOSS_TYPE.dtype), shape=(), word=0)
    return w.plan(parameters, [*outputs, *outputs, *outputs, loss])


def _like(w: Writer, kind: TensorType) -> int:
    """A value of a type."""
    if kind not in w.known:
        w.op("full", dtype=int(kind.dtype), shape=kind.shape, word=0)
    return w.known[kind]


def _shard(w: Writer, sizes: Sizes) -> list[int]:
    """Forward and backward; gradients by parameter."""
    N = sizes.tokens
    tokens = len(w.loads) - 2
    starts = w.op("random_index", len(w.loads) - 1, bound=1 << 20, count=sizes.batch, stream=1)
    windows = w.op("take_windows", tokens, starts, length=sizes.context)
    index = w.op("reshape", windows, shape=(N,))
    x = w.op("take_rows", 0, index)
    kept = []
    for layer in range(sizes.layers):
        kept.append(x)
        x = _layer(w, sizes, 1 + 4 * layer, x)
    logits = w.op("matmul", _norm(w, x), w.op("permute", 0, axes=(1, 0)))
    error = _softmax(w, logits)
    x = w.op("matmul", error, 0)
    embedded = w.op("add_rows", 0, index, x)
    for layer in reversed(range(sizes.layers)):
        x = _layer(w, sizes, 1 + 4 * layer, w.op("add", x, kept[layer]))
    products = [_product(w, 1 + number, N) for number in range(4 * sizes.layers)]
    return [embedded, *products]


def _product(w: Writer, parameter: int, tokens: int) -> int:
    """Gradient of a matrix: a product over the tokens."""
    rows, columns = w.types[parameter].shape
    return w.op("matmul", _like(w, f32(rows, tokens)), _like(w, f32(tokens, columns)))


def _norm(w: Writer, x: int) -> int:
    """A layer norm."""
    N, _ = w.types[x].shape
    mean = w.op("reshape", w.op("sum_last", x), shape=(N, 1))
    centred = w.op("sub", x, mean)
    square = w.op("sum_last", w.op("mul", centred, centred))
    return w.op("mul", centred, w.op("reshape", w.op("rsqrt", square), shape=(N, 1)))


def _softmax(w: Writer, x: int) -> int:
    """A softmax over the last axis."""
    lead = (*w.types[x].shape[:-1], 1)
    top = w.op("reshape", w.op("amax", x), shape=lead)
    powers = w.op("exp", w.op("sub", x, top))
    return w.op("div", powers, w.op("reshape", w.op("sum_last", powers), shape=lead))


def _layer(w: Writer, sizes: Sizes, first: int, x: int) -> int:
    """Attention, then the layers at each position."""
    N, C, B, T, H = sizes.tokens, sizes.width, sizes.batch, sizes.context, sizes.heads
    qkv = w.op("matmul", _norm(w, x), first)
    parts = []
    for i in range(3):
        part = w.op("slice", qkv, start=(0, i * C), step=(1, 1), stop=(N, (i + 1) * C))
        part = w.op("reshape", part, shape=(B, T, H, C // H))
        parts.append(w.op("permute", part, axes=(0, 2, 1, 3)))
    scores = w.op("matmul", parts[0], w.op("permute", parts[1], axes=(0, 1, 3, 2)))
    y = w.op("permute", w.op("matmul", _softmax(w, scores), parts[2]), axes=(0, 2, 1, 3))
    x = w.op("add", x, w.op("matmul", w.op("reshape", y, shape=(N, C)), first + 1))
    hidden = w.op("matmul", _norm(w, x), first + 2)
    return w.op("add", x, w.op("matmul", w.op("tanh", hidden), first + 3))


def _adamw(w: Writer, parameter: int, gradient: int) -> int:
    """The update of one parameter, with its square for a norm."""
    square = w.op("mul", gradient, gradient)
    w.op("sum_last", w.op("reshape", square, shape=(math.prod(w.types[square].shape),)))
    mean = w.op("add", gradient, parameter)
    return w.op("sub", parameter, w.op("div", mean, w.op("sqrt", square)))


# ---- one operator at its largest -------------------------------------------------------------

_N, _V, _C = 8192, 128_256, 4096

_LARGE: dict[str, Callable[[], Call]] = {
    "where": lambda: _made("where", TensorType.of(BOOL, (_N, _V)), f32(_N, _V), f32()),
    "cast": lambda: _made("cast", f32(_N, _V), dtype=int(I64)),
    "not": lambda: _made("not", TensorType.of(BOOL, (_N, _V))),
    "and": lambda: _made("and", *[TensorType.of(BOOL, (_N, _V))] * 2),
    "or": lambda: _made("or", *[TensorType.of(BOOL, (_N, _V))] * 2),
    "sum_last": lambda: _made("sum_last", f32(_V * _C)),
    "sum_first": lambda: _made("sum_first", f32(_N, _V)),
    "matmul": lambda: _made("matmul", f32(_C, 1 << 20), f32(1 << 20, _C)),
    "take_rows": lambda: _made("take_rows", f32(_V, _C), TensorType.of(I64, (_N,))),
    "gather": lambda: _made("gather", f32(_N, _V), TensorType.of(I64, (_N, _V)), axis=1),
    "take_windows": lambda: _made(
        "take_windows", TensorType.of(I64, (1 << 33,)), TensorType.of(I64, (_N,)), length=_C
    ),
    "add_rows": lambda: _made(
        "add_rows", f32(_V, _C), TensorType.of(I64, (1 << 18,)), f32(1 << 18, _C)
    ),
    "set_rows": lambda: _made(
        "set_rows", f32(_V, _C), TensorType.of(I64, (1 << 18,)), f32(1 << 18, _C)
    ),
    "scatter": lambda: _along("scatter"),
    "scatter_add": lambda: _along("scatter_add"),
    "argtopk": lambda: _made("argtopk", f32(_N, _V), k=_V, largest=1),
    "argsort": lambda: _made("argsort", TensorType.of(I64, (_N, _V)), descending=0),
    "concat": lambda: _made("concat", *[f32(_N, _C)] * 32, axis=1),
    "expand": lambda: _made("expand", f32(), shape=(_N, _V)),
    "full": lambda: _made("full", dtype=int(F32), shape=(_N, _V), word=0),
    "iota": lambda: _made("iota", dtype=int(I64), count=1 << 30, start=0, step=1),
    "random_uniform": lambda: _made("random_uniform", CONTEXT_TYPE, shape=(_N, _V), stream=1),
    "random_index": lambda: _made(
        "random_index", CONTEXT_TYPE, bound=1 << 40, count=1 << 20, stream=1
    ),
    "shuffled_index": lambda: _made(
        "shuffled_index", CONTEXT_TYPE, bound=1 << 40, count=1 << 20, shards=8
    ),
}


def _made(name: str, *kinds: TensorType, **attributes: object) -> Call:
    return case(name, kinds, [], **attributes).call


def _along(name: str) -> Call:
    x, index = f32(_N, _V), TensorType.of(I64, (_N, _V))
    return _made(name, x, index, x, axis=1)


def large_call(name: str) -> Call:
    """A call of an operator at the largest shapes of a training; a small one of newer ones."""
    if name in _LARGE:
        return _LARGE[name]()
    arity = TABLE[name].arity
    if arity in (1, 2) and not TABLE[name].attributes:
        return _made(name, *[f32(_N, _V)] * arity)
    return BUILDERS[name](Maker(1)).call
