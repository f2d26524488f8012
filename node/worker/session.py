"""What a worker does with its job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from identic.kernels import _native
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.execution.loaded import load_job
from identic.node.execution.playing import replayed
from identic.node.execution.rerun import Rerun
from identic.node.execution.states import Arrays
from identic.node.execution.training import Trainer, store_model, store_state
from identic.node.worker import frames
from identic.node.worker.backends import Wanted, take
from identic.protocol.dispute.player import next_move
from identic.protocol.ids import Count
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load
from identic.protocol.program.cost import peak_bytes
from identic.protocol.program.unroll import unroll


class Session:
    """A job in memory, and the requests about it.

    Raises:
        ProtocolError: the job's parts break a rule.
        LocalError: this machine cannot run it.
        Unsound: it does not give the known bits.
    """

    def __init__(self, assignment: frames.Assignment) -> None:
        self._assignment = assignment
        self._blobs = Blobs(Path(assignment.blobs), assignment.disk_bytes)
        limits = assignment.bounds.limits
        job = load_job(assignment.terms, assignment.artifacts, self._blobs, limits)
        wanted = Wanted(assignment.device, assignment.threads, assignment.vector_path)
        self._taken = take(wanted, job.plan)
        executor = Executor(job.plan, self._taken.backend)
        self._trainer = Trainer(job, executor, assignment.forced)
        self._rerun: tuple[frames.OwnRun, Rerun] | None = None
        self.ready = frames.Ready(
            Count(len(job.plan.calls)), _native.path(), self._taken.device, self._taken.why
        )

    def train(self, request: frames.Train) -> Iterator[frames.Reply]:
        """Execute from mark to mark, storing states on the way."""
        job, terms = self._trainer.job, self._trainer.job.terms
        step, state = self._rerun_of(request.own).nearest(terms.step_of(request.last))
        start = -(-step // terms.cadence)
        for reached in self._trainer.run(state, start, request.last):
            self._taken.check()
            state = reached.state
            yield frames.MarkDone(Count(reached.index), reached.mark)
            at_rest = reached.index % self._assignment.keep_every == 0
            if request.keep and at_rest and reached.index != request.last:
                yield self._stored(reached.index, state)
        if not request.keep:
            yield frames.Trained(None, None)
            return
        final = self._stored(request.last, state)
        yield final
        whole = request.last == terms.last_mark
        model = store_model(job, self._blobs, state) if whole else None
        yield frames.Trained(final.state.blob, model)

    def _stored(self, mark: int, state: Arrays) -> frames.StateStored:
        job = self._trainer.job
        blob = store_state(job, self._blobs, job.terms.step_of(mark), state)
        return frames.StateStored(frames.StoredState(Count(mark), blob))

    def answer(self, request: frames.Answer) -> frames.Reply:
        """Choose the next move of a dispute."""
        job = self._trainer.job
        dispute = replayed(request.record, job.terms, job.plan)
        move = next_move(dispute, request.side, self._rerun_of(request.own))
        self._taken.check()
        return frames.Answered(None if move is None else frames.ChosenMove(dispute.turn, move))

    def trace_root(self, request: frames.TraceRoot) -> frames.Reply:
        """Root of the trace of one step."""
        root = self._rerun_of(request.own).trace_root(request.step)
        self._taken.check()
        return frames.TraceRooted(root)

    def _rerun_of(self, own: frames.OwnRun) -> Rerun:
        """The re-execution of one's own run; the same one as long as the run is the same."""
        if self._rerun is None or self._rerun[0] != own:
            stored = {int(s.mark): s.blob for s in own.stored}
            room = self._spare_bytes()
            self._rerun = (own, Rerun(self._trainer, self._blobs, own.roots, stored, room))
        return self._rerun[1]

    def _spare_bytes(self) -> int:
        """A quarter of the memory that a step leaves, for what is kept to answer from."""
        job = self._trainer.job
        needed = peak_bytes(job.plan) + sum(v.type.nbytes for v in job.program.state)
        return max(0, int(self._assignment.bounds.nbytes) - needed) // 4


def examined(request: frames.Examine) -> frames.Examined:
    """Find the device that would be used for a program.

    Raises:
        ProtocolError: the program breaks a rule.
        LocalError: the device that is asked for cannot be had, or has no room.
    """
    blobs = Blobs(Path(request.blobs), request.disk_bytes)
    program = load(blobs.read(request.program, MAX_PROGRAM_BYTES), request.bounds.limits)
    wanted = Wanted(request.device, request.threads, request.vector_path)
    taken = take(wanted, unroll(program))
    return frames.Examined(taken.device, taken.why)
