"""Posting a job: blobs, terms, and the signed statement. Used by the client and the demo.

Posting is safe to repeat: blobs that are there are not sent again, and the same job is the
same message, which has one place in the log (MSG-3).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from identic.kernels.arrays import Array, to_bytes
from identic.node.blobs import Blobs
from identic.node.execution.states import array_digest, commit_state, pack_state
from identic.node.identity import Identity
from identic.node.rpc.remote import Remote
from identic.proofs.envelope import seal
from identic.protocol.commitments import StateHeader
from identic.protocol.encoding import encode
from identic.protocol.ids import (
    Count,
    Digest,
    JobId,
    PartyId,
    StepIndex,
    Unsigned,
)
from identic.protocol.job.messages import Artifacts, SubmitJob
from identic.protocol.job.terms import (
    KERNEL_SET,
    VERSION,
    Clocks,
    JobTerms,
    Prices,
    check_terms,
    job_id,
)
from identic.protocol.program.codec import program_digest
from identic.protocol.program.types import Program


@dataclass(frozen=True)
class Conditions:
    """What the submitter chooses besides the program and its tensors."""

    steps: int
    prices: Prices
    clocks: Clocks
    seed: int = 0
    cadence: int = 1
    """Steps between two marks."""
    checkpoint: int = 20
    """Marks between two stored states."""
    verifiers: int = 2


@dataclass(frozen=True)
class Prepared:
    """A job whose parts lie in the local blob store."""

    terms: JobTerms
    artifacts: Artifacts
    sizes: tuple[tuple[str, int], ...]
    """Name and length in bytes of each blob, in the order of uploading."""

    @property
    def job(self) -> JobId:
        """The job's name."""
        return job_id(self.terms)

    @property
    def blobs(self) -> tuple[Digest, ...]:
        """Blobs in the order of uploading."""
        return (self.artifacts.program, self.artifacts.state, *self.artifacts.data)


def terms_of(
    submitter: PartyId,
    program: Program,
    state: Sequence[Array],
    data: Sequence[Array],
    conditions: Conditions,
) -> JobTerms:
    """The terms of a job over these tensors.

    Args:
        submitter: whose escrow pays.
        program: a valid program.
        state: initial tensors in state order, the loss last.
        data: tensors in the order of ``program.data``.
        conditions: everything else.

    Raises:
        ProtocolError: a condition is outside the limits (JOB-1).
    """
    header = _start(program, conditions.seed)
    terms = JobTerms(
        version=Count(VERSION),
        submitter=submitter,
        program=header.program,
        initial_state=commit_state(header, program.state, state).root,
        data=tuple(array_digest(v, t) for v, t in zip(program.data, data, strict=True)),
        seed=Unsigned(conditions.seed),
        steps=Count(conditions.steps),
        cadence=Count(conditions.cadence),
        checkpoint=Count(conditions.checkpoint),
        kernel_set=Count(KERNEL_SET),
        verifiers=Count(conditions.verifiers),
        prices=conditions.prices,
        clocks=conditions.clocks,
        nonce=Digest(secrets.token_bytes(32)),
    )
    check_terms(terms)
    return terms


def pack(
    blobs: Blobs, terms: JobTerms, program: Program, state: Sequence[Array], data: Sequence[Array]
) -> Prepared:
    """Put a job's parts into the local store.

    Raises:
        LocalError: the store is full.
    """
    initial = pack_state(_start(program, terms.seed), state)
    parts = [("program", encode(program)), ("state", initial)]
    parts += [(v.name, to_bytes(t)) for v, t in zip(program.data, data, strict=True)]
    names = [blobs.put(content) for _, content in parts]
    artifacts = Artifacts(names[0], names[1], tuple(names[2:]))
    return Prepared(terms, artifacts, tuple((name, len(content)) for name, content in parts))


def prepare(
    blobs: Blobs,
    submitter: PartyId,
    program: Program,
    state: Sequence[Array],
    data: Sequence[Array],
    conditions: Conditions,
) -> Prepared:
    """Write a job's terms and put its parts into the local store; see ``terms_of``, ``pack``."""
    terms = terms_of(submitter, program, state, data, conditions)
    return pack(blobs, terms, program, state, data)


def _start(program: Program, seed: int) -> StateHeader:
    return StateHeader(program_digest(program), Unsigned(seed), StepIndex(0), Count(0))


OnUpload = Callable[[str, int, int], None]
"""Told of an upload: name of the part, bytes done, bytes in all."""


async def post(
    remote: Remote,
    identity: Identity,
    blobs: Blobs,
    prepared: Prepared,
    on_upload: OnUpload = lambda _name, _done, _total: None,
) -> JobId:
    """Upload the parts and post the job; returns its name.

    Raises:
        ProtocolError: the coordinator refuses the job.
        LocalError: it is not reached.
    """
    for (name, _), blob in zip(prepared.sizes, prepared.blobs, strict=True):
        await remote.blobs.upload(blobs, blob, partial(on_upload, name))
    nonce = int.from_bytes(prepared.job[:8], "big")
    posting = SubmitJob(prepared.terms, prepared.artifacts)
    signed = seal(identity.signing_key, remote.connection.peer.party, nonce, posting)
    await remote.jobs.submit(encode(signed))
    return prepared.job
