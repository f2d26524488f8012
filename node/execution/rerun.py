"""Re-execution for a dispute: answers from stored states, one step at a time.

A dispute asks about one interval, then one step, then one value of it. ``Rerun`` restarts
from the nearest stored state, keeps the digests of the step in question, and of its tensors
only those around the value in dispute.

It implements ``protocol/dispute/player.py::Execution``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from identic.kernels.arrays import Array
from identic.kernels.hashing import chunk_hashes, chunk_root
from identic.node.blobs import Blobs
from identic.node.execution.elements import word_at
from identic.node.execution.forced import spoil, spoiled_entries
from identic.node.execution.loaded import load_state
from identic.node.execution.states import Arrays, raw_bytes
from identic.node.execution.training import Trainer
from identic.node.logging import get_logger
from identic.proofs.openings import Openings
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import trace_leaf
from identic.protocol.errors import IdenticError, LocalError
from identic.protocol.hashing import fold as fold_hashes
from identic.protocol.ids import Digest
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.tensors import CHUNK_BYTES

log = get_logger("execution")


class Rerun(Openings):
    """One's own run of a job, executed again where it is asked about.

    Args:
        trainer: executes steps, with the same forced error as the run had.
        blobs: where stored states lie.
        roots: state roots of marks 0, 1, ... as this node computed them.
        stored: blobs of stored states by mark; mark 0 must be among them.
    """

    def __init__(
        self, trainer: Trainer, blobs: Blobs, roots: Sequence[Digest], stored: Mapping[int, Digest]
    ) -> None:
        self._trainer = trainer
        self._job = trainer.job
        self.terms = trainer.job.terms
        self.plan = trainer.job.plan
        self._blobs = blobs
        self._roots = tuple(roots)
        self._stored = dict(stored)
        self._state: tuple[int, Arrays] | None = None
        self._trace: tuple[int, tuple[Digest, ...]] | None = None
        self._tensors: tuple[int, dict[int, Array]] = (-1, {})

    # ---- states -----------------------------------------------------------------------------

    def run_leaves(self) -> Sequence[Digest]:
        """State roots at the marks this node has reached."""
        return self._roots

    def interval_roots(self, mark: int) -> Sequence[Digest]:
        """State roots after each step of the interval that ends at ``mark >= 1``."""
        terms = self._job.terms
        first, last = terms.step_of(mark - 1), terms.step_of(mark)
        roots = [self._job.commit(s, self.state_after(s)).root for s in range(first + 1, last + 1)]
        self._reproduced(last, roots[-1])
        return roots

    def state_digests(self, state: int) -> Sequence[Digest]:
        """Tensor digests of the state after ``state`` steps."""
        return self._job.commit(state, self.state_after(state)).digests

    def state_after(self, step: int) -> Arrays:
        """The state after ``step`` steps, from the nearest one at hand."""
        at, state = self.nearest(step)
        self._state = (step, self._trainer.advance(state, at, step))
        return self._state[1]

    def nearest(self, step: int) -> tuple[int, Arrays]:
        """Steps done at the last state at or before ``step`` that is at hand, and that state.

        Raises:
            LocalError: no stored state is sound.
        """
        kept = self._state
        if kept is not None and kept[0] > step:
            kept = None
        for at, mark in self._stored_until(step):
            if kept is not None and kept[0] >= at:
                break
            try:
                blob, root = self._stored[mark], self._roots[mark]
                return at, load_state(self._job, self._blobs, blob, at, root)
            except IdenticError as error:
                # EXE-8: an unsound stored state is passed over, whoever is at fault.
                log.warning("a stored state is not sound", mark=mark, problem=str(error))
                del self._stored[mark]
        if kept is None:
            raise LocalError(
                f"no sound stored state at or before step {step}",
                remedy="the initial state must stay in the blob store until the job is settled",
            )
        return kept

    def _stored_until(self, step: int) -> Iterator[tuple[int, int]]:
        """Steps done and mark of the stored states at or before ``step``, the last one first."""
        steps = {mark: int(self._job.terms.step_of(mark)) for mark in self._stored}
        for mark in sorted(steps, reverse=True):
            if steps[mark] <= step and mark < len(self._roots):
                yield steps[mark], mark

    def _reproduced(self, step: int, root: Digest) -> None:
        """Refuse to answer with a state that one's own run did not have at a mark."""
        terms = self._job.terms
        mark = -(-step // terms.cadence)
        known = terms.step_of(mark) == step and mark < len(self._roots)
        # EXE-5: what is answered is what the run gave.
        if known and self._roots[mark] != root:
            raise LocalError(
                f"this machine does not reproduce its own state after step {step}",
                remedy="run `identic doctor`; the hardware or the installation has changed",
            )

    # ---- the step in question ---------------------------------------------------------------

    def trace_leaves(self, step: int) -> Sequence[Digest]:
        """Tensor digests of a step's values, then the root of the new state."""
        if self._trace is None or self._trace[0] != step:
            digests: list[Digest] = []

            def note(value: int, array: Array) -> Array:
                kind = self._job.plan.type(value)
                digests.append(tensor_digest(kind, raw_bytes(array), hasher=chunk_root))
                return array

            after = self._observe(step, note)
            root = self._job.commit(step + 1, after).root
            self._reproduced(step + 1, root)
            self._trace = (step, (*digests, root))
        return self._trace[1]

    def trace_root(self, step: int) -> Digest:
        """Root of a step's trace."""
        leaves = self.trace_leaves(step)
        return fold_hashes([trace_leaf(step, i, digest) for i, digest in enumerate(leaves)])

    def chunk_hashes(self, step: int, value: int) -> Sequence[Digest]:
        """Leaf hashes of the chunks of a plan value."""
        return [Digest(h) for h in chunk_hashes(raw_bytes(self.tensor(step, value)))]

    def chunk(self, step: int, value: int, chunk: int) -> bytes:
        """Bytes of one chunk of a plan value."""
        data = raw_bytes(self.tensor(step, value))
        return bytes(data[chunk * CHUNK_BYTES : (chunk + 1) * CHUNK_BYTES])

    def tensor(self, step: int, value: int) -> Array:
        """A plan value of a step; its operands are kept with it."""
        if self._tensors[0] != step:
            self._tensors = (step, {})
        kept = self._tensors[1]
        if value not in kept:
            planned = self._job.plan.call(value)
            wanted = {value, *(planned.inputs if planned else ())} - kept.keys()

            def keep(number: int, array: Array) -> Array:
                if number in wanted:
                    kept[number] = array
                return array

            self._observe(step, keep)
        return kept[value]

    def _observe(self, step: int, observer: Callable[[int, Array], Array]) -> Arrays:
        return self._trainer.step(self.state_after(step), step, observer)

    # ---- one element ------------------------------------------------------------------------

    def entries(self, step: int, value: int, element: int, path: tuple[int, ...]) -> Sequence[int]:
        """Words of the entries of a fold inside an element."""
        planned = self._job.plan.call(value)
        if planned is None:
            raise RuntimeError(f"value {value} is a load")
        operands = [self.tensor(step, number) for number in planned.inputs]
        self.tensor(step, value)
        fold, flip = self._fold(step, value, element)
        outer: tuple[tuple[int, ...], ...] = ()

        def evaluate(part: Fold) -> tuple[int, ...]:
            return spoiled_entries(
                part, flip, lambda which, at: word_at(operands[which], at), planned.call, outer
            )

        for index in path:
            words = evaluate(fold)
            nested = fold.entry(index)
            if not isinstance(nested, Nested):
                raise TypeError(f"entry {index} of the element is no fold")
            fold, outer = nested.fold, (*outer, words)
        return evaluate(fold)

    def _fold(self, step: int, value: int, element: int) -> tuple[Fold, int]:
        """The element's fold, with this node's own forced error in it, and the error's bits."""
        planned = self._job.plan.call(value)
        if planned is None:
            raise RuntimeError(f"value {value} is a load")
        fold, forced = planned.call.op.fold(planned.call, element), self._trainer.forced
        if forced is None or (step, value, element) != (forced.step, forced.value, forced.element):
            return fold, 0
        return spoil(fold, forced.path), forced.flip
