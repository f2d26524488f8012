"""A party's own run of a job: where it lies in the storage, and the worker that extends it."""

from __future__ import annotations

import os
import struct
from dataclasses import replace

from identic.node.execution.forced import ForcedError
from identic.node.role import Context
from identic.node.worker.frames import Assignment, Bounds, Examine, OwnRun, StoredState
from identic.protocol.encoding import decode, encode
from identic.protocol.ids import Count, Digest, JobId
from identic.protocol.job.state import Job

SPACE = "runs"
"""Space of the storage that own runs lie in."""


def assignment(context: Context, job: Job, forced: ForcedError | None = None) -> Assignment:
    """What a worker is told about a job."""
    threads = context.config.threads or os.cpu_count() or 1
    return Assignment(
        blobs=str(context.blobs.folder),
        terms=job.terms,
        artifacts=job.artifacts,
        threads=Count(threads),
        vector_path=context.config.vector,
        device=context.config.device,
        keep_every=job.terms.checkpoint,
        disk_bytes=Count(int(context.config.limits.disk_bytes)),
        bounds=Bounds.of(context.config.limits.programs),
        forced=forced,
    )


def examination(context: Context, job: Job) -> Examine:
    """What a worker is asked before a job is taken."""
    told = assignment(context, job)
    return Examine(
        blobs=told.blobs,
        program=job.artifacts.program,
        threads=told.threads,
        vector_path=told.vector_path,
        device=told.device,
        disk_bytes=told.disk_bytes,
        bounds=told.bounds,
    )


class RunStore:
    """Own runs across restarts, by role, job and attempt."""

    def __init__(self, context: Context, role: str) -> None:
        self._storage = context.storage
        self._blobs = context.blobs
        self._role = role

    def load(self, job: Job) -> OwnRun:
        """The run as far as it is stored; at least the initial state.

        States whose blobs have gone are left out: the run is then taken up from an earlier one.
        """
        start = OwnRun((job.terms.initial_state,), (StoredState(Count(0), job.artifacts.state),))
        found = self._storage.get(SPACE, self._name(job.id, job.attempt))
        if found is None:
            return start
        run = decode(OwnRun, found)
        kept = tuple(
            s for s in run.stored if s.mark < len(run.roots) and self._blobs.path(s.blob).exists()
        )
        return replace(run, stored=kept) if kept else start

    def begin(self, job: Job) -> None:
        """Note that something of a job is about to be stored here, unless it is known."""
        if self._storage.get(SPACE, self._name(job.id, job.attempt)) is None:
            self.save(job, self.load(job))

    def save(self, job: Job, run: OwnRun) -> None:
        """Remember a run."""
        self._storage.put(SPACE, self._name(job.id, job.attempt), encode(run))

    def _name(self, job: JobId, attempt: int) -> bytes:
        return f"{self._role}/{job.hex()}/{attempt}".encode()


def cut(run: OwnRun, roots: tuple[Digest, ...], last: int) -> OwnRun:
    """The run with other roots, and its stored states up to mark ``last`` that have one."""
    kept = tuple(s for s in run.stored if s.mark < len(roots) and s.mark <= last)
    return OwnRun(roots, kept)


def with_root(run: OwnRun, index: int, root: Digest) -> OwnRun:
    """The run with the root of mark ``index``, which is known already or the next one."""
    roots = (*run.roots[:index], root)
    return replace(run, roots=roots + run.roots[index + 1 :])


def with_state(run: OwnRun, state: StoredState) -> OwnRun:
    """The run with one more stored state."""
    kept = tuple(s for s in run.stored if s.mark != state.mark)
    return replace(run, stored=(*kept, state))


def float_of(bits: int) -> float:
    """The float32 number with these bits, for screens."""
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value
