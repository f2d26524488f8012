"""What a worker does with its job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from identic.kernels.select import select_backend

from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.execution.loaded import load_job, load_state
from identic.node.execution.playing import respond
from identic.node.execution.rerun import Rerun
from identic.node.execution.training import Trainer, store_model, store_state
from identic.node.worker import frames
from identic.protocol.ids import Count

NO_QUOTA = 1 << 62
"""The daemon keeps the store's quota; a worker writes what the daemon has planned for."""


class Session:
    """A job in memory, and the requests about it.

    Raises:
        ProtocolError: the job's parts break a rule.
        LocalError: this machine cannot run it.
    """

    def __init__(self, assignment: frames.Assignment) -> None:
        self._assignment = assignment
        self._blobs = Blobs(Path(assignment.blobs), NO_QUOTA)
        job = load_job(assignment.terms, assignment.artifacts, self._blobs)
        backend = select_backend(assignment.threads, assignment.vector_path)
        self._trainer = Trainer(job, Executor(job.plan, backend), assignment.forced)
        self._rerun: tuple[frames.OwnRun, Rerun] | None = None
        self.ready = frames.Ready(Count(len(job.plan.calls)), backend.name)

    def train(self, request: frames.Train) -> Iterator[frames.Reply]:
        """Execute to the last mark, storing states on the way."""
        trainer, job = self._trainer, self._trainer.job
        terms, blobs = job.terms, self._blobs
        start = terms.step_of(request.mark)
        state = load_state(job, blobs, request.state, start, request.root)
        final = request.state
        for reached in trainer.run(state, request.mark):
            state = reached.state
            if reached.index % self._assignment.keep_every == 0 or reached.index == terms.last_mark:
                final = store_state(job, blobs, reached.mark.step, state)
                yield frames.StateStored(frames.StoredState(Count(reached.index), final))
            yield frames.MarkDone(Count(reached.index), reached.mark)
        yield frames.Trained(final, store_model(job, blobs, state))

    def answer(self, request: frames.Answer) -> frames.Reply:
        """Choose the next move of a dispute."""
        job = self._trainer.job
        execution = self._rerun_of(request.own)
        execution.about(request.record.opening)
        move = respond(request.record, job.terms, job.plan, request.side, execution)
        return frames.Answered(None if move is None else frames.ChosenMove(move))

    def trace_root(self, request: frames.TraceRoot) -> frames.Reply:
        """Root of the trace of one step."""
        return frames.TraceRooted(self._rerun_of(request.own).trace_root(request.step))

    def _rerun_of(self, own: frames.OwnRun) -> Rerun:
        """The re-execution of one's own run; the same one as long as the run is the same."""
        if self._rerun is None or self._rerun[0] != own:
            stored = {int(s.mark): s.blob for s in own.stored}
            self._rerun = (own, Rerun(self._trainer, self._blobs, own.roots, stored))
        return self._rerun[1]
