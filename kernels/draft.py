"""A step under construction: buffers, calls of an engine, and the arena the buffers lie in.

* A slot is a flat buffer of one element type: a load, a result of the arena, a tensor of
  the new state, or an alias of the rest of another slot.
* An operation is one call that reads and writes slots.
* Elementwise operators wait in open groups (``chains.py``); a group becomes an operation
  when something outside it needs one of its values.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from identic.kernels.arrays import NUMPY
from identic.kernels.chains import Chained, Groups, short
from identic.kernels.engine import Calls, Engine, Over, Overwrites, SumsLongRows
from identic.kernels.layouts import Layout
from identic.protocol.dtypes import DType

Slots = list[Any]
Kernel = Callable[[], None]
Bind = Callable[[Slots], Kernel]
"""Given the table of buffers, the call that reads them from it at each step."""

LOAD, ARENA, RESULT, ALIAS, HOST = range(5)

ALIGNMENT = 64


@dataclass
class Slot:
    """A buffer of one element type, flat."""

    dtype: DType
    elements: int
    kind: int
    base: int = -1
    """For an alias: the slot it shows; for a load kept as it is given: the load."""
    offset: int = 0
    """For an alias: its first element."""
    last: int = -1
    """Number of the last operation that touches it."""

    @property
    def nbytes(self) -> int:
        """Length in bytes."""
        return self.elements * self.dtype.size


@dataclass
class Operation:
    """One call of the engine."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    bind: Bind
    chained: Chained | None = None
    """For a chain: its members, of which it writes those that something else needs."""
    parts: tuple[Operation, ...] = ()
    """For joined chains: each of them."""

    @property
    def chains(self) -> tuple[Operation, ...]:
        """The chains that it runs, if it runs nothing else."""
        return self.parts or ((self,) if self.chained is not None else ())


@dataclass
class Draft:
    """The operations of a step while they are collected."""

    calls: Calls
    slots: list[Slot] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    layouts: list[Layout] = field(default_factory=list)
    """Of the plan's values, in order."""
    dense: dict[Layout, Layout] = field(default_factory=dict)
    aliases: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sums_rows = self.calls.sums_rows if isinstance(self.calls, SumsLongRows) else short
        self.groups = Groups(self._chain, sums_rows)

    def new(self, dtype: DType, elements: int, kind: int = ARENA) -> int:
        """A new buffer."""
        self.slots.append(Slot(dtype, elements, kind))
        return len(self.slots) - 1

    def emit(self, reads: Sequence[int], writes: int, bind: Bind) -> None:
        """Append a call, after the groups that make what it reads."""
        for slot in reads:
            self.groups.need(self.base(slot))
        self.operations.append(Operation(tuple(reads), (writes,), bind))

    def _chain(self, chained: Chained) -> None:
        """Append a chain."""
        reads = tuple(self.at(x.slot, x.offset) for x in chained.externals)
        self.operations.append(Operation(reads, (), _unbound, chained))

    def finish(self, results: Sequence[int]) -> None:
        """Run what is still open, and let each chain write what is needed of it."""
        self.groups.close()
        needed = {self.base(slot) for o in self.operations for slot in o.reads} | set(results)
        for operation in self.operations:
            if operation.chained is not None:
                kept = {s: n for s, n in operation.chained.members.items() if s in needed}
                operation.writes = tuple(kept)
                operation.bind = chain_bind(self.calls, operation.chained, operation.reads, kept)
        self.operations = [o for o in self.operations if o.writes]

    def base(self, slot: int) -> int:
        """The buffer that ``slot`` is, or shows."""
        return self.slots[slot].base if self.slots[slot].kind == ALIAS else slot

    def at(self, slot: int, offset: int) -> int:
        """A slot whose first element is the one at ``offset`` of ``slot``."""
        if not offset:
            return slot
        key = (slot, offset)
        if key not in self.aliases:
            whole = self.slots[slot]
            self.slots.append(Slot(whole.dtype, whole.elements - offset, ALIAS, *key))
            self.aliases[key] = len(self.slots) - 1
        return self.aliases[key]

    def as_given(self, slot: int) -> int:
        """The slot of a load's array as the caller gives it, numpy's on every engine."""
        key = (slot, -1)
        if key not in self.aliases:
            load = self.slots[slot]
            self.slots.append(Slot(load.dtype, load.elements, HOST, slot))
            self.aliases[key] = len(self.slots) - 1
        return self.aliases[key]

    def packed(self, layout: Layout) -> Layout:
        """The layout if its elements are a row-major buffer from the start, else a copy's."""
        whole = layout.elements == self.slots[layout.slot].elements
        if layout.row_major and whole and not layout.offset:
            return layout
        if layout not in self.dense:
            kind = self.slots[layout.slot].dtype
            self.dense[layout] = self.copy(layout, self.new(kind, layout.elements))
        return self.dense[layout]

    def copy(self, layout: Layout, target: int) -> Layout:
        """Copy a layout's elements into a new buffer."""
        result = Layout.dense(target, layout.shape)
        source, strides, shape = layout.slot, layout.strides, layout.shape
        offset, to, calls = layout.offset, result.strides, self.calls

        def bind(slots: Slots) -> Kernel:
            def run() -> None:
                calls.copy_strided(slots[target], 0, to, slots[source], offset, strides, shape)

            return run

        if layout.elements:
            self.emit((source,), target, bind)
        return result


def _unbound(slots: Slots) -> Kernel:
    raise RuntimeError(f"a chain over {len(slots)} buffers is bound before it is finished")


def chain_bind(
    calls: Calls,
    chained: Chained,
    reads: tuple[int, ...],
    writes: dict[int, int],
    over: Over = (),
) -> Bind:
    """The chain that computes the slots ``writes`` from the slots ``reads``, some over others."""
    inputs = [(x.kind, x.of_rows) for x in chained.externals]
    code = [(name, list(operands)) for name, operands in chained.code]
    outputs = list(writes.values())
    if over and isinstance(calls, Overwrites):
        built = calls.ChainOver(inputs, code, outputs, over)
    else:
        built = calls.Chain(inputs, code, outputs)
    steps = [x.steps for x in chained.externals]
    shape, targets = chained.shape, tuple(writes)

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            built.run([slots[w] for w in targets], [slots[r] for r in reads], shape, steps)

        return run

    return bind


@dataclass(frozen=True)
class Arena:
    """Where the buffers of results lie in one arena, each from its making to its last use."""

    offsets: dict[int, int]
    """In bytes, of each slot."""
    size: int

    @classmethod
    def of(cls, draft: Draft) -> Arena:
        """Lay out a finished draft."""
        for number, operation in enumerate(draft.operations):
            for touched in (*operation.reads, *operation.writes):
                draft.slots[draft.base(touched)].last = number
        return cls(*_offsets(draft))

    def allocate(self, draft: Draft, engine: Engine, slots: Slots) -> None:
        """Make the arena, and fill in the buffers and the aliases of them."""
        arena = engine.arena(self.size)
        for index, offset in self.offsets.items():
            slot = draft.slots[index]
            slots[index] = arena[offset : offset + slot.nbytes].view(NUMPY[slot.dtype])
        for index, slot in enumerate(draft.slots):
            if slot.kind == ALIAS:
                slots[index] = slots[slot.base][slot.offset :]


def _offsets(draft: Draft) -> tuple[dict[int, int], int]:
    """Offset of each arena buffer and the arena's length: the smallest gap that fits."""
    offsets: dict[int, int] = {}
    gaps = _Gaps()
    ends: dict[int, list[int]] = {}
    for index, slot in enumerate(draft.slots):
        if slot.kind == ARENA:
            ends.setdefault(slot.last, []).append(index)
    for number, operation in enumerate(draft.operations):
        for index in operation.writes:
            if draft.slots[index].kind == ARENA and index not in offsets:
                offsets[index] = gaps.take(_padded(draft.slots[index]))
        for dead in ends.get(number, []):
            if dead in offsets:
                gaps.give(offsets[dead], _padded(draft.slots[dead]))
    return offsets, gaps.size


def _padded(slot: Slot) -> int:
    return -(-max(1, slot.nbytes) // ALIGNMENT) * ALIGNMENT


class _Gaps:
    """The free stretches of an arena, none next to another; it grows where none fits."""

    def __init__(self) -> None:
        self.size = 0
        self._sorted: list[tuple[int, int]] = []
        """Length and offset of each gap, ascending."""
        self._lengths: dict[int, int] = {}
        """Length of the gap that begins at an offset."""
        self._starts: dict[int, int] = {}
        """Offset of the gap that ends before an offset."""

    def take(self, length: int) -> int:
        """Offset of a free stretch: the start of the smallest gap, the first of equal ones."""
        place = bisect_left(self._sorted, (length, 0))
        if place == len(self._sorted):
            self.size += length
            return self.size - length
        room, at = self._sorted[place]
        self._remove(at)
        if room > length:
            self._add(at + length, room - length)
        return at

    def give(self, at: int, length: int) -> None:
        """Free a stretch, and join it with the gaps on either side."""
        if at + length in self._lengths:
            length += self._remove(at + length)
        if at in self._starts:
            at = self._starts[at]
            length += self._remove(at)
        self._add(at, length)

    def _add(self, at: int, length: int) -> None:
        insort(self._sorted, (length, at))
        self._lengths[at] = length
        self._starts[at + length] = at

    def _remove(self, at: int) -> int:
        length = self._lengths.pop(at)
        del self._starts[at + length]
        del self._sorted[bisect_left(self._sorted, (length, at))]
        return length
