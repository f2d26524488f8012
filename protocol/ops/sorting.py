"""Positions of a row's elements in sorted order, and of its largest or smallest.

The order is that of the keys of ``order_key`` (OP-31); equal keys keep the order of their
positions. An element's fold finds the key that has its rank, bit by bit from the top, by
counting the row's keys below each candidate, and then the position of the key: 32 or 64
passes over the row, where a sort has no short proof of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_attribute, need_dtype, need_rank
from identic.protocol.ops.folds import (
    CHAIN_BLOCK,
    Constant,
    Element,
    Entry,
    Fold,
    Nested,
    Operand,
    Step,
    lift,
)
from identic.protocol.tensors import TensorType

_FI = (DType.FLOAT32, DType.INT64, DType.INT32)

ROUND = 6
"""Entries for each bit of a key."""

MINUS_ONE = Constant(DType.INT64.pattern(-1))


def _row_type(op: str, kind: TensorType) -> int:
    """Length of the rows of an operand that can be sorted."""
    need_dtype(op, kind, _FI)
    need_rank(op, kind, 1)
    return kind.shape[-1]


def _flag(op: str, name: str, value: int) -> None:
    need_attribute(op, name, value in (0, 1), got=value, want="0 or 1")


class _Order(Operator):
    """What both share: positions in a row, found by rank."""

    arity = 1

    def descending(self, call: Call) -> bool:
        """Whether the largest come first."""
        raise NotImplementedError

    def fold(self, call: Call, element: int) -> Fold:
        """The position of the element whose rank is the place in the result's row."""
        (x,) = call.inputs
        row, rank = divmod(element, call.output.shape[-1])
        return _position(x.dtype, row * x.shape[-1], x.shape[-1], rank, self.descending(call))

    def cost(self, call: Call) -> Cost:
        """One step for each bit of each operand element, as a sort by digits takes."""
        (x,) = call.inputs
        return Cost(flops=x.elements * 8 * x.dtype.size, bytes=super().cost(call).bytes)


class Argsort(_Order):
    """``argsort(x)``: positions of each row's elements in order, equal ones as they come."""

    name = "argsort"
    code = 71
    attributes = (("descending", False),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """F or I of shape (..., n) gives int64 of the same shape."""
        _row_type(self.name, inputs[0])
        _flag(self.name, "descending", attributes["descending"][0])
        return TensorType.of(DType.INT64, inputs[0].shape)

    def descending(self, call: Call) -> bool:
        """The attribute."""
        return bool(call.integer("descending"))


class Argtopk(_Order):
    """``argtopk(x)``: positions of the ``k`` largest or smallest of each row, in order."""

    name = "argtopk"
    code = 72
    attributes = (("k", False), ("largest", False))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """F or I of shape (..., n) gives int64 of shape (..., k), ``0 <= k <= n``."""
        length = _row_type(self.name, inputs[0])
        (k,) = attributes["k"]
        need_attribute(self.name, "k", 0 <= k <= length, got=k, want=f"in [0, {length}]")
        _flag(self.name, "largest", attributes["largest"][0])
        return TensorType.of(DType.INT64, (*inputs[0].shape[:-1], k))

    def descending(self, call: Call) -> bool:
        """The largest come first where they are asked for."""
        return bool(call.integer("largest"))


# ---- the fold ---------------------------------------------------------------------------------


def _position(dtype: DType, first: int, length: int, rank: int, descending: bool) -> Fold:
    """Position in its row of the element with ``rank`` elements before it in order.

    ``first`` is the flat position of the row's first element. For each bit of the key, from
    the top: how many keys agree with the least candidate above this bit and have a 0 there;
    whether the rank lies among them; the rank and the least candidate for the next bit. The
    last two entries find the position.
    """
    bits = 8 * dtype.size
    order = Constant(int(descending))
    label = dtype.label

    def count(shift: int) -> Callable[[int, Operand, Operand], Step]:
        def step(i: int, total: Operand, least: Operand) -> Step:
            x = Element(0, first + i)
            return Step(f"count_key.{label}", (total, x, least, Constant(shift), order))

        return step

    def seek(i: int, state: Operand, key: Operand) -> Step:
        x = Element(0, first + i)
        return Step(f"seek_key.{label}", (state, x, key, order, Constant(i)))

    def at(index: int) -> Step | Nested:
        bit, part = divmod(index, ROUND)
        before = ROUND * bit
        left: Operand = Entry(before - 3) if bit else Constant(rank)
        least: Operand = Entry(before - 1) if bit else Constant(0)
        if bit == bits:
            if part:
                return Step("sub.int64", (MINUS_ONE, Entry(index - 1)))
            return Nested(_scan(length, seek, lift(left), lift(least)))
        shift = bits - 1 - bit
        if part == 0:
            return Nested(_scan(length, count(shift), Constant(0), lift(least)))
        return (
            Step("lt.int64", (left, Entry(before))),
            Step("sub.int64", (left, Entry(before))),
            Step("select", (Entry(before + 1), left, Entry(before + 2))),
            Step("add.int64", (least, Constant(1 << shift))),
            Step("select", (Entry(before + 1), least, Entry(before + 4))),
        )[part - 1]

    return Fold(ROUND * bits + 2, at)


def _scan(
    length: int, step: Callable[[int, Operand, Operand], Step], start: Operand, kept: Operand
) -> Fold:
    """A running value like ``chain``, whose steps also see ``kept`` from outside the fold."""
    if length <= CHAIN_BLOCK:
        return Fold(length, lambda i: step(i, Entry(i - 1) if i else start, kept))
    block = CHAIN_BLOCK
    while length > block * CHAIN_BLOCK:
        block *= CHAIN_BLOCK

    def nested(group: int) -> Nested:
        begin = group * block
        carry = lift(Entry(group - 1) if group else start)
        count = min(block, length - begin)
        inner = _scan(count, lambda i, s, k: step(begin + i, s, k), carry, lift(kept))
        return Nested(inner)

    return Fold(-(-length // block), nested)


OPERATORS: tuple[Operator, ...] = (Argsort(), Argtopk())
"""Rows of the table."""
