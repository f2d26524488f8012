"""A step prepared for the CPU: every decision that shapes allow is made once.

``compile_step`` turns a plan into a list of native calls over fixed buffers:

* views become layouts and cost nothing; a copy is made only where a kernel needs its
  elements next to each other, and once for each value;
* results live in an arena that steps reuse; a buffer is given on after its last use;
* new state tensors are fresh arrays, since the caller keeps them.

The bits are those of the operators one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import NUMPY, Array, row_major
from identic.kernels.layouts import Layout, one_stride
from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import StepPlan

Slots = list[Array]
Kernel = Callable[[], None]
Bind = Callable[[Slots], Kernel]
"""Given the table of buffers, the call that reads them from it at each step."""

RunCall = Callable[[Call, Sequence[Array]], Array]

LOAD, ARENA, RESULT, ALIAS = range(4)

ALIGNMENT = 64


@dataclass
class Slot:
    """A buffer of one element type, flat."""

    dtype: DType
    elements: int
    kind: int
    base: int = -1
    """For an alias: the slot it shows."""
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
    """One native call."""

    reads: tuple[int, ...]
    writes: int
    bind: Bind


@dataclass
class Draft:
    """The operations of a step while they are collected."""

    slots: list[Slot] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    layouts: list[Layout] = field(default_factory=list)
    """Of the plan's values, in order."""
    dense: dict[Layout, Layout] = field(default_factory=dict)
    aliases: dict[tuple[int, int], int] = field(default_factory=dict)

    def new(self, dtype: DType, elements: int, kind: int = ARENA) -> int:
        """A new buffer."""
        self.slots.append(Slot(dtype, elements, kind))
        return len(self.slots) - 1

    def emit(self, reads: Sequence[int], writes: int, bind: Bind) -> None:
        """Append a native call."""
        self.operations.append(Operation(tuple(reads), writes, bind))

    def base(self, slot: int) -> int:
        """The buffer that ``slot`` is, or shows."""
        return self.slots[slot].base if self.slots[slot].kind == ALIAS else slot

    def at(self, layout: Layout) -> int:
        """A slot whose first element is the layout's first."""
        if not layout.offset:
            return layout.slot
        key = (layout.slot, layout.offset)
        if key not in self.aliases:
            whole = self.slots[layout.slot]
            rest = Slot(whole.dtype, whole.elements - layout.offset, ALIAS, *key)
            self.slots.append(rest)
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
        offset, to = layout.offset, result.strides

        def bind(slots: Slots) -> Kernel:
            def run() -> None:
                _native.copy_strided(slots[target], 0, to, slots[source], offset, strides, shape)

            return run

        if layout.elements:
            self.emit((source,), target, bind)
        return result


def compile_step(plan: StepPlan, run_call: RunCall) -> Callable[[list[Array]], list[Array]]:
    """Prepare a plan; ``run_call`` executes the operators that have no native form here."""
    draft = Draft()
    for load in plan.loads:
        slot = draft.new(load.type.dtype, load.type.elements, LOAD)
        draft.layouts.append(Layout.dense(slot, load.type.shape))
    for planned in plan.calls:
        inputs = [draft.layouts[i] for i in planned.inputs]
        draft.layouts.append(_place(draft, planned.call, inputs, run_call))
    results = [_result(draft, draft.layouts[value]) for value in plan.outputs]
    return _Step(draft, len(plan.loads), results, [plan.type(v).shape for v in plan.outputs]).run


def _result(draft: Draft, layout: Layout) -> int:
    """A slot of its own for a tensor of the new state; a load is returned as it is."""
    dense = draft.packed(layout)
    slot = draft.slots[dense.slot]
    if slot.kind == ARENA:
        slot.kind = RESULT
    return dense.slot


class _Step:
    """The prepared step: buffers and the calls bound to them."""

    def __init__(
        self, draft: Draft, loads: int, results: list[int], shapes: list[tuple[int, ...]]
    ) -> None:
        self._loads = loads
        self._results = list(zip(results, shapes, strict=True))
        self._slots: Slots = [np.empty(0, NUMPY[s.dtype]) for s in draft.slots]
        self._fresh = [
            (i, s.elements, NUMPY[s.dtype]) for i, s in enumerate(draft.slots) if s.kind == RESULT
        ]
        place_arena(draft, self._slots)
        moving = {LOAD, RESULT}
        self._aliases = [
            (i, s.base, s.offset)
            for i, s in enumerate(draft.slots)
            if s.kind == ALIAS and draft.slots[s.base].kind in moving
        ]
        self._calls = [operation.bind(self._slots) for operation in draft.operations]

    def run(self, loads: list[Array]) -> list[Array]:
        """The plan's outputs from its loads."""
        slots = self._slots
        slots[: self._loads] = [row_major(a).reshape(-1) for a in loads]
        for slot, elements, dtype in self._fresh:
            slots[slot] = np.empty(elements, dtype)
        # An alias that shows part of a new array before it is filled sees it all the same.
        for slot, base, offset in self._aliases:
            slots[slot] = slots[base][offset:]
        for call in self._calls:
            call()
        results = [slots[slot].reshape(shape) for slot, shape in self._results]
        # Nothing of the caller's is held on to.
        for slot, _, _ in self._fresh:
            slots[slot] = slots[slot][:0]
        slots[: self._loads] = [a[:0] for a in slots[: self._loads]]
        return results


def place_arena(draft: Draft, slots: Slots) -> None:
    """Lay the buffers of results into one arena, each from its making to its last use."""
    for number, operation in enumerate(draft.operations):
        for touched in (*operation.reads, operation.writes):
            draft.slots[draft.base(touched)].last = number
    offsets, size = _offsets(draft)
    arena = np.empty(size + ALIGNMENT, np.uint8)
    start = -arena.ctypes.data % ALIGNMENT
    for index, offset in offsets.items():
        slot = draft.slots[index]
        first = start + offset
        slots[index] = arena[first : first + slot.nbytes].view(NUMPY[slot.dtype])
    for index, slot in enumerate(draft.slots):
        if slot.kind == ALIAS:
            slots[index] = slots[slot.base][slot.offset :]


def _offsets(draft: Draft) -> tuple[dict[int, int], int]:
    """Offset of each arena buffer and the arena's length: the smallest gap that fits."""
    offsets: dict[int, int] = {}
    gaps: list[tuple[int, int]] = []  # (offset, length), ascending
    size = 0
    ends: dict[int, list[int]] = {}
    for index, slot in enumerate(draft.slots):
        if slot.kind == ARENA:
            ends.setdefault(slot.last, []).append(index)
    for number, operation in enumerate(draft.operations):
        index = operation.writes
        slot = draft.slots[index]
        if slot.kind == ARENA and index not in offsets:
            length = _padded(slot)
            fitting = [(n, at) for at, n in gaps if n >= length]
            if fitting:
                room, at = min(fitting)
                gaps.remove((at, room))
                if room > length:
                    gaps.append((at + length, room - length))
                offsets[index] = at
            else:
                offsets[index], size = size, size + length
        for dead in ends.get(number, []):
            if dead in offsets:
                gaps = _joined([*gaps, (offsets[dead], _padded(draft.slots[dead]))])
    return offsets, size


def _padded(slot: Slot) -> int:
    return -(-max(1, slot.nbytes) // ALIGNMENT) * ALIGNMENT


def _joined(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Gaps in order, neighbours made one."""
    out: list[tuple[int, int]] = []
    for at, length in sorted(gaps):
        if out and sum(out[-1]) == at:
            out[-1] = (out[-1][0], out[-1][1] + length)
        else:
            out.append((at, length))
    return out


# ---- one operator at a time -----------------------------------------------------------------


def _place(draft: Draft, call: Call, inputs: list[Layout], run_call: RunCall) -> Layout:
    """Collect what an operator needs and return where its result lies."""
    view = _view(call, inputs)
    if view is not None:
        return view
    place = NATIVE.get(call.op.name)
    target = draft.new(call.output.dtype, call.output.elements)
    result = Layout.dense(target, call.output.shape)
    if call.output.elements:
        if place is not None:
            place(draft, call, inputs, target)
        else:
            _general(draft, call, inputs, target, run_call)
    return result


def _view(call: Call, inputs: list[Layout]) -> Layout | None:
    """The result as a view of the operand, where the operator is one."""
    name = call.op.name
    if name == "reshape":
        return inputs[0].reshaped(call.output.shape)
    if name == "permute":
        return inputs[0].permuted(call.integers("axes"))
    if name == "expand":
        return inputs[0].expanded(call.output.shape)
    if name == "slice":
        bounds = (call.integers(n) for n in ("start", "stop", "step"))
        return inputs[0].sliced(*bounds)
    if name == "cast" and call.inputs[0].dtype is call.output.dtype:
        return inputs[0]
    return None


def _reshape(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    del call
    draft.copy(inputs[0], target)


def _unary(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    name, source = call.op.name, draft.packed(inputs[0]).slot

    def bind(slots: Slots) -> Kernel:
        return lambda: _native.unary(name, slots[target], slots[source])

    draft.emit((source,), target, bind)


def _cast(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    del call
    source = draft.packed(inputs[0]).slot

    def bind(slots: Slots) -> Kernel:
        return lambda: _native.cast(slots[target], slots[source])

    draft.emit((source,), target, bind)


def _binary(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    name, shape = call.op.name, call.output.shape
    a, b = (draft.at(x) for x in inputs)
    a_strides, b_strides = (x.over(shape) for x in inputs)

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            _native.binary(name, slots[target], slots[a], slots[b], shape, a_strides, b_strides)

        return run

    draft.emit((a, b), target, bind)


def _where(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    shape = call.output.shape
    c, a, b = (draft.at(x) for x in inputs)
    steps = [x.over(shape) for x in inputs]

    def bind(slots: Slots) -> Kernel:
        return lambda: _native.where(slots[target], slots[c], slots[a], slots[b], shape, *steps)

    draft.emit((c, a, b), target, bind)


def _rows(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    function = getattr(_native, call.op.name)
    source = draft.packed(inputs[0]).slot
    rows, length = call.output.elements, call.inputs[0].shape[-1]

    def bind(slots: Slots) -> Kernel:
        return lambda: function(slots[target], slots[source], rows, length)

    draft.emit((source,), target, bind)


def _sum_first(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    source = draft.packed(inputs[0]).slot
    length, width = call.inputs[0].shape[0], call.output.elements

    def bind(slots: Slots) -> Kernel:
        return lambda: _native.sum_first(slots[target], slots[source], length, width)

    draft.emit((source,), target, bind)


def _matmul_operand(draft: Draft, x: Layout, batch: Sequence[int]) -> tuple[int, list[int]]:
    """The slot of a matrix operand and its (batch, row, column) strides."""
    whole = (*batch, *x.shape[-2:])
    steps = x.over(whole)
    stride = one_stride(batch, steps[:-2])
    if stride is None:
        x = draft.packed(x.expanded(whole))
        return x.slot, [math.prod(x.shape[-2:]), *x.strides[-2:]]
    return draft.at(x), [stride, *steps[-2:]]


def _matmul(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    batch = call.output.shape[:-2]
    count = math.prod(batch)
    M, K = call.inputs[0].shape[-2:]
    N = call.output.shape[-1]
    (a, a_strides), (b, b_strides) = (_matmul_operand(draft, x, batch) for x in inputs)

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            left, right = slots[a], slots[b]
            _native.matmul(slots[target], left, right, count, M, N, K, a_strides, b_strides)

        return run

    draft.emit((a, b), target, bind)


def _concat(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    axis, at = call.integer("axis"), 0
    whole = Layout.dense(target, call.output.shape)
    for x in inputs:
        _copy_into(draft, x, target, at * whole.strides[axis], whole.strides)
        at += x.shape[axis]


def _copy_into(draft: Draft, x: Layout, target: int, offset: int, strides: tuple[int, ...]) -> None:
    """Copy a layout's elements to a part of a buffer."""
    source, first, steps, shape = x.slot, x.offset, x.strides, x.shape

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            _native.copy_strided(slots[target], offset, strides, slots[source], first, steps, shape)

        return run

    if x.elements:
        draft.emit((source,), target, bind)


def _full(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    del inputs
    word = call.output.dtype.pattern(call.integer("word"))

    def bind(slots: Slots) -> Kernel:
        return lambda: _native.full(slots[target], word)

    draft.emit((), target, bind)


def _take_rows(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    table, index = (draft.packed(x).slot for x in inputs)
    kind = call.inputs[0]
    rows, row_bytes = kind.shape[0], math.prod(kind.shape[1:]) * kind.dtype.size

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            _native.take_rows(slots[target], slots[table], slots[index], rows, row_bytes)

        return run

    draft.emit((table, index), target, bind)


def _add_rows(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    init, index, source = (draft.packed(x).slot for x in inputs)
    rows = call.output.shape[0]
    inner = math.prod(call.output.shape[1:])

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            _native.add_rows(slots[target], slots[init], slots[index], slots[source], rows, inner)

        return run

    draft.emit((init, index, source), target, bind)


def _general(
    draft: Draft, call: Call, inputs: list[Layout], target: int, run_call: RunCall
) -> None:
    """Any operator, through the backend's own call; for those that are rare or small."""
    sources = [draft.packed(x).slot for x in inputs]
    shapes = [kind.shape for kind in call.inputs]

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            arrays = [slots[s].reshape(n) for s, n in zip(sources, shapes, strict=True)]
            slots[target][:] = run_call(call, arrays).reshape(-1)

        return run

    draft.emit(sources, target, bind)


Place = Callable[[Draft, Call, list[Layout], int], None]

_UNARY = ("neg", "abs", "exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "sqrt", "rsqrt")
_BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "and", "or")
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")

NATIVE: dict[str, Place] = {
    **dict.fromkeys((*_UNARY, "not"), _unary),
    **dict.fromkeys((*_BINARY, *_COMPARE), _binary),
    **dict.fromkeys(("sum_last", "amax", "argmax"), _rows),
    "where": _where,
    "cast": _cast,
    "sum_first": _sum_first,
    "matmul": _matmul,
    "concat": _concat,
    "reshape": _reshape,
    "full": _full,
    "take_rows": _take_rows,
    "add_rows": _add_rows,
}
"""Operators with a prepared native call; others go through the backend."""
