"""What a worker does with its job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from identic.kernels import _native
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.execution.loaded import load_job
from identic.node.execution.playing import replayed
from identic.node.execution.rerun import Rerun
from identic.node.execution.selftest import check_bits
from identic.node.execution.states import Arrays
from identic.node.execution.training import Trainer, store_model, store_state
from identic.node.worker import frames
from identic.protocol.dispute.player import next_move
from identic.protocol.errors import LocalError, Unsound
from identic.protocol.ids import Count
from identic.protocol.program.cost import peak_bytes
from identic.protocol.program.validate import Limits


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
        limits = Limits(max_bytes=assignment.memory_bytes)
        job = load_job(assignment.terms, assignment.artifacts, self._blobs, limits)
        backend = native_backend(assignment.threads, assignment.vector_path)
        check_bits(backend)
        self._trainer = Trainer(job, Executor(job.plan, backend), assignment.forced)
        self._rerun: tuple[frames.OwnRun, Rerun] | None = None
        self.ready = frames.Ready(Count(len(job.plan.calls)), _native.path())

    def train(self, request: frames.Train) -> Iterator[frames.Reply]:
        """Execute from mark to mark, storing states on the way."""
        job, terms = self._trainer.job, self._trainer.job.terms
        step, state = self._rerun_of(request.own).nearest(terms.step_of(request.last))
        start = -(-step // terms.cadence)
        for reached in self._trainer.run(state, start, request.last):
            check_float_environment()
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
        check_float_environment()
        return frames.Answered(None if move is None else frames.ChosenMove(dispute.turn, move))

    def trace_root(self, request: frames.TraceRoot) -> frames.Reply:
        """Root of the trace of one step."""
        root = self._rerun_of(request.own).trace_root(request.step)
        check_float_environment()
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
        return max(0, int(self._assignment.memory_bytes) - needed) // 4


def native_backend(threads: int, path: str) -> CpuBackend:
    """The native operators of this process, on a vector path, in a sound float environment.

    Raises:
        LocalError: the machine lacks the path, or flushes subnormals for good.
    """
    if path != "auto" and path not in _native.paths():
        raise LocalError(
            f"this machine has no vector path {path!r}",
            remedy=f"set vector to one of auto, {', '.join(_native.paths())}",
        )
    _native.set_path(path)
    backend = CpuBackend(threads)
    _native.reset_float_environment()
    check_float_environment()
    return backend


def check_float_environment() -> None:
    """Refuse to go on, or to hand out what was computed, in an unsound float environment.

    Raises:
        Unsound: a thread flushes subnormals or rounds otherwise than to nearest.
    """
    found = _native.float_environment()
    # EXE-7: no thread flushes subnormals or rounds otherwise than to nearest.
    if found["ftz"] or found["daz"] or found["rounding"] != "nearest":
        raise Unsound(
            f"the float environment of this machine is {found}",
            remedy="run the node outside of whatever changes it; see `identic doctor`",
        )
