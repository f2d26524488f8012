"""What a step costs: arithmetic steps, bytes moved, and the most memory held at once.

All numbers come from shapes alone, before anything runs. Spec: docs/spec/program.md (PRG-16).
"""

from __future__ import annotations

from identic.protocol.ops.base import Cost
from identic.protocol.program.plan import StepPlan


def cost(plan: StepPlan) -> Cost:
    """Sum of the calls' costs."""
    costs = [planned.call.op.cost(planned.call) for planned in plan.calls]
    return Cost(flops=sum(c.flops for c in costs), bytes=sum(c.bytes for c in costs))


def last_uses(plan: StepPlan) -> list[int]:
    """For each value the number of the last value computed from it; itself if there is none.

    Values that the new state keeps count as used by the end of the step, ``plan.values``.
    """
    last = list(range(plan.values))
    for number, planned in enumerate(plan.calls, start=len(plan.loads)):
        for value in planned.inputs:
            last[value] = number
    for value in plan.outputs:
        last[value] = plan.values
    return last


def peak_bytes(plan: StepPlan) -> int:
    """Most bytes of tensors held at once when each result is freed after its last use.

    Loads are held throughout. An executor that copies nothing needs no more than this.
    """
    # PRG-16: memory is bounded from shapes: loads, and each result until its last use.
    held = sum(load.type.nbytes for load in plan.loads)
    freed_after: list[list[int]] = [[] for _ in range(plan.values + 1)]
    for value, last in enumerate(last_uses(plan)):
        freed_after[last].append(value)
    most, first = held, len(plan.loads)
    for number in range(first, plan.values):
        held += plan.type(number).nbytes
        most = max(most, held)
        held -= sum(plan.type(v).nbytes for v in freed_after[number] if v >= first)
    return most
