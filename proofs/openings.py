"""Openings: how a chunk, a tensor or a state is shown to be under an agreed digest.

``Openings`` makes them from one's own execution; ``Reader`` reads them, hostile, for the
referee: each must be the one that is needed next, and lead to what is agreed.

Spec: docs/spec/dispute.md (REF-3 to REF-6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from identic.proofs import merkle
from identic.proofs.report import Checks
from identic.proofs.state import check_state_opening, state_path
from identic.proofs.trace import block_path
from identic.protocol.commitments import digest_of, header_digest, run_leaf, trace_leaf
from identic.protocol.dispute.elements import planned
from identic.protocol.dispute.moves import Evidence
from identic.protocol.dispute.questions import Known, Place, StepQuestion
from identic.protocol.dispute.setup import Setup, header_after
from identic.protocol.encoding import encode
from identic.protocol.hashing import leaf_hash
from identic.protocol.ids import Digest
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.plan import StepPlan
from identic.protocol.tensors import TensorType


class Openings(ABC):
    """The paths of an ``Execution``, made from its digests.

    A subclass provides ``run_leaves``, ``trace_leaves``, ``state_digests`` and
    ``chunk_hashes`` as ``protocol/dispute/player.py::Execution`` describes them.
    """

    terms: JobTerms
    """Terms of the job."""
    plan: StepPlan
    """The unrolled program."""

    @abstractmethod
    def run_leaves(self) -> Sequence[Digest]:
        """State roots at the marks."""

    @abstractmethod
    def trace_leaves(self, step: int) -> Sequence[Digest]:
        """Digests of a step's values, and the new state's root."""

    @abstractmethod
    def state_digests(self, state: int) -> Sequence[Digest]:
        """Tensor digests of a state."""

    @abstractmethod
    def chunk_hashes(self, step: int, value: int) -> Sequence[Digest]:
        """Leaf hashes of a value's chunks."""

    def chunk_path(self, step: int, value: int, chunk: int) -> merkle.Path:
        """Path of a chunk in its tensor."""
        return merkle.path(self.chunk_hashes(step, value), chunk)

    def trace_path(self, step: int, value: int, first: int, size: int) -> merkle.Path:
        """Path of a value inside an aligned block of the trace."""
        return block_path(step, self.trace_leaves(step), value, first, size)

    def run_path(self, mark: int, first: int, size: int) -> merkle.Path:
        """Path of a mark inside an aligned block of the run log."""
        states, steps = self.run_leaves(), self.terms.step_of
        hashes = [run_leaf(m, steps(m), states[m]) for m in range(first, first + size)]
        return merkle.path(hashes, mark - first)

    def state_path(self, state: int, index: int) -> merkle.Path:
        """Path of a tensor in a state."""
        header = header_digest(header_after(self.terms, self.plan, state))
        return state_path(header, self.state_digests(state), index)


class Reader:
    """Reads the openings of one move in order and checks each.

    Args:
        setup: terms and plan.
        evidence: openings from a stranger.
        checks: where outcomes go; a failed one raises ``Refused``.
    """

    def __init__(self, setup: Setup, evidence: Evidence, checks: Checks) -> None:
        self.setup = setup
        self.checks = checks
        self.size = len(encode(evidence))
        self._leaves = list(evidence.leaves)
        self._states = list(evidence.states)
        self._chunks = list(evidence.chunks)
        self._digests: dict[int, Digest] = {}
        self._opened: dict[tuple[int, int], bytes] = {}

    def finish(self) -> None:
        """Check that no opening is left over."""
        left = len(self._leaves) + len(self._states) + len(self._chunks)
        # REF-3: evidence holds exactly the openings that are needed, in the order of need.
        self.checks.add("REF-3", "evidence has no needless opening", got=left, want=0)

    def mark(self, place: Place) -> Digest:
        """State root of an agreed mark."""
        steps = self.setup.terms.step_of
        return self._agreed(place, lambda m, digest: run_leaf(m, steps(m), digest), "mark")

    def trace(self, step: int, place: Place) -> Digest:
        """Tensor digest of an agreed value of a step."""
        return self._agreed(place, lambda v, digest: trace_leaf(step, v, digest), "value")

    def _agreed(self, place: Place, leaf: Callable[[int, Digest], Digest], what: str) -> Digest:
        if isinstance(place, Known):
            return place.digest
        self._need(bool(self._leaves), f"{what} {place.index} is opened")
        opening = self._leaves.pop(0)
        self._is(f"the opening is of {what} {place.index}", int(opening.index), place.index)
        # REF-4: an opened leaf leads to the agreed root of its block.
        self.checks.same(
            "REF-4",
            f"{what} {place.index} is under the agreed block of {place.size}",
            lambda: merkle.root_from_path(
                leaf(place.index, opening.digest),
                place.index - place.first,
                place.size,
                opening.path,
            ),
            place.root,
        )
        return opening.digest

    def state_tensor(self, root: Digest, index: int) -> Digest:
        """Digest of tensor ``index`` under the root of a state."""
        self._need(bool(self._states), f"tensor {index} of the state is opened")
        opening = self._states.pop(0)
        self._is(f"the opening is of tensor {index}", int(opening.index), index)
        tensors = len(self.setup.plan.outputs)
        # REF-6: an opened tensor of a state leads to the state's agreed root.
        self.checks.same(
            "REF-6",
            f"tensor {index} is under the state's agreed root",
            lambda: check_state_opening(root, tensors, index, opening.digest, opening.path),
            None,
        )
        return opening.digest

    def word(self, question: StepQuestion, tensor: int, element: int) -> int:
        """Word of an element of operand tensor ``tensor`` of the operator in question."""
        value = planned(self.setup, question.value).inputs[tensor]
        kind = self.setup.plan.type(value)
        number, offset = divmod(element, kind.chunk_elements)
        if value not in self._digests:
            self._digests[value] = self.trace(question.step, question.trace.find(value))
        if (value, number) not in self._opened:
            self._opened[value, number] = self._chunk(value, kind, number)
        size = kind.dtype.size
        return kind.dtype.word(self._opened[value, number][offset * size : (offset + 1) * size])

    def _chunk(self, value: int, kind: TensorType, number: int) -> bytes:
        self._need(bool(self._chunks), f"chunk {number} of value {value} is opened")
        opening = self._chunks.pop(0)
        at = (int(opening.value), int(opening.chunk))
        self._is(f"the opening is of chunk {number} of value {value}", at, (value, number))
        # REF-5: an opened chunk has its length and leads to the tensor's agreed digest.
        want = min(kind.nbytes, (number + 1) * 4096) - number * 4096
        name = f"chunk {number} of value {value}"
        self.checks.add("REF-5", f"{name} has its length", got=len(opening.data), want=want)
        self.checks.same(
            "REF-5",
            f"chunk {number} is under the agreed digest of value {value}",
            lambda: digest_of(
                kind,
                merkle.root_from_path(leaf_hash(opening.data), number, kind.chunks, opening.path),
            ),
            self._digests[value],
        )
        return opening.data

    def _need(self, there: bool, what: str) -> None:
        # REF-3: evidence holds exactly the openings that are needed, in the order of need.
        self.checks.add("REF-3", what, got=there, want=True)

    def _is(self, what: str, got: object, want: object) -> None:
        self.checks.add("REF-3", what, got=got, want=want)
