"""Executions in memory, for disputes in tests: an honest one, and liars of several kinds.

``MemoryExecution`` computes every element of every step by its fold, with no kernels.
``LyingExecution`` makes one lie and goes on honestly from it, as a solver does whose hardware
or heart is wrong at one place: its commitments are all consistent with the lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from identic.proofs.openings import Openings
from identic.proofs.tensors import chunk_hashes, tensor_digest
from identic.protocol.commitments import header_digest, state_root
from identic.protocol.dispute.setup import header_after
from identic.protocol.ids import Digest
from identic.protocol.job.terms import JobTerms
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import apply, read_operand
from identic.protocol.ops.folds import Entry, Fold, Nested, Operand, Outer
from identic.protocol.program.context import context_bytes
from identic.protocol.program.plan import Source, StepPlan
from identic.protocol.tensors import CHUNK_BYTES, TensorType

Read = Callable[[int, int], int]


@dataclass(frozen=True)
class Lie:
    """One wrong thing in a run."""

    step: int
    value: int
    """Plan value that is wrong."""
    element: int = 0
    path: tuple[int, ...] = ()
    """Entry of the element's folds that is wrong, outermost first; the last one if empty."""
    word: int = 0
    """What is claimed there."""


@dataclass(frozen=True)
class StateLie:
    """A wrong digest of a tensor of a new state, which no operator made."""

    step: int
    index: int
    """Tensor number; -1 for the header."""
    digest: Digest


def to_bytes(kind: TensorType, words: Sequence[int]) -> bytes:
    """Elements as the bytes of their tensor."""
    return b"".join(word.to_bytes(kind.dtype.size, "little") for word in words)


def to_words(kind: TensorType, data: bytes) -> list[int]:
    """Elements of a tensor's bytes."""
    size = kind.dtype.size
    return [kind.dtype.word(data[at : at + size]) for at in range(0, len(data), size)]


def full_path(fold: Fold, path: tuple[int, ...]) -> tuple[int, ...]:
    """A path down to a primitive step: nested folds at its end are entered at their last."""
    index = path[0] if path else fold.length - 1
    entry = fold.entry(index)
    if isinstance(entry, Nested):
        return (index, *full_path(entry.fold, path[1:]))
    return (index,)


def run_lying(
    fold: Fold,
    read: Read,
    call: Call,
    lie: tuple[tuple[int, ...], int] | None = None,
    outer: tuple[tuple[int, ...], ...] = (),
) -> tuple[int, ...]:
    """Words of a fold's entries with the one at ``lie``'s full path replaced."""
    values: list[int] = []

    def word(operand: Operand) -> int:
        if isinstance(operand, Entry):
            return values[operand.index]
        if isinstance(operand, Outer):
            return outer[-operand.up][operand.index]
        return read_operand(operand, read, call)

    for index in range(fold.length):
        entry = fold.entry(index)
        here = lie is not None and lie[0][0] == index
        if isinstance(entry, Nested):
            deeper = (lie[0][1:], lie[1]) if lie is not None and here else None
            values.append(run_lying(entry.fold, read, call, deeper, (*outer, tuple(values)))[-1])
        elif lie is not None and here:
            values.append(lie[1])
        else:
            values.append(apply(entry.primitive, tuple(word(o) for o in entry.operands)))
    return tuple(values)


class MemoryExecution(Openings):
    """A whole run, every value of every step kept.

    Args:
        terms: the job; ``initial_state`` and ``data`` are not looked at.
        plan: the unrolled program.
        state: bytes of the initial state's tensors, the loss last.
        data: bytes of the data tensors.
        lies: what to get wrong on the way.
        reuse: another run, to take over what follows from equal operands (for speed only).
    """

    def __init__(
        self,
        terms: JobTerms,
        plan: StepPlan,
        state: Sequence[bytes],
        data: Sequence[bytes],
        *lies: Lie | StateLie,
        reuse: MemoryExecution | None = None,
    ) -> None:
        self.terms = terms
        self.plan = plan
        self.data = list(data)
        self.lies = lies
        self.reuse = reuse
        self.states = [list(state)]
        self.values: list[list[bytes]] = []
        self.digests: list[list[Digest]] = [self._state_digests(0)]
        self.roots = [self._root(0)]
        self.traces: list[list[Digest]] = []
        for step in range(terms.steps):
            self._step(step)

    # ---- computing --------------------------------------------------------------------------

    def _load(self, step: int, value: int) -> bytes:
        load = self.plan.loads[value]
        if load.source is Source.STATE:
            return self.states[step][load.index]
        if load.source is Source.DATA:
            return self.data[load.index]
        return context_bytes(self.terms.seed, step, load.index)

    def _lie(self, step: int, value: int) -> Lie | None:
        lies = (lie for lie in self.lies if isinstance(lie, Lie))
        return next((lie for lie in lies if (lie.step, lie.value) == (step, value)), None)

    def _step(self, step: int) -> None:
        words: list[list[int]] = []
        values: list[bytes] = []
        for value in range(self.plan.values):
            kind = self.plan.type(value)
            words.append(self._value(step, value, words))
            values.append(to_bytes(kind, words[-1]))
        self.values.append(values)
        self.states.append([values[v] for v in self.plan.outputs])
        digests = [tensor_digest(self.plan.type(v), data) for v, data in enumerate(values)]
        self.digests.append(self._state_digests(step + 1))
        self.roots.append(self._root(step + 1))
        self.traces.append([*digests, self.roots[-1]])

    def _value(self, step: int, value: int, words: list[list[int]]) -> list[int]:
        lie = self._lie(step, value)
        planned = self.plan.call(value)
        if planned is None:
            out = to_words(self.plan.type(value), self._load(step, value))
            return [lie.word if lie and lie.element == i else word for i, word in enumerate(out)]

        def read(number: int, element: int) -> int:
            return words[planned.inputs[number]][element]

        call, out = planned.call, self._known(step, value, planned.inputs, words)
        for element in range(call.output.elements):
            fold = call.op.fold(call, element)
            wrong = None
            if lie is not None and lie.element == element:
                wrong = (full_path(fold, lie.path), lie.word)
            if wrong is not None or element == len(out):
                out[element:] = [run_lying(fold, read, call, wrong)[-1], *out[element + 1 :]]
        return out

    def _known(
        self, step: int, value: int, inputs: tuple[int, ...], words: list[list[int]]
    ) -> list[int]:
        """Result of another run on the same operands, if there is one."""
        if self.reuse is None:
            return []
        theirs = self.reuse.values[step]
        for number in inputs:
            if to_bytes(self.plan.type(number), words[number]) != theirs[number]:
                return []
        return to_words(self.plan.type(value), theirs[value])

    def _state_lie(self, state: int) -> StateLie | None:
        lies = (lie for lie in self.lies if isinstance(lie, StateLie))
        return next((lie for lie in lies if lie.step == state - 1), None)

    def _state_digests(self, state: int) -> list[Digest]:
        types = [variable.type for variable in self.plan.program.state]
        digests = [
            tensor_digest(kind, data) for kind, data in zip(types, self.states[state], strict=True)
        ]
        lie = self._state_lie(state)
        if lie is not None and lie.index >= 0:
            digests[lie.index] = lie.digest
        return digests

    def header(self, state: int) -> Digest:
        """Digest of a state's header."""
        lie = self._state_lie(state)
        if lie is not None and lie.index < 0:
            return lie.digest
        return header_digest(header_after(self.terms, self.plan, state))

    def _root(self, state: int) -> Digest:
        return state_root(self.header(state), self.digests[state])

    # ---- answering --------------------------------------------------------------------------

    def run_leaves(self) -> list[Digest]:
        return [self.roots[self.terms.step_of(mark)] for mark in range(self.terms.marks)]

    def interval_roots(self, mark: int) -> list[Digest]:
        first, last = self.terms.step_of(mark - 1), self.terms.step_of(mark)
        return self.roots[first + 1 : last + 1]

    def trace_leaves(self, step: int) -> list[Digest]:
        return self.traces[step]

    def state_digests(self, state: int) -> list[Digest]:
        return self.digests[state]

    def chunk_hashes(self, step: int, value: int) -> list[Digest]:
        return chunk_hashes(self.values[step][value])

    def chunk(self, step: int, value: int, chunk: int) -> bytes:
        return self.values[step][value][chunk * CHUNK_BYTES : (chunk + 1) * CHUNK_BYTES]

    def entries(
        self, step: int, value: int, element: int, path: tuple[int, ...]
    ) -> tuple[int, ...]:
        planned = self.plan.call(value)
        if planned is None:
            raise TypeError("a load has no fold")
        call = planned.call

        def read(number: int, at: int) -> int:
            kind = call.inputs[number]
            size = kind.dtype.size
            data = self.values[step][planned.inputs[number]]
            return kind.dtype.word(data[at * size : (at + 1) * size])

        fold = call.op.fold(call, element)
        lie = self._lie(step, value)
        wrong = None
        if lie is not None and lie.element == element:
            wrong = (full_path(fold, lie.path), lie.word)
        outer: tuple[tuple[int, ...], ...] = ()
        for index in path:
            outer = (*outer, run_lying(fold, read, call, wrong, outer)[:index])
            entry = fold.entry(index)
            if not isinstance(entry, Nested):
                raise TypeError("a path leads through nested folds")
            fold = entry.fold
            wrong = (wrong[0][1:], wrong[1]) if wrong and wrong[0][0] == index else None
        return run_lying(fold, read, call, wrong, outer)
