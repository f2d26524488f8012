"""A short run of the small perceptron, with its honest execution, for disputes."""

from __future__ import annotations

import struct
from functools import cache

from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, Digest, Unsigned
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.types import CONTEXT_TYPE, Program, Variable
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from identic.protocol.tensors import TensorType
from tests.helpers.execution import Lie, MemoryExecution, StateLie
from tests.helpers.game import terms_of
from tests.helpers.programs import SectionBuilder, mlp, mlp_data, mlp_state


class Run:
    """A job, its honest run, and liars about it."""

    def __init__(
        self, program: Program, state: list[bytes], data: list[bytes], *, steps: int, cadence: int
    ) -> None:
        self.program = program
        self.plan: StepPlan = unroll(self.program)
        self.state = state
        self.data = data
        self.terms: JobTerms = terms_of(
            self.plan, self.state, self.data, steps=steps, cadence=cadence
        )
        self.good = MemoryExecution(self.terms, self.plan, self.state, self.data)

    def lying(self, *lies: Lie | StateLie) -> MemoryExecution:
        """The same run with lies."""
        return MemoryExecution(self.terms, self.plan, self.state, self.data, *lies, reuse=self.good)

    def value(self, op: str, number: int = 0) -> int:
        """Plan value of the operator's occurrence ``number``."""
        found = [
            len(self.plan.loads) + i
            for i, planned in enumerate(self.plan.calls)
            if planned.call.op.name == op
        ]
        return found[number]

    def load(self, name: str) -> int:
        """Plan value of a data tensor."""
        names = [variable.name for variable in self.program.data]
        return len(self.program.state) - 1 + names.index(name)

    def flipped(self, step: int, value: int, element: int = 0) -> Lie:
        """A lie that flips one bit of a value's element: of a number, the highest fraction bit."""
        kind = self.plan.type(value)
        size = kind.dtype.size
        data = self.good.values[step][value][element * size : (element + 1) * size]
        bit = 1 << 22 if kind.dtype is DType.FLOAT32 else 1
        return Lie(step, value, element, (), kind.dtype.word(data) ^ bit)

    def root(self, state: int) -> Digest:
        """Honest root of a state."""
        return self.good.roots[state]


@cache
def small_run(shards: int = 2, steps: int = 4, cadence: int = 2) -> Run:
    """A run of the perceptron, made once a process."""
    program = mlp(rows=6, width=3, hidden=2, classes=2, batch=2, shards=shards, steps=steps)
    return Run(program, mlp_state(program), mlp_data(program), steps=steps, cadence=cadence)


@cache
def tiny_run() -> Run:
    """One step of one number: w becomes w - w * w, and the loss is w * w."""
    scalar = TensorType.of(DType.FLOAT32, ())
    weight = (Variable("w", scalar),)
    gradient = SectionBuilder([scalar, CONTEXT_TYPE])
    loss = gradient.op("mul", 0, 0)
    update = SectionBuilder([scalar, scalar, CONTEXT_TYPE])
    moved = update.op("sub", 0, 1)
    program = Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=weight,
        trainable=(Unsigned(0),),
        buffers=(),
        optimizer=(),
        data=(),
        gradient=gradient.build(loss, loss),
        update=update.build(moved),
    )
    validate(program, Limits())
    return Run(program, [struct.pack("<f", 0.5), bytes(4)], [], steps=1, cadence=1)
