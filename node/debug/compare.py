"""Two twins on the same operands, and the first element on which they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from identic.kernels.arrays import NUMPY, Array, from_words, words
from identic.node.debug.calls import BUILDERS
from identic.node.debug.cases import Maker
from identic.node.debug.twins import Twin
from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import element, looked_position
from identic.protocol.ops.folds import Constant, Element, Looked, Step
from identic.protocol.program.context import context
from identic.protocol.program.plan import Source, StepPlan
from identic.protocol.tensors import TensorType, unravel

Tell = Callable[[str], None]
"""Takes what is being compared, in a word or two."""


@dataclass(frozen=True)
class Operand:
    """An operand of the primitive step that makes an element."""

    place: str
    """Input and index, or where else it comes from."""
    dtype: DType | None
    word: int


@dataclass(frozen=True)
class Difference:
    """The first element that differs.

    Attributes:
        call: the operator and its types.
        where: which call it is, in words.
        flat: flat position in the result.
        place: index along each axis.
        words: by the first twin and by the second.
        rule: by the definition.
        steps: entries of the element's fold.
        operands: of its one step; empty where there are more.
    """

    call: Call
    where: str
    flat: int
    place: tuple[int, ...]
    words: tuple[int, int]
    rule: int
    steps: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Found:
    """What a comparison found.

    Attributes:
        calls: calls that both computed.
        elements: elements compared.
        difference: the first one, if there is any.
    """

    calls: int
    elements: int
    difference: Difference | None


def operators(
    names: Iterable[str], cases: int, seed: int, twins: tuple[Twin, Twin], tell: Tell
) -> Found:
    """Random calls of operators: case ``i`` of each follows from ``seed + i``."""
    calls = elements = 0
    for name in names:
        tell(name)
        for i in range(seed, seed + cases):
            made = BUILDERS[name](Maker(i))
            kinds = zip(made.call.inputs, made.inputs, strict=True)
            inputs = [from_words(kind, values) for kind, values in kinds]
            difference = compared(made.call, inputs, twins, f"{name}, seed {i}")
            calls, elements = calls + 1, elements + made.call.output.elements
            if difference is not None:
                return Found(calls, elements, difference)
    return Found(calls, elements, None)


def program(
    plan: StepPlan,
    state: Sequence[Array],
    data: Sequence[Array],
    seed: int,
    twins: tuple[Twin, Twin],
    tell: Tell,
) -> Found:
    """Every operator of the first step of a program; both twins get the first's operands."""
    values: list[Array] = []
    for load in plan.loads:
        if load.source is Source.CONTEXT:
            values.append(np.array(context(seed, 0, load.index), dtype="<i8"))
        else:
            values.append((state if load.source is Source.STATE else data)[load.index])
    elements = 0
    for number, planned in enumerate(plan.calls, start=len(plan.loads)):
        tell(f"value {number} of {plan.values}, {planned.call.op.name}")
        inputs = [values[i] for i in planned.inputs]
        where = f"value {number} of {plan.values}, {planned.call.op.name}"
        difference = compared(planned.call, inputs, twins, where)
        elements += planned.call.output.elements
        if difference is not None:
            return Found(number - len(plan.loads) + 1, elements, difference)
        values.append(twins[0].run(planned.call, inputs))
    return Found(len(plan.calls), elements, None)


def made_up(kinds: Iterable[TensorType], seed: int) -> list[Array]:
    """Tensors for a program whose own are not at hand: finite numbers, small indices."""
    random = np.random.default_rng(seed)
    arrays: list[Array] = []
    for kind in kinds:
        if kind.dtype is DType.FLOAT32:
            values = random.standard_normal(kind.shape, dtype=np.float32)
            scale = np.exp2(random.integers(-12, 4, kind.shape)).astype(np.float32)
            special = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-38], np.float32)
            chosen = random.choice(special, kind.shape)
            arrays.append(np.where(random.random(kind.shape) < 0.02, chosen, values * scale))
        elif kind.dtype is DType.BFLOAT16:
            arrays.append(random.integers(0x3C00, 0x4000, kind.shape, dtype=np.uint16))
        else:
            most = 2 if kind.dtype is DType.BOOL else 8
            arrays.append(random.integers(0, most, kind.shape).astype(NUMPY[kind.dtype]))
    return arrays


# ---- one call ---------------------------------------------------------------------------------


def compared(
    call: Call, inputs: Sequence[Array], twins: tuple[Twin, Twin], where: str
) -> Difference | None:
    """Run a call on both twins and compare bit for bit."""
    one, other = (twin.run(call, inputs) for twin in twins)
    ours, theirs = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (one, other))
    differing = np.flatnonzero(ours != theirs)
    if not differing.size:
        return None
    flat = int(differing[0]) // call.output.dtype.size
    given = [words(x) for x in inputs]

    def read(number: int, at: int) -> int:
        return given[number][at]

    made = call.op.fold(call, flat)
    first = made.entry(0)
    step = first if made.length == 1 and isinstance(first, Step) else None
    return Difference(
        call=call,
        where=where,
        flat=flat,
        place=unravel(flat, call.output.shape),
        words=(_word(one, flat), _word(other, flat)),
        rule=element(call, flat, read),
        steps=made.length,
        operands=_operands(call, step, given) if step is not None else (),
    )


def _word(array: Array, flat: int) -> int:
    size = array.dtype.itemsize
    data = np.ascontiguousarray(array).reshape(-1)[flat : flat + 1].tobytes()
    return int.from_bytes(data[:size], "little")


def _operands(call: Call, step: Step, given: list[list[int]]) -> tuple[Operand, ...]:
    """The words that a single step works on, and where each comes from."""
    found = []
    for operand in step.operands:
        if isinstance(operand, Constant):
            found.append(Operand("a constant", None, operand.word))
        elif isinstance(operand, Element):
            found.append(_element(call, operand.input, operand.index, given))
        elif isinstance(operand, Looked):
            index = _element(call, operand.at.input, operand.at.index, given)
            at = looked_position(call, operand, index.word)
            found.append(index)
            if at is None:
                found.append(Operand(f"outside {_letter(operand.input)}", None, 0))
            else:
                found.append(_element(call, operand.input, at, given))
    return tuple(found)


def _element(call: Call, number: int, flat: int, given: list[list[int]]) -> Operand:
    kind = call.inputs[number]
    place = ", ".join(str(i) for i in unravel(flat, kind.shape))
    return Operand(f"{_letter(number)}[{place}]", kind.dtype, given[number][flat])


def _letter(number: int) -> str:
    """Name of an operand: a, b, c, ..."""
    return chr(ord("a") + number) if number < 26 else f"operand {number} "
