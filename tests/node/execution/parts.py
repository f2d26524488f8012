"""Jobs on this machine for the tests of execution: blobs in a folder, trainers, reruns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from identic.kernels.arrays import Array, from_bytes
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.execution.forced import ForcedError
from identic.node.execution.loaded import LoadedJob, load_job, load_state
from identic.node.execution.rerun import Rerun
from identic.node.execution.states import pack_state
from identic.node.execution.training import Trainer, store_state
from identic.node.worker.frames import Assignment, Bounds, OwnRun, StoredState
from identic.protocol.commitments import StateHeader
from identic.protocol.encoding import encode
from identic.protocol.ids import Count, Digest, StepIndex, Unsigned
from identic.protocol.job.messages import Artifacts
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.types import Program
from identic.protocol.program.validate import Limits
from tests.helpers.small_run import Run

QUOTA = 1 << 30


@dataclass(frozen=True)
class Kept:
    """A job whose parts lie in a blob store."""

    folder: Path
    terms: JobTerms
    artifacts: Artifacts
    program: Program

    @property
    def blobs(self) -> Blobs:
        """The store, opened anew: nothing is remembered of what was read before."""
        return Blobs(self.folder, QUOTA)

    def load(self) -> LoadedJob:
        """The job, checked."""
        return load_job(self.terms, self.artifacts, self.blobs)

    def trainer(self, forced: ForcedError | None = None) -> Trainer:
        """What executes its steps with the native operators."""
        job = self.load()
        return Trainer(job, Executor(job.plan, CpuBackend()), forced)

    @property
    def start(self) -> OwnRun:
        """A run of no steps."""
        stored = StoredState(Count(0), self.artifacts.state)
        return OwnRun((self.terms.initial_state,), (stored,))

    def execute(
        self, forced: ForcedError | None = None, own: OwnRun | None = None, every: int = 1
    ) -> OwnRun:
        """Run to the end from the last state of ``own``, storing each ``every``-th mark."""
        own = own or self.start
        trainer, blobs = self.trainer(forced), self.blobs
        job, first = trainer.job, max(own.stored, key=lambda s: s.mark)
        mark = int(first.mark)
        at, root = int(job.terms.step_of(mark)), own.roots[mark]
        state: list[Array] = load_state(job, blobs, first.blob, at, root)
        roots, stored = list(own.roots[: mark + 1]), list(own.stored)
        for reached in trainer.run(state, mark, job.terms.last_mark):
            roots.append(reached.mark.state_root)
            if reached.index % every == 0:
                blob = store_state(job, blobs, int(reached.mark.step), reached.state)
                stored.append(StoredState(Count(reached.index), blob))
        return OwnRun(tuple(roots), tuple(stored))

    def rerun(self, own: OwnRun, forced: ForcedError | None = None) -> Rerun:
        """What answers for a run."""
        stored = {int(s.mark): s.blob for s in own.stored}
        return Rerun(self.trainer(forced), self.blobs, own.roots, stored)

    def assignment(
        self,
        *,
        threads: int = 1,
        path: str = "auto",
        device: str = "auto",
        forced: ForcedError | None = None,
    ) -> Assignment:
        """What a worker is told."""
        return Assignment(
            blobs=str(self.folder),
            terms=self.terms,
            artifacts=self.artifacts,
            threads=Count(threads),
            vector_path=path,
            device=device,
            keep_every=self.terms.checkpoint,
            disk_bytes=Count(1 << 32),
            bounds=Bounds.of(Limits(max_bytes=1 << 32)),
            forced=forced,
        )

    def damage(self, blob: Digest) -> None:
        """Change one byte of a blob's file, as a bad disk does."""
        path = self.blobs.path(blob)
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)


def keep(folder: Path, run: Run, checkpoint: int = 1) -> Kept:
    """Put a run's job into a store."""
    terms = replace(run.terms, checkpoint=Count(checkpoint))
    return keep_parts(folder, terms, run.program, run.state, run.data)


def keep_parts(
    folder: Path, terms: JobTerms, program: Program, state: Sequence[bytes], data: Sequence[bytes]
) -> Kept:
    """Put a job into a store."""
    blobs = Blobs(folder, QUOTA)
    header = StateHeader(terms.program, terms.seed, StepIndex(0), Count(0))
    tensors = [from_bytes(v.type, t) for v, t in zip(program.state, state, strict=True)]
    artifacts = Artifacts(
        blobs.put(encode(program)),
        blobs.put(pack_state(header, tensors)),
        tuple(blobs.put(tensor) for tensor in data),
    )
    return Kept(folder, terms, artifacts, program)


def forced_at(step: int, value: int, element: int, path: Sequence[int], flip: int) -> ForcedError:
    """A forced error from plain numbers."""
    return ForcedError(
        StepIndex(step),
        Count(value),
        Count(element),
        tuple(Count(entry) for entry in path),
        Unsigned(flip),
    )
