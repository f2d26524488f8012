"""A job's program and data in memory, checked against the terms."""

from __future__ import annotations

from dataclasses import dataclass

from identic.kernels.hashing import chunk_roots
from identic.node.blobs import Blobs
from identic.node.execution.states import (
    Arrays,
    Roots,
    array_digest,
    commit_state,
    unpack_state,
    unpack_tensors,
)
from identic.proofs.state import StateCommitment
from identic.protocol.commitments import StateHeader
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Count, Digest, StepIndex
from identic.protocol.job.messages import Artifacts
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load, program_digest
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits


@dataclass(frozen=True)
class LoadedJob:
    """What a step needs besides the state."""

    terms: JobTerms
    program: Program
    plan: StepPlan
    data: Arrays

    def header(self, step: int) -> StateHeader:
        """Header of the state after ``step`` steps."""
        return state_header(self.terms, self.program, step)

    def commit(self, step: int, state: Arrays, roots: Roots = chunk_roots) -> StateCommitment:
        """Commitment to the state after ``step`` steps; ``roots`` hashes where its tensors lie."""
        return commit_state(self.header(step), self.program.state, state, roots)


def state_header(terms: JobTerms, program: Program, step: int) -> StateHeader:
    """Header of a job's state after ``step`` steps (COM-4)."""
    cursor = step * program.shards * program.examples
    return StateHeader(terms.program, terms.seed, StepIndex(step), Count(cursor))


def load_job(
    terms: JobTerms, artifacts: Artifacts, blobs: Blobs, limits: Limits | None = None
) -> LoadedJob:
    """Read and check a job's program and data.

    Raises:
        ProtocolError: a part of the job is not what its terms say (EXE-2), or the program
            breaks a rule (PRG-*), or a blob is missing (NET-8).
    """
    blob = blobs.read(artifacts.program, MAX_PROGRAM_BYTES)
    program = load(blob, limits or Limits())
    # EXE-2: the program is the one that the terms name.
    _same("EXE-2", "program", program_digest(program), terms.program)
    # EXE-2: there is one data digest and one blob for each data tensor of the program.
    _same("EXE-2", "data tensors", (len(terms.data), len(artifacts.data)), (len(program.data),) * 2)
    data: Arrays = []
    for variable, digest, name in zip(program.data, terms.data, artifacts.data, strict=True):
        (tensor,) = unpack_tensors([variable], blobs.read(name, variable.type.nbytes))
        # EXE-2: data tensors have the digests that the terms name.
        _same("EXE-2", f"data {variable.name}", array_digest(variable, tensor), digest)
        data.append(tensor)
    return LoadedJob(terms, program, unroll(program), data)


def load_state(job: LoadedJob, blobs: Blobs, blob: Digest, step: int, root: Digest) -> Arrays:
    """Read a stored state of the job and check it against its root.

    Raises:
        ProtocolError: the blob is not the state after ``step`` steps with this root (EXE-3).
    """
    size = sum(v.type.nbytes for v in job.program.state)
    header, tensors = unpack_state(job.program, blobs.read(blob, size + 4096))
    # EXE-3: a stored state has the header of its step and the root that was committed to.
    _same("EXE-3", "state header", header, job.header(step))
    _same("EXE-3", f"state root at step {step}", job.commit(step, tensors).root, root)
    return tensors


def _same(rule: str, what: str, got: object, want: object) -> None:
    if got != want:
        raise ProtocolError(rule, Code.MISMATCH, got=f"{what} {got}", want=want)
