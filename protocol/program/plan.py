"""One whole step as straight-line code: the trace's order.

The plan is the program unrolled: loads (state without the loss, data, one context a
shard), the gradient section for each shard, the tree sums over shards, the scaling by
1/shards, the update section. Value ``i`` of the plan is leaf ``i`` of the step's trace;
the last leaf of the trace, after all values, binds the new state's root.

Spec: docs/spec/program.md (PRG-10 to PRG-14).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from identic.protocol.ops.base import Call
from identic.protocol.program.types import Program
from identic.protocol.tensors import TensorType


class Source(IntEnum):
    """Where a loaded value comes from."""

    STATE = 1
    DATA = 2
    CONTEXT = 3


@dataclass(frozen=True)
class Load:
    """A value that exists before the step."""

    source: Source
    index: int
    """State or data tensor number, or the shard of a context."""
    type: TensorType


class Part(IntEnum):
    """The part of a step an operator belongs to."""

    GRADIENT = 1
    REDUCTION = 2
    UPDATE = 3


@dataclass(frozen=True)
class PlannedCall:
    """An operator of the plan."""

    call: Call
    inputs: tuple[int, ...]
    """Plan value numbers."""
    part: Part
    shard: int
    """Shard of a gradient operator, else 0."""
    position: int
    """Instruction number in its section, or number within the reduction."""


@dataclass(frozen=True)
class StepPlan:
    """The unrolled step."""

    program: Program
    loads: tuple[Load, ...]
    calls: tuple[PlannedCall, ...]
    outputs: tuple[int, ...]
    """Plan value of each state tensor after the step, in state order, the loss last."""

    @property
    def values(self) -> int:
        """Number of values: loads, then calls."""
        return len(self.loads) + len(self.calls)

    @property
    def trace_length(self) -> int:
        """Leaves of the step's trace: every value, and the new state's root."""
        return self.values + 1

    def type(self, value: int) -> TensorType:
        """Type of plan value ``value``."""
        if value < len(self.loads):
            return self.loads[value].type
        return self.calls[value - len(self.loads)].call.output

    def call(self, value: int) -> PlannedCall | None:
        """The operator that makes ``value``, or ``None`` for a load."""
        return None if value < len(self.loads) else self.calls[value - len(self.loads)]
