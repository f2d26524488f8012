"""What the coordinator checks in the bytes of blobs before a statement may enter the log.

These checks read and hash whole blobs and may take long; they run outside the order of the
log. They depend on nothing that a later entry can change within an attempt.

Spec: docs/spec/jobs.md (JOB-10 to JOB-12, JOB-22, JOB-30).
"""

from __future__ import annotations

from identic.node.blobs import Blobs
from identic.node.coordinator.policy import Policy
from identic.node.coordinator.programs import Programs
from identic.node.execution.loaded import LoadedJob, load_job, load_state
from identic.node.execution.model import model_file
from identic.node.execution.states import Arrays
from identic.proofs.state import StateCommitment, check_state_opening
from identic.protocol.commitments import digest_of
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import leaf_hash, sha256
from identic.protocol.ids import Digest
from identic.protocol.job.asks import blob_of
from identic.protocol.job.messages import (
    Ask,
    Commit,
    Finish,
    Served,
    Statement,
    Stored,
    SubmitJob,
)
from identic.protocol.job.state import Job
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load
from identic.protocol.program.types import LOSS_TYPE
from identic.protocol.program.validate import Limits


class Inspector:
    """Checks statements against blobs."""

    def __init__(self, blobs: Blobs, programs: Programs, limits: Limits, policy: Policy) -> None:
        self._blobs = blobs
        self._programs = programs
        self._limits = limits
        self._policy = policy
        self.finished: dict[Digest, StateCommitment] = {}
        """Commitments of last states by their blobs: receipts need them while others wait."""

    @staticmethod
    def concerns(said: Statement) -> bool:
        """Whether a statement is about bytes."""
        return isinstance(said, SubmitJob | Commit | Stored | Finish | Ask | Served)

    def check(self, said: Statement, job: Job | None) -> None:
        """Check a statement.

        Args:
            said: what concerns bytes.
            job: the job it is about; nothing for a posting.

        Raises:
            ProtocolError: bytes are missing (NET-8) or not what they are said to be.
        """
        if isinstance(said, SubmitJob):
            self._posting(said)
        elif job is None:
            raise RuntimeError("a statement about a job without the job")
        elif isinstance(said, Commit):
            self._losses(said, job)
        elif isinstance(said, Stored):
            self._stored(job, int(said.mark), said.blob)
        elif isinstance(said, Finish):
            self._finished(said, job)
        elif isinstance(said, Ask):
            self._missing(job, int(said.mark))
        elif isinstance(said, Served):
            self._stored(job, int(said.mark), blob_of(job, int(said.mark)))

    def _posting(self, said: SubmitJob) -> None:
        program = load(self._blobs.read(said.artifacts.program, MAX_PROGRAM_BYTES), self._limits)
        self._policy.check(said.terms, program)
        # JOB-22: program, data and initial state are in the blob store, valid and the terms'.
        loaded = load_job(said.terms, said.artifacts, self._blobs, self._limits)
        load_state(loaded, self._blobs, said.artifacts.state, 0, said.terms.initial_state)

    def _losses(self, said: Commit, job: Job) -> None:
        plan = self._programs.plan(job.artifacts.program, job.terms.program)
        tensors = len(plan.program.state)
        for mark in said.marks:
            # JOB-9: the loss is a float32.
            if mark.loss >= 1 << 32:
                raise ProtocolError("JOB-9", Code.OUT_OF_RANGE, got=mark.loss, want="below 2^32")
            digest = digest_of(LOSS_TYPE, leaf_hash(int(mark.loss).to_bytes(4, "little")))
            # JOB-10: the loss is opened from the state's root.
            try:
                check_state_opening(mark.state_root, tensors, tensors - 1, digest, mark.path)
            except ProtocolError as error:
                raise ProtocolError("JOB-10", error.code, got=error.got, want=error.want) from error

    def _stored(self, job: Job, mark: int, blob: Digest) -> tuple[LoadedJob, Arrays]:
        record = job.marks[mark]
        plan = self._programs.plan(job.artifacts.program, job.terms.program)
        loaded = LoadedJob(job.terms, plan.program, plan, [])
        # JOB-11: a stored state has the root that was committed to.
        return loaded, load_state(loaded, self._blobs, blob, int(record.step), record.state_root)

    def _missing(self, job: Job, mark: int) -> None:
        """Refuse to ask for a state that is here; a damaged file is taken away for it."""
        blob = blob_of(job, mark)
        if not self._blobs.sound(blob):
            return
        try:
            self._stored(job, mark, blob)
        except ProtocolError:
            return
        # JOB-30: a state is asked for that the blob store does not have.
        raise ProtocolError("JOB-30", Code.MISMATCH, got=f"mark {mark}", want="a state not here")

    def _finished(self, said: Finish, job: Job) -> None:
        loaded, state = self._stored(job, job.terms.last_mark, said.state)
        kept = (*loaded.program.parameters, *loaded.program.buffers)
        want = sha256(model_file(kept, state[: len(kept)]))
        # JOB-12: the model file is that of the last state, byte for byte.
        if said.model != want:
            raise ProtocolError(
                "JOB-12",
                Code.MISMATCH,
                got=f"model {said.model}",
                want=f"that of the last state, {want}",
            )
        self._blobs.open(said.model).close()
        self.finished[said.state] = loaded.commit(int(job.terms.steps), state)
