"""The run of a job on this machine, mark by mark, from any stored state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from identic.kernels.arrays import Array
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.execution.elements import word_at
from identic.node.execution.forced import ForcedError, Spoiler
from identic.node.execution.loaded import LoadedJob
from identic.node.execution.model import model_file
from identic.node.execution.states import Arrays, pack_state
from identic.proofs.state import StateCommitment
from identic.protocol.ids import Digest, StepIndex, Unsigned
from identic.protocol.job.messages import Mark

Observer = Callable[[int, Array], Array]


@dataclass(frozen=True)
class Reached:
    """A mark of the run, with its state until the next one is computed: the list is then empty."""

    index: int
    mark: Mark
    state: Arrays


class Trainer:
    """Executes steps of one job.

    Args:
        job: program, plan and data.
        executor: runs the plan on this machine.
        forced: the wrong result to make, for a rehearsal; ``None`` for honest work.
    """

    def __init__(
        self, job: LoadedJob, executor: Executor, forced: ForcedError | None = None
    ) -> None:
        self.job = job
        self.executor = executor
        self.forced = forced
        if forced is not None:
            forced.check(job.plan, job.terms.steps)

    def step(
        self,
        state: Arrays,
        step: int,
        observer: Observer | None = None,
        *,
        give: bool = False,
    ) -> Arrays:
        """The state after step number ``step``, from the state before it.

        Args:
            state: tensors in state order; not changed, unless they are given away.
            step: number of the step, counted from 0.
            observer: sees every plan value in order, after any forced error.
            give: whether nobody needs the state before the step any more; the list may then be
                emptied, and the new state lie where the old one lay.
        """
        watched, seed = self._watched(step, observer), self.job.terms.seed
        if watched is not None:
            # Observed steps run operator by operator, over numpy's arrays.
            return self.executor.step(state, self.job.data, seed, step, watched)
        if give:
            return self.executor.consume(state, self._held, seed, step)
        return self.executor.step(state, self._held, seed, step)

    @cached_property
    def _held(self) -> Arrays:
        """The job's data where steps read it."""
        return self.executor.hold(self.job.data)

    def _watched(self, step: int, observer: Observer | None) -> Observer | None:
        if self.forced is None or self.forced.step != step:
            return observer
        spoiler = Spoiler(self.job.plan, self.forced)
        if observer is None:
            return spoiler
        return lambda value, array: observer(value, spoiler(value, array))

    def advance(self, state: Arrays, first: int, last: int, *, give: bool = False) -> Arrays:
        """The state after ``last`` steps, from that after ``first <= last`` steps.

        With ``give`` nobody needs the state that it starts from any more; see ``step``.
        """
        for step in range(first, last):
            # What lies between the first and the last state is nobody else's.
            state = self.step(state, step, give=give or step > first)
        return state

    def commit(self, step: int, state: Arrays) -> StateCommitment:
        """Commitment to the state after ``step`` steps, hashed where its tensors lie."""
        return self.job.commit(step, state, self.executor.chunk_roots)

    def mark(self, state: Arrays, index: int) -> Mark:
        """What is committed to at mark ``index``."""
        step = self.job.terms.step_of(index)
        commitment = self.commit(step, state)
        path = commitment.opening(len(commitment.digests) - 1)
        return Mark(StepIndex(step), commitment.root, Unsigned(word_at(state[-1], 0)), path)

    def run(self, state: Arrays, mark: int, last: int) -> Iterator[Reached]:
        """Execute from ``mark`` to mark ``last``; yields each mark after the first one."""
        terms = self.job.terms
        for index in range(mark + 1, last + 1):
            first, end = terms.step_of(index - 1), terms.step_of(index)
            # The first state is the caller's; a mark's has been stored when the next is asked for.
            state = self.advance(state, first, end, give=index > mark + 1)
            yield Reached(index, self.mark(state, index), state)


def store_state(job: LoadedJob, blobs: Blobs, step: int, state: Arrays) -> Digest:
    """Put the state after ``step`` steps into the blob store."""
    return blobs.put(pack_state(job.header(step), state))


def store_model(job: LoadedJob, blobs: Blobs, state: Arrays) -> Digest:
    """Put the parameters and buffers into the blob store, as a safetensors file."""
    kept = (*job.program.parameters, *job.program.buffers)
    return blobs.put(model_file(kept, state[: len(kept)]))
