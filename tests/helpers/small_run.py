"""A short run of the small perceptron, with its honest execution, for disputes."""

from __future__ import annotations

from functools import cache

from identic.protocol.dtypes import DType
from identic.protocol.ids import Digest
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll
from tests.helpers.execution import Lie, MemoryExecution, StateLie
from tests.helpers.game import terms_of
from tests.helpers.programs import mlp, mlp_data, mlp_state


class Run:
    """A job, its honest run, and liars about it."""

    def __init__(self, *, shards: int, steps: int, cadence: int) -> None:
        self.program: Program = mlp(
            rows=6, width=3, hidden=2, classes=2, batch=2, shards=shards, steps=steps
        )
        self.plan: StepPlan = unroll(self.program)
        self.state = mlp_state(self.program)
        self.data = mlp_data(self.program)
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
    """A run, made once a process."""
    return Run(shards=shards, steps=steps, cadence=cadence)
