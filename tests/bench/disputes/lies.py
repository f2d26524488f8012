"""The lies of the table, and executions that tell them.

Two kinds: a wrong primitive step of one element of an operator's result, from which the liar
goes on honestly, as ``node/execution/forced.py`` makes it; and a wrong digest of something that
no operator made: a load, the new state's header, a tensor of the new state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from identic.node.execution.elements import word_at
from identic.node.execution.forced import ForcedError
from identic.node.execution.rerun import Rerun
from identic.proofs.state import state_path
from identic.protocol.commitments import header_digest, state_root
from identic.protocol.dispute.bounds import Fault
from identic.protocol.dispute.levels import StateLevel
from identic.protocol.dispute.moves import Children, Move, Side
from identic.protocol.dispute.player import next_move
from identic.protocol.dispute.state import Dispute
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, StepIndex, Unsigned
from identic.protocol.job.messages import Mark
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.program.plan import Part, PlannedCall, StepPlan

JUNK = sha256(b"what nobody computed")


@dataclass(frozen=True)
class Lie:
    """A row of the table.

    Attributes:
        name: what is wrong, in words.
        fault: where.
    """

    name: str
    fault: Fault

    def forced(self, plan: StepPlan) -> ForcedError | None:
        """The wrong primitive step; ``None`` for a digest of something else."""
        fault = self.fault
        planned = plan.call(fault.value) if fault.value is not None else None
        if planned is None or fault.step is None or fault.value is None:
            return None
        entry: Any = Nested(planned.call.op.fold(planned.call, fault.element))
        for index in fault.path:
            entry = entry.fold.entry(index)
        kind = PRIMITIVES[entry.primitive].result or planned.call.output.dtype
        # The highest bit below the sign: of a number, of its exponent.
        flip = 1 << (8 * kind.size - 2) if kind.size > 1 else 1
        return ForcedError(
            StepIndex(fault.step),
            Count(fault.value),
            Count(fault.element),
            tuple(Count(i) for i in fault.path),
            Unsigned(flip),
        )


# ---- which lies -------------------------------------------------------------------------------

Wanted = Callable[[PlannedCall], int]
"""How well an operator fits; 0 for not at all."""


def lies(plan: StepPlan, step: int) -> list[Lie]:
    """Every lie of the table that a program has room for, in step ``step``."""
    data = next(v for v, load in enumerate(plan.loads) if load.source.name == "DATA")
    found = [
        Lie("load of a parameter", Fault(step, 0)),
        Lie("load of the data", Fault(step, data)),
        Lie("state header", Fault(step, part=0)),
        Lie("state tensor", Fault(step, part=len(plan.outputs) // 2)),
    ]
    wanted: list[tuple[str, Wanted]] = [
        ("matrix product", _of("matmul", Part.GRADIENT)),
        ("convolution", _of("conv", Part.GRADIENT)),
        ("convolution, weight gradient", _of("conv_dw", Part.GRADIENT)),
        ("max pool", _of("max_pool", Part.GRADIENT)),
        ("sum of a norm", _norm_sum(plan)),
        ("bias gradient", _of("sum_first", Part.GRADIENT)),
        ("softmax (exp)", _of("exp", Part.GRADIENT)),
        ("embedding gradient", _of("add_rows", Part.GRADIENT)),
        ("permutation", _of("permute", Part.GRADIENT)),
        ("gradient norm", _of("sum_last", Part.UPDATE)),
        ("optimizer (square root)", _of("sqrt", Part.UPDATE)),
        ("optimizer (new parameter)", _last_of(plan)),
    ]
    for name, fits in wanted:
        fault = _best(plan, step, fits)
        if fault is not None:
            found.append(Lie(name, fault))
    return found


def _of(op: str, part: Part) -> Wanted:
    """The operator of this name and part with the most work."""

    def fits(planned: PlannedCall) -> int:
        call = planned.call
        if call.op.name != op or planned.part is not part or not call.output.elements:
            return 0
        return call.op.cost(call).flops + 1

    return fits


def _norm_sum(plan: StepPlan) -> Wanted:
    """A row sum of a layer norm or a batch norm: over an axis that vectors of the state have."""
    vectors = {v.type.shape[0] for v in plan.program.state if len(v.type.shape) == 1}
    plain = _of("sum_last", Part.GRADIENT)

    def fits(planned: PlannedCall) -> int:
        score, shape = plain(planned), planned.call.inputs[0].shape if planned.inputs else ()
        if not score or len(shape) not in (2, 3):
            return 0
        return score + (1 << 60 if shape[-1] in vectors else 0)

    return fits


def _last_of(plan: StepPlan) -> Wanted:
    """The operator that makes the first parameter of the new state."""
    made = plan.call(plan.outputs[0])
    return lambda planned: int(planned is made)


def _best(plan: StepPlan, step: int, fits: Wanted) -> Fault | None:
    """The middle of the middle element of the operator that fits best."""
    scores = [fits(planned) for planned in plan.calls]
    if not any(scores):
        return None
    number = scores.index(max(scores))
    call = plan.calls[number].call
    element = call.output.elements // 2
    return Fault(step, len(plan.loads) + number, element=element, path=_middle(call, element))


def _middle(call: Any, element: int) -> tuple[int, ...]:
    """A path to a primitive step: of each fold the nested entry next to its middle, or the last.

    A step before the last of a fold would leave the element as it is where nothing follows.
    """
    path: list[int] = []
    fold: Fold = call.op.fold(call, element)
    while True:
        half = fold.length // 2
        index = next(
            (i for i in (half, half - 1, half + 1) if 0 <= i < fold.length and _nested(fold, i)),
            half,
        )
        path.append(index)
        entry = fold.entry(index)
        if not isinstance(entry, Nested):
            return tuple(path)
        fold = entry.fold


def _nested(fold: Fold, index: int) -> bool:
    return isinstance(fold.entry(index), Nested)


# ---- telling them -----------------------------------------------------------------------------


class Patched(Rerun):
    """An honest execution but for one digest that no operator made."""

    fault: Fault
    patched: tuple[Digest, tuple[Digest, ...]]
    """Header and tensors of the state after the faulty step, as claimed."""

    def lie(self, fault: Fault) -> Mark:
        """Begin to lie; returns the last mark as it is claimed now."""
        step = fault.step
        if step is None:
            raise ValueError("a wrong start cannot be claimed in a job")
        state = self.state_after(step + 1)
        commitment = self._job.commit(step + 1, state)
        header, digests = header_digest(commitment.header), list(commitment.digests)
        if fault.value is not None or fault.part > 0:
            # Any other state will do after a wrong load.
            digests[max(0, fault.part - 1)] = JUNK
        else:
            header = JUNK
        self.fault, self.patched = fault, (header, tuple(digests))
        root = state_root(header, digests)
        self._roots = (*self._roots, root)
        path = state_path(header, digests, len(digests) - 1)
        return Mark(StepIndex(step + 1), root, Unsigned(word_at(state[-1], 0)), path)

    def interval_roots(self, mark: int) -> Sequence[Digest]:
        """Honest roots, the last one as claimed."""
        *roots, _ = super().interval_roots(mark)
        return (*roots, state_root(*self.patched))

    def trace_leaves(self, step: int) -> Sequence[Digest]:
        """Honest digests, with the claimed ones where the lie is and at the end."""
        *values, _ = super().trace_leaves(step)
        if self.fault.value is not None:
            values[self.fault.value] = JUNK
        return (*values, state_root(*self.patched))

    def state_digests(self, state: int) -> Sequence[Digest]:
        """Those of the claimed state after the faulty step."""
        if self.fault.step is not None and state == self.fault.step + 1:
            return self.patched[1]
        return super().state_digests(state)

    def _reproduced(self, step: int, root: Digest) -> None:
        """A liar does not mind."""


def told(dispute: Dispute, side: Side, execution: Rerun) -> Move | None:
    """What a side publishes: the honest strategy over its own execution, with its own header."""
    move = next_move(dispute, side, execution)
    level = dispute.level
    if (
        isinstance(execution, Patched)
        and isinstance(level, StateLevel)
        and isinstance(move, Children)
        and (level.first, level.block) == (0, 1)
    ):
        return Children((execution.patched[0], *move.digests[1:]))
    return move
