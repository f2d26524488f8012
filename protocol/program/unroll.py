"""From a program to the straight-line plan of one step.

Order of values: the state without the loss, the data, one context a shard (PRG-10); the
gradient section for each shard (PRG-11); with two shards or more, the tree sums of the
outputs and their scaling (PRG-12, PRG-13); the update section (PRG-14).
"""

from __future__ import annotations

from collections.abc import Sequence

from identic.protocol.arithmetic import f32
from identic.protocol.dtypes import DType
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import Load, Part, PlannedCall, Source, StepPlan
from identic.protocol.program.types import CONTEXT_TYPE, Attribute, Program, Section
from identic.protocol.tensors import TensorType


class _Plan:
    """A plan under construction."""

    def __init__(self, program: Program) -> None:
        # PRG-10: loads are the state without the loss, the data, one context a shard.
        self.loads = [
            *(Load(Source.STATE, i, v.type) for i, v in enumerate(program.state[:-1])),
            *(Load(Source.DATA, i, v.type) for i, v in enumerate(program.data)),
            *(Load(Source.CONTEXT, i, CONTEXT_TYPE) for i in range(program.shards)),
        ]
        self.calls: list[PlannedCall] = []
        self.reduced = 0

    def type(self, value: int) -> TensorType:
        if value < len(self.loads):
            return self.loads[value].type
        return self.calls[value - len(self.loads)].call.output

    def add(self, planned: PlannedCall) -> int:
        """Append a call and return the number of its value."""
        self.calls.append(planned)
        return len(self.loads) + len(self.calls) - 1

    def section(
        self, calls: Sequence[Call], section: Section, inputs: list[int], part: Part, shard: int
    ) -> list[int]:
        """Append one run of a section and return the values of its outputs."""
        numbers = list(inputs)
        pairs = zip(section.instructions, calls, strict=True)
        for position, (instruction, call) in enumerate(pairs):
            used = tuple(numbers[i] for i in instruction.inputs)
            numbers.append(self.add(PlannedCall(call, used, part, shard, position)))
        return [numbers[o] for o in section.outputs]

    def reduction(self, op: str, inputs: tuple[int, ...], *attributes: Attribute) -> int:
        """Append one operator of the reduction over shards."""
        call = TABLE[op].call(tuple(self.type(i) for i in inputs), attributes)
        self.reduced += 1
        return self.add(PlannedCall(call, inputs, Part.REDUCTION, 0, self.reduced - 1))

    def tree_sum(self, values: list[int]) -> int:
        """Sum neighbours until one value is left; an odd last one passes on."""
        # PRG-12: the shards' values are summed as a tree over the shard's index.
        while len(values) > 1:
            pairs = [
                self.reduction("add", (values[i], values[i + 1]))
                for i in range(0, len(values) - 1, 2)
            ]
            values = [*pairs, values[-1]] if len(values) % 2 else pairs
        return values[0]


def section_calls(section: Section) -> list[Call]:
    """The calls of a section, every type inferred again from the inputs'.

    Raises:
        ProtocolError: an operator is unknown (PRG-4), an input number is not smaller than
            the instruction's own (PRG-7), an inferred type differs from the declared one
            (PRG-8), or an operator's own rule is broken.
    """
    types = list(section.inputs)
    calls = []
    for position, instruction in enumerate(section.instructions):
        # PRG-4: an instruction names an operator of the table.
        if instruction.op not in TABLE:
            got = f"{instruction.op[:32]!r} at {position}"
            raise ProtocolError("PRG-4", Code.UNKNOWN, got=got, want="an operator of the table")
        # PRG-7: an instruction uses values made before it.
        if any(i >= len(types) for i in instruction.inputs):
            raise ProtocolError(
                "PRG-7",
                Code.OUT_OF_RANGE,
                got=f"{instruction.op} at {position} uses {instruction.inputs}",
                want=f"values below {len(types)}",
            )
        operands = tuple(types[i] for i in instruction.inputs)
        call = TABLE[instruction.op].call(operands, instruction.attributes)
        # PRG-8: the declared type is the inferred one.
        if call.output != instruction.output:
            raise ProtocolError(
                "PRG-8",
                Code.MISMATCH,
                got=f"{instruction.op} at {position} declared {instruction.output}",
                want=call.output,
            )
        calls.append(call)
        types.append(call.output)
    return calls


def unroll(program: Program) -> StepPlan:
    """Unroll one step of a valid program (``validate`` checks it beforehand)."""
    plan = _Plan(program)
    kept, states, data = len(program.parameters), len(program.state) - 1, len(program.data)
    optimizer = list(range(kept + len(program.buffers), states))
    tables = list(range(states, states + data))
    contexts = list(range(states + data, states + data + program.shards))

    # PRG-11: the gradient section runs for each shard in order, on the same state.
    calls = section_calls(program.gradient)
    shards = []
    for shard in range(program.shards):
        inputs = [*range(kept + len(program.buffers)), *tables, contexts[shard]]
        shards.append(plan.section(calls, program.gradient, inputs, Part.GRADIENT, shard))
    loss, gradients, buffers = _reduce(plan, program, shards)

    # PRG-14: the update section runs once, with the context of shard 0.
    inputs = [*range(kept), *gradients, *optimizer, *tables, contexts[0]]
    updates = section_calls(program.update)
    changed = plan.section(updates, program.update, inputs, Part.UPDATE, 0)
    outputs = (*changed[:kept], *buffers, *changed[kept:], loss)
    return StepPlan(program, tuple(plan.loads), tuple(plan.calls), outputs)


def _reduce(
    plan: _Plan, program: Program, shards: list[list[int]]
) -> tuple[int, list[int], list[int]]:
    """Loss, gradients and buffers over all shards."""
    count = len(shards)
    results = shards[0]
    # PRG-13: sums over two or more shards are multiplied by 1/shards; one shard's are kept.
    if count > 1:
        scale = Attribute("word", (f32.div(f32.ONE, f32.from_int(count)),))
        kind = Attribute("dtype", (DType.FLOAT32,))
        factor = plan.reduction("full", (), kind, Attribute("shape", ()), scale)
        results = []
        for values in zip(*shards, strict=True):
            # PRG-13: a tensor that is not float32 is that of shard 0.
            if plan.type(values[0]).dtype is not DType.FLOAT32:
                results.append(values[0])
                continue
            results.append(plan.reduction("mul", (plan.tree_sum(list(values)), factor)))
    trained = len(program.trainable)
    return results[0], results[1 : 1 + trained], results[1 + trained :]
