"""A step prepared for an engine: every decision that shapes allow is made once.

``compile_step`` turns a plan into a list of calls over fixed buffers:

* views become layouts and cost nothing; a copy is made only where a kernel needs its
  elements next to each other, and once for each value;
* elementwise operators, and sums and maxima of rows, run in chains that keep what lies
  between in a near cache (``chains.py``);
* results live in an arena that steps reuse; a buffer is given on after its last use;
* new state tensors are fresh arrays, since the caller keeps them, or lie where old ones lay
  that nobody needs any more (``donation.py``).

The bits are those of the operators one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from identic.kernels import windows
from identic.kernels.backend import Run
from identic.kernels.chains import KINDS, Wanted, names
from identic.kernels.donation import overwritten
from identic.kernels.draft import ARENA, LOAD, RESULT, Arena, Draft, Kernel, Slots
from identic.kernels.engine import Engine, Joins
from identic.kernels.joined import join_chains
from identic.kernels.layouts import Layout, one_stride
from identic.kernels.operators import KERNELS, RANDOM, fill_random
from identic.kernels.step import Step
from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import Source, StepPlan


def compile_step(plan: StepPlan, engine: Engine) -> Run:
    """Prepare a plan; arrays of its loads may be numpy's, those of its outputs are the engine's."""
    return Prepared(plan, engine).compile()


class Prepared:
    """A plan laid out for an engine; nothing is allocated yet.

    Args:
        plan: the step.
        engine: what will run it.
    """

    def __init__(self, plan: StepPlan, engine: Engine) -> None:
        self.engine = engine
        self.loads = len(plan.loads)
        self.shapes = [plan.type(v).shape for v in plan.outputs]
        self.draft = draft = Draft(engine.calls)
        for load in plan.loads:
            slot = draft.new(load.type.dtype, load.type.elements, LOAD)
            draft.layouts.append(Layout.dense(slot, load.type.shape))
        for planned in plan.calls:
            inputs = [draft.layouts[i] for i in planned.inputs]
            draft.layouts.append(_place(draft, engine, planned.call, inputs))
        self.results = [_result(draft, draft.layouts[value]) for value in plan.outputs]
        draft.finish(self.results)
        if isinstance(engine.calls, Joins):
            join_chains(draft, engine.calls)
        self.arena = Arena.of(draft)
        self.over = overwritten(draft, self.results, _old(plan))
        """Slots of new tensors, and those of the old ones whose memory each may take."""

    def compile(self) -> Run:
        """A function from the arrays of the loads to those of the outputs."""
        tensors = list(zip(self.results, self.shapes, strict=True))
        return Step(self.engine, self.draft, self.arena, self.loads, tensors, self.over).run


def _old(plan: StepPlan) -> dict[int, int]:
    """By the place of an output, the load that has the same tensor of the old state."""
    loads = enumerate(plan.loads)
    return {load.index: number for number, load in loads if load.source is Source.STATE}


def _result(draft: Draft, layout: Layout) -> int:
    """A slot of its own for a tensor of the new state; a load is returned as it is."""
    dense = draft.packed(layout)
    slot = draft.slots[dense.slot]
    if slot.kind == ARENA:
        slot.kind = RESULT
    return dense.slot


# ---- one operator at a time -----------------------------------------------------------------


def _place(draft: Draft, engine: Engine, call: Call, inputs: list[Layout]) -> Layout:
    """Collect what an operator needs and return where its result lies."""
    view = _view(call, inputs)
    if view is not None:
        return view
    place = NATIVE.get(call.op.name)
    target = draft.new(call.output.dtype, call.output.elements)
    result = Layout.dense(target, call.output.shape)
    if not call.output.elements:
        return result
    if place is None:
        put = _random if call.op.name in RANDOM else _general
        put(draft, engine, call, inputs, target)
        return result

    def alone() -> None:
        place(draft, call, inputs, target)

    wanted = _wanted(call, inputs, target, alone)
    if wanted is not None:
        draft.groups.place(wanted)
    else:
        alone()
    return result


def _wanted(
    call: Call, inputs: list[Layout], target: int, alone: Callable[[], None]
) -> Wanted | None:
    """The operator as one of a chain, where a chain can compute it."""
    name, dtypes = call.op.name, [t.dtype for t in call.inputs]
    kinds = names([*dtypes, call.output.dtype])
    if name not in CHAINED or kinds is None:
        return None
    reduces = name in REDUCED
    if reduces and call.output.dtype is not DType.FLOAT32:
        return None
    shape = call.inputs[0].shape if reduces else call.output.shape
    word = KINDS[call.output.dtype] if name == "cast" else name
    return Wanted(word, tuple(inputs), kinds[:-1], shape, reduces, target, alone)


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
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        return lambda: calls.unary(name, slots[target], slots[source])

    draft.emit((source,), target, bind)


def _cast(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    del call
    source = draft.packed(inputs[0]).slot
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        return lambda: calls.cast(slots[target], slots[source])

    draft.emit((source,), target, bind)


def _binary(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    name, shape = call.op.name, call.output.shape
    a, b = (draft.at(x.slot, x.offset) for x in inputs)
    a_strides, b_strides = (x.over(shape) for x in inputs)
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            calls.binary(name, slots[target], slots[a], slots[b], shape, a_strides, b_strides)

        return run

    draft.emit((a, b), target, bind)


def _where(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    shape = call.output.shape
    c, a, b = (draft.at(x.slot, x.offset) for x in inputs)
    steps = [x.over(shape) for x in inputs]
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        return lambda: calls.where(slots[target], slots[c], slots[a], slots[b], shape, *steps)

    draft.emit((c, a, b), target, bind)


def _rows(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    function = getattr(draft.calls, call.op.name)
    source = draft.packed(inputs[0]).slot
    rows, length = call.output.elements, call.inputs[0].shape[-1]

    def bind(slots: Slots) -> Kernel:
        return lambda: function(slots[target], slots[source], rows, length)

    draft.emit((source,), target, bind)


def _sum_first(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    source = draft.packed(inputs[0]).slot
    length, width = call.inputs[0].shape[0], call.output.elements
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        return lambda: calls.sum_first(slots[target], slots[source], length, width)

    draft.emit((source,), target, bind)


def _matmul_operand(draft: Draft, x: Layout, batch: Sequence[int]) -> tuple[int, list[int]]:
    """The slot of a matrix operand and its (batch, row, column) strides."""
    whole = (*batch, *x.shape[-2:])
    steps = x.over(whole)
    stride = one_stride(batch, steps[:-2])
    if stride is None:
        x = draft.packed(x.expanded(whole))
        return x.slot, [math.prod(x.shape[-2:]), *x.strides[-2:]]
    return draft.at(x.slot, x.offset), [stride, *steps[-2:]]


def _matmul(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    batch = call.output.shape[:-2]
    count = math.prod(batch)
    M, K = call.inputs[0].shape[-2:]
    N = call.output.shape[-1]
    (a, a_strides), (b, b_strides) = (_matmul_operand(draft, x, batch) for x in inputs)
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            left, right = slots[a], slots[b]
            calls.matmul(slots[target], left, right, count, M, N, K, a_strides, b_strides)

        return run

    draft.emit((a, b), target, bind)


def _windowed(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    function = windows.bound(draft.calls, call)
    sources = [draft.packed(x).slot for x in inputs]

    def bind(slots: Slots) -> Kernel:
        return lambda: function(slots[target], *(slots[s] for s in sources))

    draft.emit(sources, target, bind)


def _concat(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    axis, at = call.integer("axis"), 0
    whole = Layout.dense(target, call.output.shape)
    for x in inputs:
        _copy_into(draft, x, target, at * whole.strides[axis], whole.strides)
        at += x.shape[axis]


def _copy_into(draft: Draft, x: Layout, target: int, offset: int, strides: tuple[int, ...]) -> None:
    """Copy a layout's elements to a part of a buffer."""
    source, first, steps, shape = x.slot, x.offset, x.strides, x.shape
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            calls.copy_strided(slots[target], offset, strides, slots[source], first, steps, shape)

        return run

    if x.elements:
        draft.emit((source,), target, bind)


def _full(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    del inputs
    word = call.output.dtype.pattern(call.integer("word"))
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        return lambda: calls.full(slots[target], word)

    draft.emit((), target, bind)


def _take_rows(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    table, index = (draft.packed(x).slot for x in inputs)
    kind = call.inputs[0]
    rows, row_bytes = kind.shape[0], math.prod(kind.shape[1:]) * kind.dtype.size
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            calls.take_rows(slots[target], slots[table], slots[index], rows, row_bytes)

        return run

    draft.emit((table, index), target, bind)


def _add_rows(draft: Draft, call: Call, inputs: list[Layout], target: int) -> None:
    init, index, source = (draft.packed(x).slot for x in inputs)
    rows = call.output.shape[0]
    inner = math.prod(call.output.shape[1:])
    calls = draft.calls

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            calls.add_rows(slots[target], slots[init], slots[index], slots[source], rows, inner)

        return run

    draft.emit((init, index, source), target, bind)


def _general(draft: Draft, engine: Engine, call: Call, inputs: list[Layout], target: int) -> None:
    """Any operator, through its own function; for those that are rare or small."""
    function, count = KERNELS[call.op.name], call.output.elements
    sources = [draft.packed(x).slot for x in inputs]
    shapes = [kind.shape for kind in call.inputs]

    def bind(slots: Slots) -> Kernel:
        def run() -> None:
            arrays = [slots[s].reshape(n) for s, n in zip(sources, shapes, strict=True)]
            result = function(engine, call, arrays)
            engine.calls.copy_strided(slots[target], 0, (1,), result, 0, (1,), (count,))

        return run

    draft.emit(sources, target, bind)


def _random(draft: Draft, engine: Engine, call: Call, inputs: list[Layout], target: int) -> None:
    """Random numbers; the context is read where the caller has it: no device is waited for."""
    slot = draft.packed(inputs[0]).slot
    context = draft.as_given(slot) if draft.slots[slot].kind == LOAD else slot

    def bind(slots: Slots) -> Kernel:
        return lambda: fill_random(engine, call, slots[target], slots[context])

    draft.emit((slot,), target, bind)


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
    **dict.fromkeys(windows.WINDOWED, _windowed),
    "concat": _concat,
    "reshape": _reshape,
    "full": _full,
    "take_rows": _take_rows,
    "add_rows": _add_rows,
}
"""Operators with a prepared native call; others go through the backend."""

REDUCED = frozenset({"sum_last", "amax"})
"""Operators of a chain that take a whole row to one element."""

CHAINED = frozenset({*_UNARY, "not", *_BINARY, *_COMPARE, "where", "cast", *REDUCED})
"""Operators that a chain can compute."""
