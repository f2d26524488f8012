"""A stranger's program is refused, or runs: fields, numbers, shapes, instructions changed.

Every mutant that validation accepts is executed, natively and by the definitions, on a state of
its own types; both give the same bits. Nothing else can come out: no other error, no hang.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from identic.kernels.arrays import NUMPY, Array
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.kernels.reference_backend import ReferenceBackend
from identic.protocol.dtypes import DType
from identic.protocol.encoding import encode
from identic.protocol.errors import ProtocolError
from identic.protocol.ids import Count, Unsigned
from identic.protocol.ops import TABLE
from identic.protocol.program.codec import load
from identic.protocol.program.types import (
    CONTEXT_TYPE,
    Instruction,
    Program,
    Section,
    Variable,
)
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits
from identic.protocol.tensors import TensorType
from tests.helpers.calls import BUILDERS, Case, Maker
from tests.helpers.effort import examples
from tests.helpers.programs import SectionBuilder
from tests.helpers.small_run import small_run

NUMBERS = (0, 1, 2, 3, 4, 5, 7, 255, -1, -2, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1)


def _with(program: Program, **fields: Any) -> Program:
    """The program with other fields, sound or not."""
    return replace(program, **fields)


def _section(program: Program, chance: random.Random, change: Callable[..., Section]) -> Program:
    """The program with one of its sections changed."""
    name = chance.choice(["gradient", "update"])
    section = change(getattr(program, name), chance)
    return _with(program, **{name: section})


def _instruction(
    change: Callable[[Instruction, Section, random.Random], Instruction],
) -> Callable[[Program, random.Random], Program]:
    """A mutation of one instruction."""

    def changed(section: Section, chance: random.Random) -> Section:
        at = chance.randrange(len(section.instructions))
        made = list(section.instructions)
        made[at] = change(made[at], section, chance)
        return replace(section, instructions=tuple(made))

    return lambda program, chance: _section(program, chance, changed)


def _inferred(section: Section, made: list[Instruction]) -> tuple[Instruction, ...]:
    """Instructions with the types that their operators give, as far as they give any."""
    types, done = list(section.inputs), []
    for i in made:
        try:
            operands = tuple(types[n] for n in i.inputs)
            kind = TABLE[i.op].call(operands, i.attributes).output
        except (ProtocolError, IndexError, KeyError):
            kind = i.output
        done.append(replace(i, output=kind))
        types.append(kind)
    return tuple(done)


def _operator(i: Instruction, _: Section, chance: random.Random) -> Instruction:
    same = [n for n, op in TABLE.items() if op.arity == TABLE[i.op].arity]
    return replace(i, op=chance.choice([*same, *TABLE, "none"]))


def _inputs(i: Instruction, section: Section, chance: random.Random) -> Instruction:
    most = len(section.inputs) + len(section.instructions)
    places = [Unsigned(chance.randrange(most + 2)) for _ in i.inputs]
    kept = [p if chance.random() < 0.5 else old for p, old in zip(places, i.inputs, strict=True)]
    if chance.random() < 0.2:
        kept = kept[:-1] if chance.random() < 0.5 else [*kept, Unsigned(0)]
    return replace(i, inputs=tuple(kept))


def _attributes(i: Instruction, _: Section, chance: random.Random) -> Instruction:
    if not i.attributes:
        return i
    at = chance.randrange(len(i.attributes))
    values = list(i.attributes[at].values) or [0]
    values[chance.randrange(len(values))] = chance.choice(NUMBERS)
    if chance.random() < 0.2:
        values = values[:-1] if chance.random() < 0.5 else [*values, chance.choice(NUMBERS)]
    made = list(i.attributes)
    made[at] = replace(made[at], values=tuple(values))
    return replace(i, attributes=tuple(made))


def _type(i: Instruction, _: Section, chance: random.Random) -> Instruction:
    shape = [int(n) for n in i.output.shape]
    if shape and chance.random() < 0.7:
        shape[chance.randrange(len(shape))] = abs(chance.choice(NUMBERS)) % (1 << 50)
    return replace(i, output=_unchecked(chance.choice(list(DType)), shape))


def _unchecked(dtype: DType, shape: list[int]) -> TensorType:
    return TensorType(dtype, tuple(Unsigned(n) for n in shape))


def _order(program: Program, chance: random.Random) -> Program:
    def changed(section: Section, chance: random.Random) -> Section:
        made = list(section.instructions)
        a, b = (chance.randrange(len(made)) for _ in range(2))
        how = chance.randrange(3)
        if how == 0:
            made[a], made[b] = made[b], made[a]
        elif how == 1:
            made.insert(a, made[b])
        else:
            del made[a]
        return replace(section, instructions=tuple(made))

    return _section(program, chance, changed)


def _outputs(program: Program, chance: random.Random) -> Program:
    def changed(section: Section, chance: random.Random) -> Section:
        outputs = list(section.outputs)
        most = len(section.inputs) + len(section.instructions) + 1
        outputs[chance.randrange(len(outputs))] = Unsigned(chance.randrange(most))
        return replace(section, outputs=tuple(outputs))

    return _section(program, chance, changed)


def _variables(program: Program, chance: random.Random) -> Program:
    groups = ["parameters", "optimizer", "data"]
    name = chance.choice([n for n in groups if getattr(program, n)])
    variables = list(getattr(program, name))
    at = chance.randrange(len(variables))
    shape = [abs(chance.choice(NUMBERS)) % (1 << 50) for _ in variables[at].type.shape]
    kind = _unchecked(chance.choice(list(DType)), shape)
    variables[at] = replace(variables[at], type=kind)
    return _with(program, **{name: tuple(variables)})


def _counts(program: Program, chance: random.Random) -> Program:
    name = chance.choice(["shards", "examples", "version"])
    return _with(program, **{name: Count(abs(chance.choice(NUMBERS)))})


MUTATIONS: dict[str, Callable[[Program, random.Random], Program]] = {
    "operator": _instruction(_operator),
    "inputs": _instruction(_inputs),
    "attributes": _instruction(_attributes),
    "type": _instruction(_type),
    "order": _order,
    "outputs": _outputs,
    "variables": _variables,
    "counts": _counts,
}


def mutant(program: Program, name: str, chance: random.Random) -> Program:
    """The program with one or two mutations, its types inferred again half of the time."""
    for _ in range(chance.choice([1, 1, 2])):
        program = MUTATIONS[name](program, chance)
    if chance.random() < 0.6:
        sections = {
            n: replace(s, instructions=_inferred(s, list(s.instructions)))
            for n, s in (("gradient", program.gradient), ("update", program.update))
        }
        program = _with(program, **sections)
    return program


def filled(kind: TensorType, chance: np.random.Generator) -> Any:
    """A tensor of a type, of numbers in and out of every range."""
    shape, dtype = tuple(int(n) for n in kind.shape), NUMPY[kind.dtype]
    if kind.dtype is DType.FLOAT32:
        numbers = chance.standard_normal(shape) * 10.0 ** chance.integers(-3, 3)
        return np.asarray(numbers, np.float32).reshape(shape)
    if kind.dtype is DType.BOOL:
        return np.asarray(chance.integers(0, 2, shape), dtype)
    return np.asarray(chance.integers(0, 9, shape), dtype)


def _seen(_: int, array: Array) -> Array:
    """An observer: every value is computed by itself."""
    return array


def every_operator() -> Program:
    """A program with a small call of every operator, each result a buffer of its own."""
    cases = [_small(name) for name in sorted(TABLE)]
    weight, grown = Variable("weight", TensorType.of(DType.FLOAT32, (1,))), []
    data = []
    for made in cases:
        for number, kind in enumerate(made.call.inputs):
            if kind != CONTEXT_TYPE:
                data.append(Variable(f"{made.call.op.name}.{number}", kind))
        grown.append(Variable(f"{made.call.op.name}.result", made.call.output))
    gradient = SectionBuilder([v.type for v in (weight, *grown, *data)] + [CONTEXT_TYPE])
    context, place = len(gradient.types) - 1, 1 + len(grown)
    results = []
    for made in cases:
        numbers = []
        for kind in made.call.inputs:
            numbers.append(context if kind == CONTEXT_TYPE else place)
            place += kind != CONTEXT_TYPE
        call = {a.name: a.values for a in made.call.attributes}
        results.append(gradient.op(made.call.op.name, *numbers, **call))
    loss = gradient.op("sum_last", 0)
    update = SectionBuilder([weight.type, weight.type, *(v.type for v in data), CONTEXT_TYPE])
    return Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=(weight,),
        trainable=(Unsigned(0),),
        buffers=tuple(grown),
        optimizer=(),
        data=tuple(data),
        gradient=gradient.build(loss, 0, *results),
        update=update.build(update.op("sub", 0, 1)),
    )


def _small(name: str) -> Case:
    """A call with a result, of few elements."""
    made = (BUILDERS[name](Maker(seed)) for seed in range(1000))
    return next(
        c
        for c in made
        if 4 <= c.call.output.elements <= 40 and all(1 <= k.elements <= 40 for k in c.call.inputs)
    )


MUTANTS = {"perceptron": examples(100), "operators": examples(60)}
PROGRAMS: dict[str, Callable[[], Program]] = {
    "perceptron": lambda: small_run().program,
    "operators": every_operator,
}
LIMITS = {
    "perceptron": Limits(4000, 20000, max_bytes=1 << 22, max_flops=1 << 22),
    "operators": Limits(4000, 20000, max_bytes=1 << 16, max_flops=1 << 16),
}


# Under the sanitizers: `make check-sanitizers`.
@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.parametrize("seed", PROGRAMS)
def test_prg_16__a_mutated_program_is_refused_or_runs(seed: str, name: str) -> None:
    program = PROGRAMS[seed]()
    load(encode(program), LIMITS[seed])
    chance = random.Random(f"mutants of {name}")
    refused = ran = 0
    rules: set[str] = set()
    for number in range(MUTANTS[seed]):
        encoded = encode(mutant(program, name, chance))
        try:
            found = load(encoded, LIMITS[seed])
        except ProtocolError as error:
            rules.add(error.rule)
            refused += 1
            continue
        numbers = np.random.default_rng(number)
        state = [filled(v.type, numbers) for v in found.state]
        data = [filled(v.type, numbers) for v in found.data]
        plan, native = unroll(found), CpuBackend(1)
        runs = [
            Executor(plan, native).step(state, data, 5, 3),
            Executor(plan, native).step(state, data, 5, 3, _seen),
            Executor(plan, ReferenceBackend()).step(state, data, 5, 3),
        ]
        assert len({tuple(a.tobytes() for a in run) for run in runs}) == 1
        ran += 1
    assert all(rule.startswith(("PRG-", "OP-", "ENC-")) for rule in rules)
    assert refused >= MUTANTS[seed] // 10
    assert refused + ran == MUTANTS[seed]
