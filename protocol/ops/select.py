"""Largest element of a row, and its position, in the order of NUM-4."""

from __future__ import annotations

from collections.abc import Callable

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

Item = Callable[[int], tuple[Element, int]]
"""An element by its number among those searched, and the position it counts as."""


def _row_type(op: str, kind: TensorType) -> tuple[int, ...]:
    """Shape of a reduction over a last axis that is not empty."""
    need_dtype(op, kind, _FI)
    need_rank(op, kind, 1)
    need_shape(op, kind.shape[-1] >= 1, got=kind, want="a last axis of length >= 1")
    return kind.shape[:-1]


def _row(first: int) -> Item:
    """The elements of input 0 from flat position ``first`` on."""
    return lambda i: (Element(0, first + i), i)


def running_maximum(dtype: DType, piece: range, item: Item, start: Operand) -> Fold:
    """Maximum of ``start`` and the items whose numbers are in ``piece``, which is not empty."""

    def step(i: int, best: Operand) -> Step:
        return Step(f"maximum.{dtype.label}", (best, item(piece[i])[0]))

    return chain(len(piece), step, start)


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
        start = Constant(LOWEST[x.dtype])
        return running_maximum(x.dtype, range(length), _row(element * length), start)

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
        item = _row(element * length)
        return running_position(x.dtype, range(length), item, start, Constant(0))

    def cost(self, call: Call) -> Cost:
        """Two steps an operand element."""
        return Cost(flops=2 * call.inputs[0].elements, bytes=super().cost(call).bytes)


def running_position(dtype: DType, piece: range, item: Item, best: Operand, place: Operand) -> Fold:
    """Position of the maximum of a piece, given the best before it and its position.

    ``piece`` holds the numbers of the items and is not empty. Entry ``2i`` holds the position
    after the piece's item ``i``, entry ``2i - 1`` the maximum before it. A longer piece
    alternates nested maxima and positions in the same way.
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
        if not position:
            if block == 1:
                return Step(f"maximum.{dtype.label}", (before, item(part.start)[0]))
            return Nested(running_maximum(dtype, part, item, lift(before)))
        earlier = Entry(2 * number - 2) if number else place
        if block == 1:
            candidate, at = item(part.start)
            return Step(f"argmax.{dtype.label}", (before, candidate, earlier, Constant(at)))
        return Nested(running_position(dtype, part, item, lift(before), lift(earlier)))

    return Fold(2 * -(-len(piece) // block) - 1, at)


OPERATORS: tuple[Operator, ...] = (Amax(), Argmax())
"""Rows of the table."""
