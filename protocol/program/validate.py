"""Checks of a program that came from somebody else, before anything of it runs.

Everything is inferred again: operators, types, the interfaces of both sections, and the
cost of a step. A valid program can be unrolled and executed on any state of its types.

Spec: docs/spec/program.md (PRG-1 to PRG-9, PRG-16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from identic.protocol.dtypes import DType
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.job.terms import MAX_STEPS
from identic.protocol.program.cost import cost, peak_bytes
from identic.protocol.program.types import (
    CONTEXT_TYPE,
    LOSS_TYPE,
    Program,
    Section,
    Variable,
)
from identic.protocol.program.unroll import section_calls, unroll
from identic.protocol.tensors import TensorType

VERSION = 1
MAX_NAME = 200
MAX_EXAMPLES = (1 << 64) // MAX_STEPS
"""Examples of all shards in a step, times the most steps of a job: 2**64."""
RESERVED_NAME = "__metadata__"
"""What model files call something else than a tensor."""


@dataclass(frozen=True)
class Limits:
    """What a node is willing to run."""

    max_instructions: int = 1 << 18
    """Values of an unrolled step, loads included."""
    max_references: int = 1 << 21
    """Places of an unrolled step that name a value."""
    max_bytes: int = 1 << 36
    """Most bytes of tensors held at once."""
    max_flops: int = 1 << 56
    """Arithmetic steps of one step."""


def validate(program: Program, limits: Limits) -> None:
    """Refuse a program that breaks a rule or exceeds ``limits``.

    Raises:
        ProtocolError: with the broken rule (PRG-* or OP-*).
    """
    # PRG-1: the version is 1, with at least one shard and one example.
    if program.version != VERSION or program.shards < 1 or program.examples < 1:
        got = f"version {program.version}, {program.shards} shards, {program.examples} examples"
        raise ProtocolError("PRG-1", Code.UNSUPPORTED, got=got, want="version 1, and at least one")
    _check_limit("values in a step", _plan_length(program), limits.max_instructions)
    _check_limit("references in a step", _references(program), limits.max_references)
    taken = program.shards * program.examples
    # PRG-1: a step takes fewer than 2**24 examples, so that any run's cursor is a number.
    if taken >= MAX_EXAMPLES:
        raise ProtocolError(
            "PRG-1", Code.TOO_LARGE, got=f"{taken} examples a step", want=f"below {MAX_EXAMPLES}"
        )
    _check_variables(program)
    _check_trainable(program)
    for section in (program.gradient, program.update):
        _check_section(section)
    _check_interfaces(program)
    plan = unroll(program)
    _check_limit("bytes at once", peak_bytes(plan), limits.max_bytes)
    _check_limit("arithmetic steps", cost(plan).flops, limits.max_flops)


def _check_limit(what: str, got: int, most: int) -> None:
    # PRG-16: length, references, memory and arithmetic of a step are within the node's limits.
    if got > most:
        raise ProtocolError("PRG-16", Code.TOO_LARGE, got=f"{got} {what}", want=f"at most {most}")


def _plan_length(program: Program) -> int:
    """Most values of the unrolled step, reductions included."""
    shards = program.shards
    loads = len(program.state) + len(program.data) + shards
    reductions = (len(program.gradient.outputs) + 1) * shards
    sections = len(program.gradient.instructions) * shards + len(program.update.instructions)
    return loads + sections + reductions


def _references(program: Program) -> int:
    """Places of the unrolled step that name a value; unrolling visits each once."""
    sections = (program.gradient, program.shards), (program.update, 1)
    return sum(
        times
        * (
            len(section.inputs)
            + len(section.outputs)
            + sum(len(i.inputs) for i in section.instructions)
        )
        for section, times in sections
    )


def _check_variables(program: Program) -> None:
    """Names and types of the state and the data."""
    seen: set[str] = set()
    for variable in (*program.state, *program.data):
        variable.type.check()
        name = variable.name
        # PRG-9: names are 1 to 200 printable ASCII characters without spaces, all different.
        sound = 1 <= len(name) <= MAX_NAME and all("!" <= c <= "~" for c in name)
        if not sound or name in seen or name == RESERVED_NAME:
            raise ProtocolError(
                "PRG-9",
                Code.MALFORMED,
                got=f"variable {name[:40]!r}",
                want=f"a new name of 1 to {MAX_NAME} printable characters",
            )
        seen.add(name)


def _check_trainable(program: Program) -> None:
    trainable = program.trainable
    ascending = all(a < b for a, b in pairwise(trainable))
    inside = all(i < len(program.parameters) for i in trainable)
    # PRG-17: trainable parameters are named in ascending order and are float32.
    if not ascending or not inside:
        want = f"ascending numbers below {len(program.parameters)}"
        raise ProtocolError("PRG-17", Code.OUT_OF_RANGE, got=trainable, want=want)
    for index in trainable:
        kind = program.parameters[index].type
        if kind.dtype is not DType.FLOAT32:
            raise ProtocolError("PRG-17", Code.MISMATCH, got=kind, want="float32")


def _check_section(section: Section) -> None:
    for kind in section.inputs:
        kind.check()
    section_calls(section)
    values = len(section.inputs) + len(section.instructions)
    # PRG-7: outputs are values of the section.
    if any(o >= values for o in section.outputs):
        raise ProtocolError(
            "PRG-7", Code.OUT_OF_RANGE, got=section.outputs, want=f"values below {values}"
        )


def _types(variables: Sequence[Variable]) -> list[TensorType]:
    return [v.type for v in variables]


def _check_interfaces(program: Program) -> None:
    """Both sections take and give what the step hands over."""
    parameters, buffers = _types(program.parameters), _types(program.buffers)
    optimizer, data = _types(program.optimizer), _types(program.data)
    gradients = [parameters[i] for i in program.trainable]
    gradient, update = program.gradient, program.update
    _check_types("gradient inputs", gradient.inputs, [*parameters, *buffers, *data, CONTEXT_TYPE])
    _check_types("gradient outputs", _outputs(gradient), [LOSS_TYPE, *gradients, *buffers])
    _check_types(
        "update inputs", update.inputs, [*parameters, *gradients, *optimizer, *data, CONTEXT_TYPE]
    )
    _check_types("update outputs", _outputs(update), [*parameters, *optimizer])


def _outputs(section: Section) -> list[TensorType]:
    types = [*section.inputs, *(i.output for i in section.instructions)]
    return [types[o] for o in section.outputs]


def _check_types(what: str, got: Sequence[TensorType], want: Sequence[TensorType]) -> None:
    # PRG-18: a section's inputs and outputs have the types of the step's interface.
    if list(got) == list(want):
        return
    pairs = enumerate(zip(got, want, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(got), len(want)))
    raise ProtocolError(
        "PRG-18",
        Code.MISMATCH,
        got=f"{len(got)} {what}, number {first} {got[first] if first < len(got) else 'missing'}",
        want=f"{len(want)}, number {first} {want[first] if first < len(want) else 'none'}",
    )
