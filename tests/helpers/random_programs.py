"""Random programs: a handful of operators over a few small tensors, views among them.

The gradient section computes buffers from buffers; there is nothing to train. What the
executor does with layouts, liveness and fusion is exercised by all of them.
"""

from __future__ import annotations

import random

from identic.protocol.dtypes import DType
from identic.protocol.errors import ProtocolError
from identic.protocol.ids import Count
from identic.protocol.program.types import CONTEXT_TYPE, Program, Section, Variable
from identic.protocol.tensors import TensorType, broadcast_shapes
from tests.helpers.programs import SectionBuilder

F32, BOOL, I64 = DType.FLOAT32, DType.BOOL, DType.INT64
SHAPES: tuple[tuple[int, ...], ...] = (
    (4, 6),
    (6,),
    (4, 1),
    (),
    (2, 4, 6),
    (6, 4),
    (3, 1, 6),
    (0, 6),
)
UNARY = ("neg", "abs", "exp", "tanh", "sqrt", "rsqrt", "sigmoid", "erf")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
KINDS = (
    *["unary"] * 3,
    *["binary"] * 8,
    *["view"] * 3,
    *["norm"] * 2,
    *("where", "compare", "row", "column", "matmul", "join", "cast"),
)


class Grower:
    """Adds random operators to a section."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        kinds = [TensorType.of(F32, shape) for shape in SHAPES]
        self.builder = SectionBuilder([*kinds, CONTEXT_TYPE])

    def shape(self, value: int) -> tuple[int, ...]:
        return tuple(int(n) for n in self.builder.types[value].shape)

    def pick(self, dtype: DType = F32) -> int | None:
        """A value of a type, a recent one more often."""
        values = [i for i, kind in enumerate(self.builder.types) if kind.dtype is dtype]
        recent = values[-6:] if self.random.random() < 0.7 else values
        return self.random.choice(recent) if values else None

    def partner(self, value: int) -> int | None:
        """A float value that broadcasts with ``value``."""
        fitting = []
        for other, kind in enumerate(self.builder.types):
            if kind.dtype is F32 and _broadcasts(self.shape(value), self.shape(other)):
                fitting.append(other)
        return self.random.choice(fitting) if fitting else None

    def grow(self) -> None:
        """Append one operator."""
        b, value = self.builder, self.pick()
        assert value is not None
        shape = self.shape(value)
        kind = self.random.choice(KINDS)
        if kind == "unary":
            b.op(self.random.choice(UNARY), value)
        elif kind in {"binary", "compare", "where"}:
            self.combine(kind, value)
        elif kind == "view":
            self.view(value, shape)
        elif kind == "cast":
            mask = self.pick(BOOL)
            if mask is not None:
                b.op("cast", mask, dtype=F32)
        elif shape:
            self.along(kind, value, shape)

    def along(self, kind: str, value: int, shape: tuple[int, ...]) -> None:
        """An operator along an axis."""
        b = self.builder
        if kind == "row" and shape[-1]:
            b.op(self.random.choice(["sum_last", "amax"]), value)
        elif kind == "norm" and shape[-1]:
            self.norm(value, shape)
        elif kind == "column":
            b.op("sum_first", value)
        elif kind == "matmul" and len(shape) >= 2:
            axes = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            b.op("matmul", value, b.op("permute", value, axes=axes))
        elif kind == "join":
            b.op("concat", value, value, axis=self.random.randrange(len(shape)))

    def combine(self, kind: str, value: int) -> None:
        """An operator of two or three operands."""
        other = self.partner(value)
        if other is None:
            return
        if kind == "binary":
            self.builder.op(self.random.choice(BINARY), value, other)
        elif kind == "compare":
            self.builder.op(self.random.choice(COMPARE), value, other)
        else:
            mask = self.builder.op("lt", value, other)
            self.builder.op("where", mask, other, value)

    def norm(self, value: int, shape: tuple[int, ...]) -> None:
        """A reduction of rows, something done to its result, and the row under it."""
        b = self.builder
        row = b.op(self.random.choice(["sum_last", "amax"]), value)
        if self.random.random() < 0.5:
            row = b.op(self.random.choice(UNARY), row)
        column = b.op("reshape", row, shape=(*shape[:-1], 1))
        if self.random.random() < 0.5:
            column = b.op("add", column, b.scalar(0.25))
        b.op(self.random.choice(BINARY), value, column)

    def view(self, value: int, shape: tuple[int, ...]) -> None:
        """A view of a value."""
        b = self.builder
        kind = self.random.choice(["permute", "reshape", "expand", "slice"])
        if kind == "permute":
            axes = list(range(len(shape)))
            self.random.shuffle(axes)
            b.op("permute", value, axes=axes)
        elif kind == "reshape":
            mixed = list(shape)
            self.random.shuffle(mixed)
            b.op("reshape", value, shape=mixed)
        elif kind == "expand" and len(shape) < 4:
            b.op("expand", value, shape=(self.random.choice([1, 2]), *shape))
        elif kind == "slice":
            start = [self.random.randint(0, n) for n in shape]
            stop = [self.random.randint(s, n) for s, n in zip(start, shape, strict=True)]
            step = [self.random.randint(1, 2) for _ in shape]
            b.op("slice", value, start=start, stop=stop, step=step)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        broadcast_shapes([a, b])
    except ProtocolError:
        return False
    return True


def random_program(seed: int, operators: int) -> Program:
    """A program whose buffers after a step are random functions of those before it."""
    grower = Grower(seed)
    for _ in range(operators):
        grower.grow()
    b = grower.builder
    outputs = []
    for number, shape in enumerate(SHAPES):
        made = [i for i, t in enumerate(b.types) if t == TensorType.of(F32, shape)]
        outputs.append(grower.random.choice(made[1:] or [number]))
    loss = b.scalar(1.0)
    buffers = tuple(
        Variable(f"buffer{i}", TensorType.of(F32, shape)) for i, shape in enumerate(SHAPES)
    )
    return Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=(),
        trainable=(),
        buffers=buffers,
        optimizer=(),
        data=(),
        gradient=b.build(loss, *outputs),
        update=Section((CONTEXT_TYPE,), (), ()),
    )
