"""Re-execution for disputes: answers from what is at hand, or from the nearest state.

A dispute asks about one interval, then one step, then one value of it; many disputes about
one run ask about different ones in turns. ``Rerun`` keeps what they may ask for next, within
the memory it is given:

* states, of an interval as many as fit, evenly spread;
* digests of steps and states, and words of folds, which take little;
* of a step's tensors all, if they fit; else those around the value in dispute.

So an interval's steps are executed once, and the step in question once or twice.

It implements ``protocol/dispute/player.py::Execution``. Spec: docs/spec/execution.md (EXE-11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from identic.kernels.arrays import Array, on_host
from identic.kernels.hashing import chunk_hashes, chunk_root, raw_bytes
from identic.node.blobs import Blobs
from identic.node.execution.elements import word_at
from identic.node.execution.forced import spoil, spoiled_entries
from identic.node.execution.loaded import load_state
from identic.node.execution.shelf import Shelf
from identic.node.execution.states import Arrays, array_digest
from identic.node.execution.training import Trainer
from identic.node.logging import get_logger
from identic.proofs.openings import Openings
from identic.proofs.state import StateCommitment
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import trace_leaf
from identic.protocol.errors import IdenticError, Unsound
from identic.protocol.hashing import fold as fold_hashes
from identic.protocol.ids import Digest
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.program.plan import Source
from identic.protocol.tensors import CHUNK_BYTES

DIGEST_BYTES = 128
"""Memory that a kept digest takes, about."""
WORD_BYTES = 40
"""Memory that a kept word takes, about."""
SMALL_BYTES = 1 << 27
"""Room for digests and words, in bytes."""

Digests = Sequence[Digest]
Parts = dict[int, Array]
"""Plan values of one step by number."""

log = get_logger("execution")


class Rerun(Openings):
    """One's own run of a job, executed again where it is asked about.

    Args:
        trainer: executes steps, with the same forced error as the run had.
        blobs: where stored states lie.
        roots: state roots of marks 0, 1, ... as this node computed them.
        stored: blobs of stored states by mark; mark 0 must be among them.
        room_bytes: memory for states and tensors beyond what one step needs.
    """

    def __init__(
        self,
        trainer: Trainer,
        blobs: Blobs,
        roots: Sequence[Digest],
        stored: Mapping[int, Digest],
        room_bytes: int = 0,
    ) -> None:
        self._trainer = trainer
        self._job = trainer.job
        self.terms = trainer.job.terms
        self.plan = trainer.job.plan
        self._blobs = blobs
        self._roots = tuple(roots)
        self._stored = dict(stored)
        self._state_bytes = max(1, sum(v.type.nbytes for v in self._job.program.state))
        self._states: Shelf[int, Arrays] = Shelf(room_bytes // 2)
        self._parts: Shelf[tuple[int, int | None], Parts] = Shelf(room_bytes // 2)
        self._digests: Shelf[tuple[object, ...], Digests] = Shelf(SMALL_BYTES // 2)
        self._words: Shelf[tuple[object, ...], tuple[int, ...]] = Shelf(SMALL_BYTES // 2)

    # ---- states -----------------------------------------------------------------------------

    def run_leaves(self) -> Digests:
        """State roots at the marks this node has reached."""
        return self._roots

    def interval_roots(self, mark: int) -> Digests:
        """State roots after each step of the interval that ends at ``mark >= 1``."""
        known = self._digests.get(("interval", mark))
        if known is not None:
            return known
        first, last = self.terms.step_of(mark - 1), self.terms.step_of(mark)
        # EXE-11: as many states of the interval are kept as fit, evenly spread.
        fitting = max(1, self._states.room_bytes // self._state_bytes)
        stride = -(-(last - first) // fitting)
        state = self.state_after(first)
        roots = []
        for step in range(first, last):
            # The first state stays in memory; of those after it, copies may.
            state = self._trainer.step(state, step, give=step > first)
            roots.append(self._trainer.commit(step + 1, state).root)
            if (last - step - 1) % stride == 0:
                self._keep(step + 1, state)
        self._reproduced(last, roots[-1])
        return self._kept_digests(("interval", mark), roots)

    def state_digests(self, state: int) -> Digests:
        """Tensor digests of the state after ``state`` steps."""
        known = self._digests.get(("state", state))
        if known is not None:
            return known
        digests = self._trainer.commit(state, self.state_after(state)).digests
        return self._kept_digests(("state", state), digests)

    def state_after(self, step: int) -> Arrays:
        """The state after ``step`` steps, from the nearest one at hand."""
        at, state = self.nearest(step)
        return self._keep(step, self._trainer.advance(state, at, step))

    def _keep(self, step: int, state: Arrays) -> Arrays:
        """Put a state into memory; a device's is needed for the next steps."""
        return self._states.put(step, [on_host(t) for t in state], self._state_bytes)

    def nearest(self, step: int) -> tuple[int, Arrays]:
        """Steps done at the last state at or before ``step`` that is at hand, and that state.

        Raises:
            Unsound: no stored state is sound.
        """
        # EXE-11: re-execution starts from the nearest state, in memory or stored.
        kept = max((at for at in self._states if at <= step), default=-1)
        for at, mark in self._stored_until(step):
            if kept >= at:
                break
            try:
                blob, root = self._stored[mark], self._roots[mark]
                return at, load_state(self._job, self._blobs, blob, at, root)
            except IdenticError as error:
                # EXE-8: an unsound stored state is passed over, whoever is at fault.
                log.warning("a stored state is not sound", mark=mark, problem=str(error))
                del self._stored[mark]
        state = self._states.get(kept)
        if state is None:
            raise Unsound(
                f"no sound stored state at or before step {step}",
                remedy="the initial state must stay in the blob store until the job is settled",
            )
        return kept, state

    def _stored_until(self, step: int) -> Iterator[tuple[int, int]]:
        """Steps done and mark of the stored states at or before ``step``, the last one first."""
        steps = {mark: int(self.terms.step_of(mark)) for mark in self._stored}
        for mark in sorted(steps, reverse=True):
            if steps[mark] <= step and mark < len(self._roots):
                yield steps[mark], mark

    def _reproduced(self, step: int, root: Digest) -> None:
        """Refuse to answer with a state that one's own run did not have at a mark."""
        mark = -(-step // self.terms.cadence)
        known = self.terms.step_of(mark) == step and mark < len(self._roots)
        # EXE-5: what is answered is what the run gave.
        if known and self._roots[mark] != root:
            raise Unsound(
                f"this machine does not reproduce its own state after step {step}",
                remedy="run `identic doctor`; the hardware or the installation has changed",
            )

    def _kept_digests(self, key: tuple[object, ...], digests: Digests) -> Digests:
        return self._digests.put(key, digests, DIGEST_BYTES * len(digests))

    # ---- the step in question ---------------------------------------------------------------

    def trace_leaves(self, step: int) -> Digests:
        """Tensor digests of a step's values, then the root of the new state."""
        known = self._digests.get(("trace", step))
        if known is not None:
            return known
        digests: list[Digest] = []
        whole = sum(self.plan.type(value).nbytes for value in range(self.plan.values))
        fits, parts = whole <= self._parts.room_bytes, dict[int, Array]()

        def note(value: int, array: Array) -> Array:
            digests.append(
                tensor_digest(self.plan.type(value), raw_bytes(array), hasher=chunk_root)
            )
            if fits:
                parts[value] = array
            return array

        before = self.state_after(step)
        self._trainer.step(before, step, note)
        if fits:
            self._parts.put((step, None), parts, whole)
        root = self._states_around(step, before, digests)
        self._reproduced(step + 1, root)
        return self._kept_digests(("trace", step), (*digests, root))

    def _states_around(self, step: int, before: Arrays, trace: Digests) -> Digest:
        """Keep the digests of the states before and after a step; the root of the one after."""
        # EXE-11: a state's tensors are values of the trace, and are not hashed again.
        loaded = {
            load.index: trace[value]
            for value, load in enumerate(self.plan.loads)
            if load.source is Source.STATE
        }
        variables = self._job.program.state
        first = [
            loaded[i] if i in loaded else array_digest(variables[i], before[i])
            for i in range(len(variables))
        ]
        self._kept_digests(("state", step), first)
        after = tuple(trace[value] for value in self.plan.outputs)
        self._kept_digests(("state", step + 1), after)
        return StateCommitment(self._job.header(step + 1), after).root

    def trace_root(self, step: int) -> Digest:
        """Root of a step's trace."""
        leaves = self.trace_leaves(step)
        return fold_hashes([trace_leaf(step, i, digest) for i, digest in enumerate(leaves)])

    def chunk_hashes(self, step: int, value: int) -> Digests:
        """Leaf hashes of the chunks of a plan value."""
        known = self._digests.get(("chunks", step, value))
        if known is not None:
            return known
        hashes = [Digest(h) for h in chunk_hashes(raw_bytes(self.tensor(step, value)))]
        return self._kept_digests(("chunks", step, value), hashes)

    def chunk(self, step: int, value: int, chunk: int) -> bytes:
        """Bytes of one chunk of a plan value."""
        data = raw_bytes(self.tensor(step, value))
        return bytes(data[chunk * CHUNK_BYTES : (chunk + 1) * CHUNK_BYTES])

    def tensor(self, step: int, value: int) -> Array:
        """A plan value of a step; its operands are kept with it."""
        for key in self._parts:
            parts = self._parts.get(key) if key[0] == step else None
            if parts is not None and value in parts:
                return parts[value]
        planned = self.plan.call(value)
        wanted = {value, *(planned.inputs if planned else ())}
        found: Parts = {}

        def keep(number: int, array: Array) -> Array:
            if number in wanted:
                found[number] = array
            return array

        self._trainer.step(self.state_after(step), step, keep)
        nbytes = sum(self.plan.type(number).nbytes for number in wanted)
        return self._parts.put((step, value), found, nbytes)[value]

    # ---- one element ------------------------------------------------------------------------

    def entries(self, step: int, value: int, element: int, path: tuple[int, ...]) -> Sequence[int]:
        """Words of the entries of a fold inside an element."""
        known = self._words.get((step, value, element, path))
        if known is not None:
            return known
        planned = self.plan.call(value)
        if planned is None:
            raise RuntimeError(f"value {value} is a load")
        # The value itself is asked for first, since its operands are kept with it.
        self.tensor(step, value)
        operands = [self.tensor(step, number) for number in planned.inputs]
        fold, flip = self._fold(step, value, element)
        outer: tuple[tuple[int, ...], ...] = ()

        def evaluate(part: Fold, at: tuple[int, ...]) -> tuple[int, ...]:
            key = (step, value, element, at)
            kept = self._words.get(key)
            if kept is not None:
                return kept
            words = spoiled_entries(
                part, flip, lambda which, i: word_at(operands[which], i), planned.call, outer
            )
            return self._words.put(key, words, WORD_BYTES * len(words))

        for depth, index in enumerate(path):
            words = evaluate(fold, path[:depth])
            nested = fold.entry(index)
            if not isinstance(nested, Nested):
                raise TypeError(f"entry {index} of the element is no fold")
            fold, outer = nested.fold, (*outer, words)
        return evaluate(fold, path)

    def _fold(self, step: int, value: int, element: int) -> tuple[Fold, int]:
        """The element's fold, with this node's own forced error in it, and the error's bits."""
        planned = self.plan.call(value)
        if planned is None:
            raise RuntimeError(f"value {value} is a load")
        fold, forced = planned.call.op.fold(planned.call, element), self._trainer.forced
        if forced is None or (step, value, element) != (forced.step, forced.value, forced.element):
            return fold, 0
        return spoil(fold, forced.path), forced.flip
