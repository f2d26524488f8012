"""A small hand-written training program: real operators, small enough to run in Python.

A perceptron with one hidden layer, cross entropy, SGD with momentum, a shuffled sampler and
a learning-rate schedule read by step. ``mlp`` builds the program, ``mlp_state`` and
``mlp_data`` the tensors as bytes, in the order of ``program.state`` and ``program.data``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, Unsigned
from identic.protocol.ops import TABLE
from identic.protocol.program.types import (
    CONTEXT_TYPE,
    Attribute,
    Instruction,
    Program,
    Section,
    Variable,
)
from identic.protocol.tensors import TensorType

F32, I64 = DType.FLOAT32, DType.INT64


def word(x: float) -> int:
    """Bit pattern of the float32 number nearest to ``x``."""
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


class SectionBuilder:
    """Writes a section one operator at a time; values are their numbers."""

    def __init__(self, inputs: Sequence[TensorType]) -> None:
        self.types = list(inputs)
        self.inputs = tuple(inputs)
        self.instructions: list[Instruction] = []

    def op(self, name: str, *inputs: int, **attributes: int | Sequence[int]) -> int:
        """Append an operator; a list attribute is a sequence, a single one an int."""
        pairs = tuple(
            Attribute(key, (value,) if isinstance(value, int) else tuple(value))
            for key, value in sorted(attributes.items())
        )
        call = TABLE[name].call(tuple(self.types[i] for i in inputs), pairs)
        numbers = tuple(Unsigned(i) for i in inputs)
        self.instructions.append(Instruction(name, numbers, pairs, call.output))
        self.types.append(call.output)
        return len(self.types) - 1

    def scalar(self, x: float) -> int:
        """A float32 scalar constant."""
        return self.op("full", dtype=F32, shape=(), word=word(x))

    def build(self, *outputs: int) -> Section:
        """The finished section."""
        return Section(self.inputs, tuple(self.instructions), tuple(Unsigned(o) for o in outputs))


def f32(*shape: int) -> TensorType:
    """float32 of a shape."""
    return TensorType.of(F32, shape)


def mlp(
    *,
    rows: int = 12,
    width: int = 5,
    hidden: int = 6,
    classes: int = 3,
    batch: int = 4,
    shards: int = 1,
    steps: int = 8,
) -> Program:
    """The program for ``rows`` examples of ``width`` numbers in ``classes`` classes."""
    parameters = (
        Variable("hidden.weight", f32(width, hidden)),
        Variable("hidden.bias", f32(hidden)),
        Variable("out.weight", f32(hidden, classes)),
        Variable("out.bias", f32(classes)),
    )
    optimizer = tuple(Variable(f"momentum.{v.name}", v.type) for v in parameters)
    data = (
        Variable("examples", f32(rows, width)),
        Variable("labels", TensorType.of(I64, (rows,))),
        Variable("schedule", f32(steps)),
    )
    return Program(
        version=Count(1),
        shards=Count(shards),
        examples=Count(batch),
        parameters=parameters,
        trainable=tuple(Unsigned(i) for i in range(4)),
        buffers=(),
        optimizer=optimizer,
        data=data,
        gradient=_gradient(parameters, data, batch, shards),
        update=_update(parameters, optimizer, data),
    )


def _gradient(
    parameters: Sequence[Variable], data: Sequence[Variable], batch: int, shards: int
) -> Section:
    b = SectionBuilder([*(v.type for v in (*parameters, *data)), CONTEXT_TYPE])
    w1, b1, w2, b2, examples, labels, _, context = range(8)
    rows = b.types[examples].shape[0]
    classes = b.types[b2].shape[0]
    index = b.op("shuffled_index", context, bound=rows, count=batch, shards=shards)
    x = b.op("take_rows", examples, index)  # (batch, width)
    y = b.op("take_rows", labels, index)  # (batch,)

    before = b.op("add", b.op("matmul", x, w1), b1)
    zero = b.scalar(0.0)
    alive = b.op("gt", before, zero)
    h = b.op("where", alive, before, zero)  # (batch, hidden)
    logits = b.op("add", b.op("matmul", h, w2), b2)  # (batch, classes)

    top = b.op("reshape", b.op("amax", logits), shape=(batch, 1))
    shifted = b.op("sub", logits, top)
    powers = b.op("exp", shifted)
    total = b.op("reshape", b.op("sum_last", powers), shape=(batch, 1))
    logp = b.op("sub", shifted, b.op("log", total))
    column = b.op("reshape", y, shape=(batch, 1))
    picked = b.op("reshape", b.op("gather", logp, column, axis=1), shape=(batch,))
    share = b.scalar(1.0 / batch)
    loss = b.op("mul", b.op("neg", b.op("sum_last", picked)), share)

    names = b.op("iota", count=classes, dtype=I64, start=0, step=1)
    hot = b.op("cast", b.op("eq", column, names), dtype=F32)
    error = b.op("mul", b.op("sub", b.op("div", powers, total), hot), share)
    grad_w2 = b.op("matmul", b.op("permute", h, axes=(1, 0)), error)
    grad_b2 = b.op("sum_first", error)
    back = b.op("matmul", error, b.op("permute", w2, axes=(1, 0)))
    grad_h = b.op("where", alive, back, zero)
    grad_w1 = b.op("matmul", b.op("permute", x, axes=(1, 0)), grad_h)
    grad_b1 = b.op("sum_first", grad_h)
    return b.build(loss, grad_w1, grad_b1, grad_w2, grad_b2)


def _update(
    parameters: Sequence[Variable], optimizer: Sequence[Variable], data: Sequence[Variable]
) -> Section:
    types = [v.type for v in parameters]
    b = SectionBuilder([*types, *types, *(v.type for v in (*optimizer, *data)), CONTEXT_TYPE])
    count = len(types)
    schedule, context = 3 * count + 2, 3 * count + 3
    step = b.op("slice", context, start=(4,), step=(1,), stop=(5,))
    rate = b.op("reshape", b.op("take_rows", schedule, step), shape=())
    decay = b.scalar(0.9)
    moved, momenta = [], []
    for i in range(count):
        parameter, gradient, momentum = i, count + i, 2 * count + i
        kept = b.op("add", b.op("mul", momentum, decay), gradient)
        momenta.append(kept)
        moved.append(b.op("sub", parameter, b.op("mul", kept, rate)))
    return b.build(*moved, *momenta)


def _floats(count: int, seed: int) -> bytes:
    """Numbers in ``[-0.5, 0.5)`` from a small generator, the same everywhere."""
    out, state = [], seed * 2654435761 % 2**32
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append((state >> 8) / 2**24 - 0.5)
    return struct.pack(f"<{count}f", *out)


def mlp_state(program: Program) -> list[bytes]:
    """Initial state: random parameters, zero momenta, loss 0."""
    zeros = [bytes(v.type.nbytes) for v in program.state[len(program.parameters) :]]
    return [
        *(_floats(v.type.elements, seed + 1) for seed, v in enumerate(program.parameters)),
        *zeros,
    ]


def mlp_data(program: Program) -> list[bytes]:
    """Examples, labels and the schedule."""
    examples, labels, schedule = (v.type for v in program.data)
    classes = program.parameters[3].type.elements
    rates = [0.1 / (1 + i) for i in range(schedule.elements)]
    return [
        _floats(examples.elements, 99),
        struct.pack(f"<{labels.elements}q", *(i * 7 % classes for i in range(labels.elements))),
        struct.pack(f"<{len(rates)}f", *rates),
    ]
