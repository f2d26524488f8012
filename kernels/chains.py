"""Groups of elementwise operators, and sums and maxima of rows, that run as one native chain.

A group runs over one shape. Its values are *whole* (an element for each element of the
shape) or *of rows* (one for each index of all axes but the last: the result of a reduction,
and what is computed from such results alone). An operator joins the group that makes its
operands when every operand can be addressed over the group's shape; two groups become one
when an operator reads both.

Invariant: a group that is still open depends on no other open group. So groups may run in
any order, each just before something outside it needs one of its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from identic.kernels.layouts import Layout
from identic.protocol.dtypes import DType
from identic.protocol.tensors import Shape, strides

MAX_CODE = 64
"""Most operators of a group."""

MAX_ROW = 4096
"""Longest row that a group sums or searches on any engine."""


def short(rows: int, width: int) -> bool:
    """Whether every engine's chains sum and search rows of so many elements."""
    del rows
    return width <= MAX_ROW


KINDS: dict[DType, str] = {
    DType.FLOAT32: "float32",
    DType.INT64: "int64",
    DType.INT32: "int32",
    DType.BOOL: "bool",
}
"""Element types a chain computes with, by the chain's names."""


@dataclass(frozen=True)
class External:
    """An operand made outside the group, over the group's shape."""

    slot: int
    offset: int
    steps: Shape
    kind: str
    of_rows: bool

    def over(self, before: Shape, after: Shape) -> External | None:
        """The same operand over another shape of as many elements."""
        moved = Layout(0, 0, before, self.steps).reshaped(after)
        if moved is None:
            return None
        of_rows = self.of_rows and after[-1] != 1 and moved.strides[-1] == 0
        return External(self.slot, self.offset, moved.strides, self.kind, of_rows)


Operand = External | int
"""An operand: external, or the number of an earlier operator of the group."""


@dataclass(frozen=True)
class Wanted:
    """An operator that looks for a group."""

    name: str
    """Word of the chain: the operator's name, or the type a cast goes to."""
    operands: tuple[Layout, ...]
    kinds: tuple[str, ...]
    shape: Shape
    """Shape of the result; of the operand, for a reduction."""
    reduces: bool
    target: int
    alone: Callable[[], None]
    """Emits the operator by itself."""


@dataclass(eq=False)
class Group:
    """Operators that will run as one chain."""

    shape: Shape
    code: list[tuple[str, tuple[Operand, ...]]] = field(default_factory=list)
    members: dict[int, int] = field(default_factory=dict)
    """Slot of each result and the number of its operator."""
    rows: list[bool] = field(default_factory=list)
    """Whether the result of each operator is of rows."""
    alone: Callable[[], None] = lambda: None
    """Emits the only operator, while there is one."""
    order: int = 0
    """Number among the groups of a step; a group that takes over others keeps the lowest."""
    sums_rows: Callable[[int, int], bool] = short
    """Whether so many rows of so many elements are summed and searched."""

    @property
    def has_rows(self) -> bool:
        """Whether the last axis has a meaning."""
        return any(self.rows)

    def dense(self, number: int) -> Shape:
        """Strides of a result over the group's shape."""
        if self.rows[number]:
            return (*strides(self.shape[:-1]), 0)
        return strides(self.shape)

    def reshape(self, shape: Shape) -> bool:
        """Run over another shape, if everything can be addressed over it."""
        if shape == self.shape:
            return True
        if math.prod(shape) != math.prod(self.shape):
            return False
        if self.has_rows and shape[-1] != self.shape[-1]:
            return False
        code: list[tuple[str, tuple[Operand, ...]]] = []
        for name, operands in self.code:
            moved = [x if isinstance(x, int) else x.over(self.shape, shape) for x in operands]
            kept = tuple(x for x in moved if x is not None)
            if len(kept) != len(moved):
                return False
            code.append((name, kept))
        self.code, self.shape = code, shape
        return True

    def absorb(self, other: Group) -> bool:
        """Take over the operators of another group, if one shape fits both."""
        if len(self.code) + len(other.code) > MAX_CODE:
            return False
        if not (other.reshape(self.shape) or self.reshape(other.shape)):
            return False
        first = len(self.code)
        for name, operands in other.code:
            shifted = tuple(x + first if isinstance(x, int) else x for x in operands)
            self.code.append((name, shifted))
        self.rows += other.rows
        self.members |= {slot: first + number for slot, number in other.members.items()}
        return True

    def add(self, wanted: Wanted) -> bool:
        """Append an operator, if its operands can be addressed over a shape of the group."""
        if len(self.code) >= MAX_CODE:
            return False
        for shape in (self.shape, wanted.shape or (1,)):
            resolved = self._resolved(wanted, shape)
            if resolved is not None and self.reshape(shape):
                operands, of_rows = resolved
                self.members[wanted.target] = len(self.code)
                self.code.append((wanted.name, operands))
                self.rows.append(of_rows)
                return True
        return False

    def _resolved(self, wanted: Wanted, shape: Shape) -> tuple[tuple[Operand, ...], bool] | None:
        """The operands over ``shape``, and whether the result is of rows."""
        count, elements = math.prod(wanted.shape), math.prod(shape)
        whole = count == elements
        if wanted.reduces:
            row = wanted.shape[-1]
            if not whole or shape[-1] != row or row < 2:
                return None
            if not self.sums_rows(elements // row, row):
                return None
        elif not whole and (shape[-1] == 1 or count * shape[-1] != elements):
            return None
        operands = []
        for layout, kind in zip(wanted.operands, wanted.kinds, strict=True):
            operand = self._operand(layout.expanded(wanted.shape), kind, shape, whole=whole)
            if operand is None:
                return None
            operands.append(operand)
        if whole and not self._spread(operands):
            return None
        return tuple(operands), wanted.reduces or not whole

    def _operand(self, x: Layout, kind: str, shape: Shape, *, whole: bool) -> Operand | None:
        """One operand over the shape, or ``None`` where strides do not give it."""
        seen = x.reshaped(shape if whole else shape[:-1])
        if seen is None:
            return None
        steps = seen.strides if whole else (*seen.strides, 0)
        number = self.members.get(x.slot)
        if number is None:
            of_rows = shape[-1] != 1 and steps[-1] == 0
            return External(x.slot, x.offset, steps, kind, of_rows)
        dense = strides(shape)
        if self.rows[number]:
            if shape[-1] != self.shape[-1]:
                return None
            dense = (*strides(shape[:-1]), 0)
        same = all(a == b for n, a, b in zip(shape, steps, dense, strict=True) if n != 1)
        return number if same and x.offset == 0 else None

    def _spread(self, operands: list[Operand]) -> bool:
        """Make a whole result of operands: one of them must be whole."""
        for operand in operands:
            if isinstance(operand, int):
                if not self.rows[operand]:
                    return True
            elif not operand.of_rows:
                return True
        for place, operand in enumerate(operands):
            if isinstance(operand, External):
                spread = (operand.slot, operand.offset, operand.steps, operand.kind)
                operands[place] = External(*spread, of_rows=False)
                return True
        return False


@dataclass(frozen=True)
class Chained:
    """A finished group: what a native chain is made from and runs over."""

    shape: Shape
    externals: tuple[External, ...]
    code: tuple[tuple[str, tuple[int, ...]], ...]
    members: dict[int, int]

    @classmethod
    def of(cls, group: Group) -> Chained:
        """Number the externals first, then the operators."""
        found: dict[External, int] = {}
        for _, operands in group.code:
            for operand in operands:
                if isinstance(operand, External):
                    found.setdefault(operand, len(found))
        code = []
        for name, operands in group.code:
            numbers = (found[x] if isinstance(x, External) else len(found) + x for x in operands)
            code.append((name, tuple(numbers)))
        members = {slot: len(found) + n for slot, n in group.members.items()}
        return cls(group.shape, tuple(found), tuple(code), members)


class Groups:
    """The open groups of a step under construction.

    Args:
        emit: takes a finished group and emits its operation.
        sums_rows: whether the engine's chains sum and search so many rows of so many elements.
    """

    def __init__(
        self, emit: Callable[[Chained], None], sums_rows: Callable[[int, int], bool] = short
    ) -> None:
        self._emit = emit
        self._sums_rows = sums_rows
        self._owner: dict[int, Group] = {}
        self._made = 0

    def place(self, wanted: Wanted) -> None:
        """Put an operator into a group, an existing one where it fits."""
        found = (self._owner.get(x.slot) for x in wanted.operands)
        elements = math.prod(wanted.shape)
        group = self._joined({g for g in found if g is not None}, elements)
        if group is None or not group.add(wanted):
            if group is not None:
                self._close(group)
            self._made += 1
            group = Group(
                wanted.shape or (1,),
                alone=wanted.alone,
                order=self._made,
                sums_rows=self._sums_rows,
            )
            if not group.add(wanted):
                wanted.alone()
                return
        self._owner[wanted.target] = group

    def need(self, slot: int) -> None:
        """Run the group that makes ``slot``, if it is still open."""
        group = self._owner.get(slot)
        if group is not None:
            self._close(group)

    def close(self) -> None:
        """Run all open groups."""
        for group in list(dict.fromkeys(self._owner.values())):
            self._close(group)

    def _joined(self, groups: Iterable[Group], elements: int) -> Group | None:
        """One group made of several, best of ``elements``; those that do not fit it run first."""
        ordered = sorted(groups, key=lambda g: (math.prod(g.shape) != elements, g.order))
        if not ordered:
            return None
        first = ordered[0]
        for other in ordered[1:]:
            if first.absorb(other):
                first.order = min(first.order, other.order)
                for slot in other.members:
                    self._owner[slot] = first
            else:
                self._close(other)
        return first

    def _close(self, group: Group) -> None:
        for slot in group.members:
            del self._owner[slot]
        if len(group.code) == 1:
            group.alone()
        else:
            self._emit(Chained.of(group))


def names(operands: Sequence[DType]) -> tuple[str, ...] | None:
    """The chain's names of element types, or ``None`` when one has none."""
    found = [KINDS.get(d) for d in operands]
    known = tuple(k for k in found if k is not None)
    return known if len(known) == len(found) else None
