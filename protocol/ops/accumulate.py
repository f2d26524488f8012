"""The accumulation orders of NUM-10 to NUM-14 as folds, none longer than ``MAX_ENTRIES``.

An *item* is an operand or a fold: what is added. Sums nest further where they are long, so
that the fold of any admissible tensor stays short at every level.
"""

from __future__ import annotations

from collections.abc import Callable

from identic.protocol.ops.folds import (
    Constant,
    Entry,
    Fold,
    Nested,
    Operand,
    Step,
    chain,
    lift,
    single,
)

LANES = 64
"""Lanes of a row sum."""

ROW_BLOCK = 4096
"""Elements of a row that share one set of lanes."""

COLUMN_CHUNK = 256
"""Rows, or source positions, summed before their result is added to the total."""

CONTRACTION_BLOCK = 256
"""Length of one fma chain."""

CONTRACTION_GROUP = 16
"""Chains whose results are added before the result joins the total."""

FLAT = 15 * LANES
"""Most folds whose row sum is one fold: two entries each, and 63 that fold the lanes."""

RUN = 1000
"""Items added in one fold: twice as many entries at most."""

Item = Callable[[int], Operand | Fold]
ZERO = Constant(0)


def running_sum(
    count: int, item: Callable[[int], Fold], start: Operand | None, add: str = "add.float32"
) -> Fold:
    """Results of folds added left to right, ``count >= 1``.

    With ``start`` every one is added to it in order; without, the first is taken as it is.
    The items must not refer to entries of the fold around them.
    """
    if count > RUN:
        block = RUN
        while count > block * RUN:
            block *= RUN

        def nested(group: int) -> Nested:
            first = group * block
            carry = lift(Entry(group - 1)) if group else (lift(start) if start else None)
            pieces = min(block, count - first)
            return Nested(running_sum(pieces, lambda j: item(first + j), carry, add))

        return Fold(-(-count // block), nested)

    def after_start(index: int) -> Step | Nested:
        number, adds = divmod(index, 2)
        if not adds:
            return Nested(item(number))
        before = start if start is not None and number == 0 else Entry(index - 2)
        return Step(add, (before, Entry(index - 1)))

    def from_first(index: int) -> Step | Nested:
        number, adds = divmod(index + 1, 2)
        if index and adds:
            return Step(add, (Entry(index - 2), Entry(index - 1)))
        return Nested(item(number))

    return Fold(2 * count, after_start) if start is not None else Fold(2 * count - 1, from_first)


def as_fold(item: Operand | Fold) -> Fold:
    """The item as a fold; an operand becomes a copy."""
    return item if isinstance(item, Fold) else single("copy", item)


def as_operand(item: Operand | Fold) -> Operand:
    """The item as an operand, which it must be."""
    if isinstance(item, Fold):
        raise TypeError("a fold is not an operand")
    return item


def contraction(length: int, factors: Callable[[int], tuple[Operand, Operand]]) -> Fold:
    """NUM-10: fma chains of 256, sums of sixteen, and the sum of those.

    Args:
        length: number of products ``K >= 0``.
        factors: the two elements that meet at ``k``.
    """
    if length == 0:
        return single("copy", ZERO)

    def block(number: int, upto: int) -> Fold:
        first = number * CONTRACTION_BLOCK

        def step(i: int, total: Operand) -> Step:
            return Step("fma", (*factors(first + i), total))

        return chain(min(CONTRACTION_BLOCK, upto - first), step, ZERO)

    def group(number: int) -> Fold:
        first = number * CONTRACTION_GROUP
        blocks = min(CONTRACTION_GROUP, -(-length // CONTRACTION_BLOCK) - first)
        if blocks == 1:
            return block(first, length)
        return running_sum(blocks, lambda j: block(first + j, length), None)

    groups = -(-length // (CONTRACTION_BLOCK * CONTRACTION_GROUP))
    return group(0) if groups == 1 else running_sum(groups, group, None)


def row_sum(length: int, item: Item, add: str) -> Fold:
    """NUM-12: 64 strided lanes and folds; rows beyond 4,096 in blocks, by the same rule."""
    if length > ROW_BLOCK:

        def block(number: int) -> Fold:
            first = number * ROW_BLOCK
            return row_sum(min(ROW_BLOCK, length - first), lambda i: item(first + i), add)

        return row_sum(-(-length // ROW_BLOCK), block, add)

    if length <= FLAT and isinstance(item(0), Fold):
        return _flat_row_sum(length, item, add)

    def lane(number: int, count: int) -> Fold:
        def piece(j: int) -> Operand | Fold:
            return item(number + LANES * j)

        if isinstance(piece(0), Fold):
            return running_sum(count, lambda j: as_fold(piece(j)), ZERO, add)
        return chain(count, lambda j, total: Step(add, (total, as_operand(piece(j)))), ZERO)

    def at(index: int) -> Step | Nested:
        if index < LANES:
            count = len(range(index, length, LANES))
            if count == 0:
                return Step("copy", (ZERO,))
            return Nested(lane(index, count))
        return _lane_fold(index - LANES, lambda number: number, LANES, add)

    return Fold(2 * LANES - 1, at)


def _lane_fold(index: int, lane: Callable[[int], int], first: int, add: str) -> Step:
    """Addition ``index`` of the 63 that fold the lanes.

    Args:
        index: 0 to 31 fold width 32, 32 to 47 width 16, and so on to 62.
        lane: entry of a lane's sum, by its number.
        first: entry of addition 0.
        add: the primitive.
    """
    if index < LANES // 2:
        return Step(add, (Entry(lane(index)), Entry(lane(index + LANES // 2))))
    source, start, width = 0, LANES // 2, LANES // 4
    while index >= start + width:
        source, start, width = start, start + width, width // 2
    lower = first + source + index - start
    return Step(add, (Entry(lower), Entry(lower + width)))


def _flat_row_sum(length: int, item: Item, add: str) -> Fold:
    """The row sum of few folds in one fold, lane after lane, so that it nests less deep."""
    rows, longer = divmod(length, LANES)
    long, short = 2 * (rows + 1), max(2 * rows, 1)

    def end(lane: int) -> int:
        """The entry after a lane's sum."""
        return long * min(lane + 1, longer) + short * max(lane + 1 - longer, 0)

    def at(index: int) -> Step | Nested:
        if index >= end(LANES - 1):
            first = end(LANES - 1)
            return _lane_fold(index - first, lambda number: end(number) - 1, first, add)
        if index < long * longer:
            lane, place = divmod(index, long)
        else:
            lane, place = divmod(index - long * longer, short)
            lane += longer
        if lane >= length:
            return Step("copy", (ZERO,))
        number, adds = divmod(place, 2)
        if not adds:
            return Nested(as_fold(item(lane + LANES * number)))
        return Step(add, (Entry(index - 2) if number else ZERO, Entry(index - 1)))

    return Fold(end(LANES - 1) + LANES - 1, at)


def column_sum(length: int, item: Callable[[int], Operand], add: str) -> Fold:
    """NUM-13: chains of 256 from +0, added left to right, the first as it is."""
    if length == 0:
        return single("copy", ZERO)

    def chunk(number: int) -> Fold:
        first = number * COLUMN_CHUNK

        def step(i: int, total: Operand) -> Step:
            return Step(add, (total, item(first + i)))

        return chain(min(COLUMN_CHUNK, length - first), step, ZERO)

    chunks = -(-length // COLUMN_CHUNK)
    return chunk(0) if chunks == 1 else running_sum(chunks, chunk, None, add)


def scatter_sum(length: int, start: Operand, step: Callable[[int, Operand], Step]) -> Fold:
    """NUM-14: chunks of 256 positions, each a chain of ``step`` from +0, added to ``start``."""
    if length == 0:
        return single("copy", start)

    def chunk(number: int) -> Fold:
        first = number * COLUMN_CHUNK
        count = min(COLUMN_CHUNK, length - first)
        return chain(count, lambda i, total: step(first + i, total), ZERO)

    return running_sum(-(-length // COLUMN_CHUNK), chunk, start)
