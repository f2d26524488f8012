r"""The upper levels of a dispute, from the run down to the chunks of one result.

    run > interval > step > output > chunk > fold > ... > primitive step
                        \ state

* A claim is bound to its parent by hashes wherever the parent is a digest. Inside an interval
  and in a step it is bound by its last child, which is the claim above.
* Levels are values: they hold both claims, and what is agreed so far.

Spec: docs/spec/dispute.md (DSP-6 to DSP-10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from identic.protocol.commitments import (
    digest_of,
    run_leaf,
    state_leaf,
    state_root_of,
    trace_leaf,
)
from identic.protocol.dispute.clocks import steps_from_stored
from identic.protocol.dispute.elements import ChunkLevel
from identic.protocol.dispute.level import Level, Tree, given
from identic.protocol.dispute.moves import Children, Pair, Side
from identic.protocol.dispute.questions import (
    Agreed,
    EmptyQuestion,
    HeaderQuestion,
    Known,
    LoadQuestion,
    Place,
    Published,
    Question,
    StartQuestion,
    StateQuestion,
    Where,
)
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.spans import Span, whole
from identic.protocol.ids import Digest
from identic.protocol.program.plan import Source


@dataclass(frozen=True)
class RunLevel(Tree):
    """The marks of the run."""

    name: ClassVar[str] = "run"

    agreed: Agreed

    @property
    def subject(self) -> int:
        """There is one run."""
        return 0

    def leaf(self, setup: Setup, index: int, payload: Digest) -> Digest:
        """A mark with its state's root."""
        return run_leaf(index, setup.terms.step_of(index), payload)

    def total(self, setup: Setup, root: Digest) -> Digest | None:
        """The run head's root."""
        del setup
        return root

    def within(self, claims: Pair[Digest], span: Span, agreed: Published) -> Level[Any]:
        """Some of the marks."""
        return RunLevel(claims, span, top=False, agreed=self.agreed.adding(agreed))

    def landed(self, setup: Setup, index: int, moves: Pair[Children]) -> Level[Any] | Question:
        """Into the interval that ends at the mark; a wrong start is ruled from the terms."""
        mark, claims = self.first + index, given(moves, index)
        if mark == 0:
            return StartQuestion(claims)
        before = self.agreed.adding(self.published(moves, index)).find(mark - 1)
        first, last = setup.terms.step_of(mark - 1), setup.terms.step_of(mark)
        if last - first == 1:
            return step_level(setup, first, before, claims)
        return IntervalLevel(mark, first, last - first, before, claims)


def run_level(setup: Setup) -> Level[Any]:
    """Where every dispute starts."""
    return RunLevel(setup.roots, whole(setup.marks, setup.width), top=True, agreed=Agreed())


@dataclass(frozen=True)
class IntervalLevel(Level[Children]):
    """The states after each step between two marks; the last is the mark's, already claimed."""

    name: ClassVar[str] = "interval"

    mark: int
    start: int
    """Steps done at the mark before."""
    steps: int
    """Steps of the interval, at most the largest cadence: one message."""
    before: Place
    """Root of the state at the mark before: agreed."""
    claims: Pair[Digest]

    @property
    def kind(self) -> type[Children]:
        """State roots."""
        return Children

    @property
    def subject(self) -> int:
        """The mark that ends the interval."""
        return self.mark

    def again(self, setup: Setup) -> int:
        """From the stored state before it to its end."""
        return steps_from_stored(setup.terms, self.start) + self.steps

    def count(self, setup: Setup) -> int:
        """One state a step."""
        del setup
        return self.steps

    def items(self, setup: Setup, move: Children) -> Sequence[object]:
        """The state roots."""
        del setup
        return move.digests

    def bound(self, setup: Setup, side: Side, move: Children) -> bool:
        """Whether the last state is the claimed one."""
        del setup
        return move.digests[-1] == self.claims.of(side)

    def descend(self, setup: Setup, moves: Pair[Children], index: int) -> Level[Any] | Question:
        """Into the first step whose result differs."""
        before = Known(moves.defender.digests[index - 1]) if index else self.before
        return step_level(setup, self.start + index, before, given(moves, index))


@dataclass(frozen=True)
class StepLevel(Tree):
    """The values of one step's trace and, as the last item of the first round, the new state."""

    name: ClassVar[str] = "step"

    step: int
    before: Place
    trace: Agreed

    @property
    def where(self) -> Where:
        """The step."""
        return Where(self.step, None, None)

    @property
    def subject(self) -> int:
        """The step."""
        return self.step

    def leaf(self, setup: Setup, index: int, payload: Digest) -> Digest:
        """A plan value with its tensor digest."""
        del setup
        return trace_leaf(self.step, index, payload)

    def total(self, setup: Setup, root: Digest) -> Digest | None:
        """No root of the values was claimed before; the last item binds the move."""
        del setup, root
        return None

    def again(self, setup: Setup) -> int | None:
        """In the first round up to the step, and the step itself; its digests are then at hand."""
        return steps_from_stored(setup.terms, self.step) + 1 if self.top else None

    def count(self, setup: Setup) -> int:
        """The blocks, and in the first round the new state."""
        return super().count(setup) + self.top

    def bound(self, setup: Setup, side: Side, move: Children) -> bool:
        """Whether the values lead to the claim, or the new state is the claimed one."""
        if self.top:
            return move.digests[-1] == self.claims.of(side)
        return super().bound(setup, side, move)

    def within(self, claims: Pair[Digest], span: Span, agreed: Published) -> Level[Any]:
        """Some of the values."""
        trace = self.trace.adding(agreed)
        return StepLevel(claims, span, top=False, step=self.step, before=self.before, trace=trace)

    def descend(self, setup: Setup, moves: Pair[Children], index: int) -> Level[Any] | Question:
        """Into a value, or into the new state when all values are agreed."""
        if self.top and index == self.span.items:
            trace = self.trace.adding(self.published(moves, index))
            return state_level(setup, self.step, trace, self.claims)
        return super().descend(setup, moves, index)

    def landed(self, setup: Setup, index: int, moves: Pair[Children]) -> Level[Any] | Question:
        """Into the result of an operator; a load is ruled from what is loaded."""
        value, claims = self.first + index, given(moves, index)
        trace = self.trace.adding(self.published(moves, index))
        if value < len(setup.plan.loads):
            stored = setup.plan.loads[value].source is Source.STATE
            return LoadQuestion(self.step, value, self.before, stored, claims)
        chunks = setup.plan.type(value).chunks
        if chunks == 0:
            return EmptyQuestion(self.step, value, claims)
        span = whole(chunks, setup.width)
        return OutputLevel(claims, span, top=True, step=self.step, value=value, trace=trace)


def step_level(setup: Setup, step: int, before: Place, claims: Pair[Digest]) -> Level[Any]:
    """The trace of a step on whose result the sides differ."""
    span = whole(setup.plan.values, setup.width, besides=1)
    return StepLevel(claims, span, top=True, step=step, before=before, trace=Agreed())


@dataclass(frozen=True)
class StateLevel(Tree):
    """The header and the tensors of the state after a step whose values are all agreed."""

    name: ClassVar[str] = "state"

    step: int
    trace: Agreed

    @property
    def where(self) -> Where:
        """The step that made the state."""
        return Where(self.step, None, None)

    @property
    def subject(self) -> int:
        """The step that made the state."""
        return self.step

    def leaf(self, setup: Setup, index: int, payload: Digest) -> Digest:
        """The header, or a tensor with its place."""
        del setup
        return state_leaf(index, payload)

    def total(self, setup: Setup, root: Digest) -> Digest | None:
        """The state's root."""
        del setup
        return state_root_of(root)

    def within(self, claims: Pair[Digest], span: Span, agreed: Published) -> Level[Any]:
        """Some of the tensors; what is agreed about the state is not needed again."""
        del agreed
        return StateLevel(claims, span, top=False, step=self.step, trace=self.trace)

    def landed(self, setup: Setup, index: int, moves: Pair[Children]) -> Level[Any] | Question:
        """Ruled: the header follows from the terms, a tensor is an agreed value."""
        leaf, claims = self.first + index, given(moves, index)
        if leaf == 0:
            return HeaderQuestion(self.step, claims)
        value = setup.plan.outputs[leaf - 1]
        return StateQuestion(self.step, leaf - 1, value, self.trace.find(value), claims)


def state_level(setup: Setup, step: int, trace: Agreed, claims: Pair[Digest]) -> Level[Any]:
    """The state after a step."""
    span = whole(1 + len(setup.plan.outputs), setup.width)
    return StateLevel(claims, span, top=True, step=step, trace=trace)


@dataclass(frozen=True)
class OutputLevel(Tree):
    """The chunks of an operator's result; its operands are agreed."""

    name: ClassVar[str] = "output"

    step: int
    value: int
    trace: Agreed

    @property
    def where(self) -> Where:
        """The operator's result."""
        return Where(self.step, self.value, None)

    @property
    def subject(self) -> int:
        """The plan value."""
        return self.value

    def again(self, setup: Setup) -> int | None:
        """In the first round the step, for the bytes of the value and its operands."""
        del setup
        return 1 if self.top else None

    def leaf(self, setup: Setup, index: int, payload: Digest) -> Digest:
        """The payload is the chunk's leaf hash."""
        del setup, index
        return payload

    def total(self, setup: Setup, root: Digest) -> Digest | None:
        """The tensor's digest."""
        return digest_of(setup.plan.type(self.value), root)

    def within(self, claims: Pair[Digest], span: Span, agreed: Published) -> Level[Any]:
        """Some of the chunks."""
        del agreed
        at = (self.step, self.value, self.trace)
        return OutputLevel(claims, span, False, *at)

    def landed(self, setup: Setup, index: int, moves: Pair[Children]) -> Level[Any] | Question:
        """Into the chunk."""
        del setup
        chunk = self.first + index
        return ChunkLevel(self.step, self.value, chunk, self.trace, given(moves, index))
