"""What a coordinator takes on beyond the rules of jobs: by its own memory, and for its parties.

It binds new postings only. What is in the log was accepted and stays so, whatever the policy
is changed to.

Spec: docs/spec/jobs.md (JOB-22).
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.dispute.clocks import weight
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.job.terms import JobTerms
from identic.protocol.ops.base import Call
from identic.protocol.program.cost import cost
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll

OPERATIONS_PER_MS = 10_000_000
"""Weighted operations of a slow machine in a millisecond."""
BYTES_PER_MS = 1_000_000
"""Bytes that operators of a slow machine move in a millisecond."""
HASHED_PER_MS = 200_000
"""Bytes that a slow machine hashes in a millisecond."""
UPLOADED_PER_MS = 10_000
"""Bytes that a party with a slow connection hands in in a millisecond."""
VALUES_SQUARED_PER_MS = 10_000
"""How the preparation of a step grows with the values of its plan."""
ENTRIES_PER_MS = 30
"""Primitive steps of one element that a slow machine computes singly in a millisecond."""
COPIES = 3
"""How often a state is in memory while its blob is checked."""


@dataclass(frozen=True)
class Policy:
    """Limits of postings."""

    memory_bytes: int = 1 << 40
    """Memory for the blobs of a job."""
    shortest_ms: int = 0
    """Shortest clock of a dispute's move; 0 takes any clocks."""

    def check(self, terms: JobTerms, program: Program) -> None:
        """Refuse a job before its state and data are read.

        Args:
            terms: of the posting.
            program: that it brings; valid, though not yet known to be the one of the terms.

        Raises:
            ProtocolError: JOB-22.
        """
        held = COPIES * sum(v.type.nbytes for v in (*program.state, *program.data))
        # JOB-22: state and data can be checked within the coordinator's memory.
        if held > self.memory_bytes:
            raise ProtocolError(
                "JOB-22",
                Code.TOO_LARGE,
                got=f"state and data that take {held} bytes to check",
                want=f"at most {self.memory_bytes} bytes",
            )
        if self.shortest_ms:
            self._check_clocks(terms, program)

    def _check_clocks(self, terms: JobTerms, program: Program) -> None:
        plan, clocks = unroll(program), terms.clocks
        needed = rerun_ms(plan, terms.steps, terms.cadence, terms.checkpoint)
        for name, given, least in (
            ("move", clocks.move_ms, move_ms(plan)),
            ("rerun", clocks.rerun_ms, needed),
            # Who is started again in a dispute executes all of it once more, on its reserve.
            ("budget", clocks.budget_ms, needed),
        ):
            # JOB-22: clocks leave an honest party the time for its moves and marks.
            if given < self.shortest_ms + least:
                raise ProtocolError(
                    "JOB-22",
                    Code.OUT_OF_RANGE,
                    got=f"a {name} clock of {given} ms",
                    want=f"at least {self.shortest_ms + least} ms",
                )


def move_ms(plan: StepPlan) -> int:
    """Time that a slow machine needs to open what it has in memory, in ms."""
    operands = (sum(kind.nbytes for kind in planned.call.inputs) for planned in plan.calls)
    return max(operands, default=0) // HASHED_PER_MS


def rerun_ms(plan: StepPlan, steps: int, cadence: int, checkpoint: int) -> int:
    """Time that a slow machine needs for any answer in a dispute or to hand in a result, in ms.

    Args:
        plan: the unrolled program.
        steps: of the run.
        cadence: steps between two marks.
        checkpoint: marks between two states that an honest party keeps.
    """
    whole = cost(plan)
    step = whole.flops // OPERATIONS_PER_MS + whole.bytes // BYTES_PER_MS
    longest = max((_entries(call) for call in {planned.call for planned in plan.calls}), default=0)
    # Preparing a step takes a time that may grow with the square of its values.
    prepared = plan.values**2 // VALUES_SQUARED_PER_MS
    # The last state and the model are handed in within one silence.
    state = sum(v.type.nbytes for v in plan.program.state)
    handed_in = 2 * state // UPLOADED_PER_MS
    # The states of an interval are hashed, and the values of the step in question.
    values = sum(plan.type(value).nbytes for value in range(plan.values))
    hashed = (min(steps, cadence) * state + values) // HASHED_PER_MS
    # From the state kept before it to the step in question, and that step again for its values.
    executed = (min(steps, cadence * checkpoint) + 2) * step
    return executed + hashed + longest // ENTRIES_PER_MS + handed_in + prepared


def _entries(call: Call) -> int:
    """About how many primitive steps make the last element of a result."""
    elements = call.output.elements
    return weight(call.op.fold(call, elements - 1)) if elements else 0
