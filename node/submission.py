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
from identic.proofs.signatures import sign
from identic.protocol.commitments import StateHeader
from identic.protocol.encoding import encode
from identic.protocol.hashing import Domain
from identic.protocol.ids import (
    Count,
    Credits,
    Digest,
    JobId,
    Millis,
    PartyId,
    StepIndex,
    Unsigned,
)
from identic.protocol.job.messages import Artifacts, Message, SignedMessage, SubmitJob
from identic.protocol.job.terms import Clocks, JobTerms, Prices, job_id
from identic.protocol.program.codec import program_digest
from identic.protocol.program.types import Program

VERSION = Count(1)
KERNEL_SET = Count(1)


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


DEFAULT_CLOCKS = Clocks(Millis(60_000), Millis(600_000), Millis(60_000))
"""A minute a move, ten for re-execution, a minute for challenges."""

DEFAULT_PRICES = Prices(
    solver_reward=Credits(1_500_000),
    verifier_reward=Credits(300_000),
    solver_bond=Credits(10_000_000),
    verifier_bond=Credits(5_000_000),
    challenger_bond=Credits(2_000_000),
)
"""Rewards and bonds in millionths of a credit."""


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


def prepare(
    blobs: Blobs,
    submitter: PartyId,
    program: Program,
    state: Sequence[Array],
    data: Sequence[Array],
    conditions: Conditions,
) -> Prepared:
    """Put a job's parts into the local store and write its terms.

    Args:
        blobs: the local store.
        submitter: whose escrow pays.
        program: a valid program.
        state: initial tensors in state order, the loss last.
        data: tensors in the order of ``program.data``.
        conditions: everything else.

    Raises:
        LocalError: the store is full.
    """
    digest = program_digest(program)
    header = StateHeader(digest, Unsigned(conditions.seed), StepIndex(0), Count(0))
    initial = commit_state(header, program.state, state)
    parts = [("program", encode(program)), ("state", pack_state(header, state))]
    parts += [(v.name, to_bytes(t)) for v, t in zip(program.data, data, strict=True)]
    names = [blobs.put(content) for _, content in parts]
    terms = JobTerms(
        version=VERSION,
        submitter=submitter,
        program=digest,
        initial_state=initial.root,
        data=tuple(array_digest(v, t) for v, t in zip(program.data, data, strict=True)),
        seed=Unsigned(conditions.seed),
        steps=Count(conditions.steps),
        cadence=Count(conditions.cadence),
        checkpoint=Count(conditions.checkpoint),
        kernel_set=KERNEL_SET,
        verifiers=Count(conditions.verifiers),
        prices=conditions.prices,
        clocks=conditions.clocks,
        nonce=Digest(secrets.token_bytes(32)),
    )
    artifacts = Artifacts(names[0], names[1], tuple(names[2:]))
    sizes = tuple((name, len(content)) for name, content in parts)
    return Prepared(terms, artifacts, sizes)


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
    statement = SubmitJob(prepared.terms, prepared.artifacts)
    network = remote.connection.peer.party
    nonce = Unsigned(int.from_bytes(prepared.job[:8], "big"))
    message = Message(network, identity.party, nonce, statement)
    signed = SignedMessage(message, sign(identity.signing_key, Domain.MESSAGE, message))
    await remote.jobs.submit(encode(signed))
    return prepared.job
