"""A job whose step is one operator, so that a lie about it reaches the state untouched."""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, Digest
from identic.protocol.job.terms import JobTerms
from identic.protocol.ops import TABLE
from identic.protocol.program.plan import Load, Part, PlannedCall, Source, StepPlan
from identic.protocol.program.types import (
    CONTEXT_TYPE,
    LOSS_TYPE,
    Attribute,
    Program,
    Section,
    Variable,
)
from tests.helpers.calls import Case
from tests.helpers.execution import Lie, MemoryExecution, StateLie, to_bytes
from tests.helpers.game import terms_of


@dataclass(frozen=True)
class Job:
    """A one-step job about one operator's call."""

    plan: StepPlan
    terms: JobTerms
    state: list[bytes]
    data: list[bytes]
    value: int
    """Plan value of the operator's result."""
    good: MemoryExecution

    def lying(self, *lies: Lie | StateLie) -> MemoryExecution:
        """The same run with lies."""
        return MemoryExecution(self.terms, self.plan, self.state, self.data, *lies, reuse=self.good)


def job_of(case: Case) -> Job:
    """A job that applies the case's operator to the case's inputs, which are its data.

    An operator of the context gets the step's own, whatever words the case has.
    """
    call = case.call
    contextual = call.inputs == (CONTEXT_TYPE,) and call.op.name.startswith(("random", "shuffled"))
    kinds = () if contextual else call.inputs
    empty = Section((), (), ())
    program = Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=(Variable("result", call.output),),
        trainable=(),
        buffers=(),
        optimizer=(),
        data=tuple(Variable(f"input {i}", kind) for i, kind in enumerate(kinds)),
        gradient=empty,
        update=empty,
    )
    loads = (
        Load(Source.STATE, 0, call.output),
        *(Load(Source.DATA, i, kind) for i, kind in enumerate(kinds)),
        Load(Source.CONTEXT, 0, CONTEXT_TYPE),
    )
    inputs = (len(loads) - 1,) if contextual else tuple(range(1, 1 + len(kinds)))
    kind = Attribute("dtype", (int(DType.FLOAT32),))
    loss = TABLE["full"].call((), (kind, Attribute("shape", ()), Attribute("word", (0,))))
    value = len(loads)
    plan = StepPlan(
        program=program,
        loads=loads,
        calls=(
            PlannedCall(call, inputs, Part.UPDATE, 0, 0),
            PlannedCall(loss, (), Part.UPDATE, 0, 1),
        ),
        outputs=(value, value + 1),
    )
    state = [bytes(call.output.nbytes), bytes(LOSS_TYPE.nbytes)]
    data = [to_bytes(k, words) for k, words in zip(kinds, case.inputs, strict=False)]
    terms = terms_of(plan, state, data)
    good = MemoryExecution(terms, plan, state, data)
    return Job(plan, terms, state, data, value, good)


def unopenable(number: int) -> Digest:
    """A digest of nothing."""
    return Digest(number.to_bytes(32, "big"))
