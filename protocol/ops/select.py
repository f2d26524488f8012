"""Largest element of a row, and its position, in the order of NUM-4."""

from __future__ import annotations

from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_dtype, need_rank, need_shape
from identic.protocol.ops.folds import (
    CHAIN_BLOCK,
    Constant,
    Element,
    Entry,
    Fold,
    Nested,
    Operand,
    Step,
    chain,
    lift,
)
from identic.protocol.ops.primitives import LOWEST
from identic.protocol.tensors import TensorType

_FI = (DType.FLOAT32, DType.INT64, DType.INT32)


def _row_type(op: str, kind: TensorType) -> tuple[int, ...]:
    """Shape of a reduction over a last axis that is not empty."""
    need_dtype(op, kind, _FI)
    need_rank(op, kind, 1)
    need_shape(op, kind.shape[-1] >= 1, got=kind, want="a last axis of length >= 1")
    return kind.shape[:-1]


def _running_maximum(dtype: DType, first: int, count: int, start: Operand) -> Fold:
    """Maximum of ``start`` and ``count`` elements of input 0 from ``first`` on."""

    def step(i: int, best: Operand) -> Step:
        return Step(f"maximum.{dtype.label}", (best, Element(0, first + i)))

    return chain(count, step, start)


class Amax(Operator):
    """Maximum over the last axis: (..., n) gives (...), ``n >= 1``."""

    name = "amax"
    code = 42
    arity = 1

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The operand without its last axis."""
        del attributes
        return TensorType.of(inputs[0].dtype, _row_type(self.name, inputs[0]))

    def fold(self, call: Call, element: int) -> Fold:
        """A chain of maxima from the lowest value."""
        (x,) = call.inputs
        length = x.shape[-1]
        return _running_maximum(x.dtype, element * length, length, Constant(LOWEST[x.dtype]))

    def cost(self, call: Call) -> Cost:
        """One comparison an operand element."""
        return Cost(flops=call.inputs[0].elements, bytes=super().cost(call).bytes)


class Argmax(Operator):
    """Position of the first of the largest along the last axis, as int64."""

    name = "argmax"
    code = 43
    arity = 1

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """int64 over the operand's shape without its last axis."""
        del attributes
        return TensorType.of(DType.INT64, _row_type(self.name, inputs[0]))

    def fold(self, call: Call, element: int) -> Fold:
        """The running maximum and its position, in turn."""
        (x,) = call.inputs
        length = x.shape[-1]
        start = Constant(LOWEST[x.dtype])
        return _running_position(x.dtype, element * length, range(length), start, Constant(0))

    def cost(self, call: Call) -> Cost:
        """Two steps an operand element."""
        return Cost(flops=2 * call.inputs[0].elements, bytes=super().cost(call).bytes)


def _running_position(dtype: DType, row: int, piece: range, best: Operand, place: Operand) -> Fold:
    """Position of the maximum of a row's piece, given the best before it and its place.

    ``row`` is the flat position of the row's first element, ``piece`` not empty. Entry
    ``2i`` holds the position after the piece's element ``i``, entry ``2i - 1`` the maximum
    before it. A longer piece alternates nested maxima and positions in the same way.
    """
    block = 1
    while len(piece) > block * (CHAIN_BLOCK - 1):
        block *= CHAIN_BLOCK - 1

    def at(index: int) -> Step | Nested:
        number, position = divmod(index + 1, 2)
        if not position:
            # The maximum after piece ``number - 1``.
            number -= 1
        before = Entry(2 * number - 1) if number else best
        part = piece[number * block : (number + 1) * block]
        start = part.start
        if not position:
            if block == 1:
                return Step(f"maximum.{dtype.label}", (before, Element(0, row + start)))
            return Nested(_running_maximum(dtype, row + start, len(part), lift(before)))
        earlier = Entry(2 * number - 2) if number else place
        if block == 1:
            operands = (before, Element(0, row + start), earlier, Constant(start))
            return Step(f"argmax.{dtype.label}", operands)
        return Nested(_running_position(dtype, row, part, lift(before), lift(earlier)))

    return Fold(2 * -(-len(piece) // block) - 1, at)


OPERATORS: tuple[Operator, ...] = (Amax(), Argmax())
"""Rows of the table."""
