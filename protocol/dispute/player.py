"""Honest play: a pure function of the public dispute and one's own execution.

``Execution`` is all that a player knows: what it computed. It may be kept in memory, or made
again from a stored state when it is asked for; every method is a pure question with one
right answer, so that answers can be cached and asked for in any order.

A player that answers with what the program makes of the agreed operands never loses, since
every difference it meets is one where the other side is wrong (DSP-15).

Spec: docs/spec/dispute.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from identic.protocol.dispute.elements import ChunkLevel, FoldLevel, planned
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.levels import (
    IntervalLevel,
    OutputLevel,
    RunLevel,
    StateLevel,
    StepLevel,
)
from identic.protocol.dispute.moves import (
    Children,
    Chunk,
    ChunkOpening,
    Entries,
    Evidence,
    LeafOpening,
    Move,
    Side,
    StateOpening,
)
from identic.protocol.dispute.questions import (
    LoadQuestion,
    Place,
    Question,
    StateQuestion,
    StepQuestion,
    Under,
)
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Dispute, Phase
from identic.protocol.ids import Count, Digest, TraceIndex, Unsigned
from identic.protocol.ops.evaluate import looked_position
from identic.protocol.ops.folds import Element, Looked

Path = tuple[Digest, ...]


class Execution(Protocol):
    """One's own run of the job, in digests, bytes and words.

    Steps count from 0; step ``s`` makes state ``s + 1`` of state ``s``. Values are those of
    the plan (PRG-10). ``proofs/openings.py::Openings`` provides the last three methods from
    the others. A dispute asks for few steps: those of one interval, then one of them again
    and again; an implementation keeps the trace digests of that step, and the tensors around
    the one value in dispute (its operands and itself).
    """

    def run_leaves(self) -> Sequence[Digest]:
        """State roots at marks 0, 1, ..., at least as many as were claimed."""

    def interval_roots(self, mark: int) -> Sequence[Digest]:
        """State roots after each step of the interval that ends at ``mark >= 1``."""

    def trace_leaves(self, step: int) -> Sequence[Digest]:
        """Tensor digest of each plan value of a step, then the root of the new state."""

    def state_digests(self, state: int) -> Sequence[Digest]:
        """Tensor digests of the state after ``state`` steps, in state order."""

    def chunk_hashes(self, step: int, value: int) -> Sequence[Digest]:
        """Leaf hashes of the chunks of a plan value."""

    def chunk(self, step: int, value: int, chunk: int) -> bytes:
        """Bytes of one chunk of a plan value."""

    def entries(self, step: int, value: int, element: int, path: tuple[int, ...]) -> Sequence[int]:
        """Words of the entries of a fold of an element of a plan value.

        ``path`` names the nested entry to enter at each fold, outermost first; ``()`` is the
        element's own fold. Folds of one entry count as folds, too.
        """

    def chunk_path(self, step: int, value: int, chunk: int) -> Path:
        """Path of a chunk's leaf hash in the tensor's tree."""

    def trace_path(self, step: int, value: int, first: int, size: int) -> Path:
        """Path of a value's trace leaf inside the block of values ``[first, first + size)``."""

    def run_path(self, mark: int, first: int, size: int) -> Path:
        """Path of a mark's leaf inside the block of marks ``[first, first + size)``."""

    def state_path(self, state: int, index: int) -> Path:
        """Path of tensor ``index`` in the tree of the state after ``state`` steps."""


def next_move(dispute: Dispute, side: Side, execution: Execution) -> Move | None:
    """The move that an honest party makes now, or ``None`` when it is not due."""
    if side not in dispute.due:
        return None
    if dispute.phase is Phase.AWAIT_EVIDENCE:
        if dispute.question is None:
            raise RuntimeError("a dispute awaits evidence about nothing")
        return evidence(dispute.setup, dispute.question, execution)
    if dispute.level is None:
        raise RuntimeError(f"a dispute is {dispute.phase} about nothing")
    return publish(dispute.setup, dispute.level, execution)


def publish(setup: Setup, level: Level[Any], execution: Execution) -> Move:
    """The children of the node in dispute, as one's own execution has them."""
    if isinstance(level, RunLevel):
        return Children(level.publish(setup, execution.run_leaves()))
    if isinstance(level, IntervalLevel):
        return Children(tuple(execution.interval_roots(level.mark)))
    if isinstance(level, StepLevel):
        *values, after = execution.trace_leaves(level.step)
        items = level.publish(setup, values)
        return Children((*items, after) if level.top else items)
    if isinstance(level, StateLevel):
        tensors = execution.state_digests(level.step + 1)
        return Children(level.publish(setup, (setup.header(level.step + 1), *tensors)))
    if isinstance(level, OutputLevel):
        return Children(level.publish(setup, execution.chunk_hashes(level.step, level.value)))
    if isinstance(level, ChunkLevel):
        return Chunk(execution.chunk(level.step, level.value, level.chunk))
    if isinstance(level, FoldLevel):
        at = level.at
        words = execution.entries(at.step, at.value, at.element, at.path)
        return Entries(tuple(Unsigned(word) for word in words))
    raise TypeError(f"no honest move on a {type(level).__name__}")


# ---- evidence -------------------------------------------------------------------------------


def evidence(setup: Setup, question: Question, execution: Execution) -> Evidence:
    """Openings of what a question needs, in the order in which the referee reads them."""
    if isinstance(question, LoadQuestion):
        return _of_load(setup, question, execution)
    if isinstance(question, StateQuestion):
        place, digest = question.place, question.claims.defender
        if isinstance(place, Under):
            digest = execution.trace_leaves(question.step)[question.value]
        return Evidence(_leaf(execution, question.step, place, digest), (), ())
    if isinstance(question, StepQuestion):
        return _of_step(setup, question, execution)
    raise TypeError(f"a {question.name} question needs no evidence")


def _of_load(setup: Setup, question: LoadQuestion, execution: Execution) -> Evidence:
    leaves: tuple[LeafOpening, ...] = ()
    if isinstance(question.before, Under):
        mark, first, size = question.before.index, question.before.first, question.before.size
        root = execution.run_leaves()[mark]
        leaves = (LeafOpening(Unsigned(mark), root, execution.run_path(mark, first, size)),)
    index = setup.plan.loads[question.value].index
    digest = execution.state_digests(question.step)[index]
    path = execution.state_path(question.step, index)
    return Evidence(leaves, (StateOpening(Unsigned(index), digest, path),), ())


def _leaf(execution: Execution, step: int, place: Place, digest: Digest) -> tuple[LeafOpening, ...]:
    """Opening of an agreed trace leaf that was published in a block only."""
    if not isinstance(place, Under):
        return ()
    path = execution.trace_path(step, place.index, place.first, place.size)
    return (LeafOpening(Unsigned(place.index), digest, path),)


def _of_step(setup: Setup, question: StepQuestion, execution: Execution) -> Evidence:
    """Chunks of all elements the step reads, each chunk once, and their tensors' leaves."""
    inputs = planned(setup, question.value).inputs
    leaves: dict[int, tuple[LeafOpening, ...]] = {}
    chunks: dict[tuple[int, int], ChunkOpening] = {}

    def read(tensor: int, element: int) -> int:
        value = inputs[tensor]
        kind = setup.plan.type(value)
        number, offset = divmod(element, kind.chunk_elements)
        if value not in leaves:
            digest = execution.trace_leaves(question.step)[value]
            leaves[value] = _leaf(execution, question.step, question.trace.find(value), digest)
        if (value, number) not in chunks:
            chunks[value, number] = ChunkOpening(
                TraceIndex(value),
                Count(number),
                execution.chunk(question.step, value, number),
                execution.chunk_path(question.step, value, number),
            )
        size = kind.dtype.size
        data = chunks[value, number].data[offset * size : (offset + 1) * size]
        return kind.dtype.word(data)

    call = planned(setup, question.value).call
    for operand in question.primitive.operands:
        if isinstance(operand, Element):
            read(operand.input, operand.index)
        elif isinstance(operand, Looked):
            word = read(operand.at.input, operand.at.index)
            position = looked_position(call, operand, word)
            if position is not None:
                read(operand.input, position)
    opened = tuple(leaf for some in leaves.values() for leaf in some)
    return Evidence(opened, (), tuple(chunks.values()))
