"""What parties say: statements, the envelope that addresses them, and its signature.

* A statement is one member of ``Statement``; its TAG never changes and is never used again.
* ``Message`` says to which network a statement is made, by whom, and carries a nonce, so that
  two equal statements made on purpose differ; the same message twice counts once (MSG-3).
* The signature of ``SignedMessage`` covers the canonical encoding of ``message`` under
  ``Domain.MESSAGE``. Whoever reads one checks it first (MSG-2).

Spec: docs/spec/jobs.md, docs/spec/conventions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from identic.protocol.dispute.moves import SignedMove
from identic.protocol.encoding import encode
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Count, Digest, JobId, PartyId, Signature, StepIndex, Unsigned
from identic.protocol.job.run import RunHead
from identic.protocol.job.terms import JobTerms


class DisputeId(Digest):
    """Digest over the job, the attempt and the parts of the two parties (``game_id``)."""

    @property
    def name(self) -> str:
        """How people call the dispute: ``d-`` and six hex digits."""
        return f"d-{self.hex()[:6]}"


@dataclass(frozen=True)
class Artifacts:
    """Where the parts of a job lie: SHA-256 of blobs, to fetch them by."""

    program: Digest
    """The program's canonical encoding."""
    state: Digest
    """The initial state."""
    data: tuple[Digest, ...]
    """One blob for each data tensor, in order."""


@dataclass(frozen=True)
class Enrol:
    """The party may be drawn as a verifier from now on, as far as its balance covers the bond."""

    TAG: ClassVar[int] = 1


@dataclass(frozen=True)
class Leave:
    """The party is not drawn any more; what it already took on stays."""

    TAG: ClassVar[int] = 2


@dataclass(frozen=True)
class SubmitJob:
    """Posts a job; the escrow is taken from the submitter's balance."""

    TAG: ClassVar[int] = 3
    terms: JobTerms
    artifacts: Artifacts


@dataclass(frozen=True)
class CancelJob:
    """The submitter takes back a job that nobody holds."""

    TAG: ClassVar[int] = 4
    job: JobId


@dataclass(frozen=True)
class AcceptJob:
    """The sender takes the job as its solver; the bond is locked."""

    TAG: ClassVar[int] = 5
    job: JobId
    attempt: Count
    """Number of the attempt that begins, from 1, as the board shows it."""


@dataclass(frozen=True)
class Mark:
    """The state at one mark, with the loss opened from it."""

    step: StepIndex
    """Steps done."""
    state_root: Digest
    loss: Unsigned
    """Bits of the float32 loss of the last step, in the low 32 bits."""
    path: tuple[Digest, ...]
    """Inclusion path of the loss, the last leaf of the state's tree (COM rules)."""


@dataclass(frozen=True)
class Commit:
    """The solver extends its run log."""

    TAG: ClassVar[int] = 6
    job: JobId
    attempt: Count
    first_mark: Count
    """Index of the first mark given; one more than the last mark committed before."""
    marks: tuple[Mark, ...]
    """1 to 2,048 marks in order."""
    head: RunHead
    """The run log with these marks."""


@dataclass(frozen=True)
class Stored:
    """The solver has put the state of a mark into the blob store."""

    TAG: ClassVar[int] = 7
    job: JobId
    attempt: Count
    mark: Count
    blob: Digest
    """SHA-256 of the stored state."""


@dataclass(frozen=True)
class Finish:
    """The solver is done; the result is the state at the last mark."""

    TAG: ClassVar[int] = 8
    job: JobId
    attempt: Count
    head: RunHead
    """The finished run log."""
    model: Digest
    """SHA-256 of the model file."""
    state: Digest
    """SHA-256 of the stored final state."""


@dataclass(frozen=True)
class Abandon:
    """The solver gives the job up: late at once."""

    TAG: ClassVar[int] = 9
    job: JobId
    attempt: Count


@dataclass(frozen=True)
class Verdict:
    """What a verifier found. Hidden behind its digest until all verdicts are given."""

    job: JobId
    attempt: Count
    party: PartyId
    head: RunHead
    """The run log that the verifier computed itself."""
    agrees: bool
    """Whether that is the solver's."""
    salt: Digest
    """Random; keeps the verdict from being guessed from its digest."""


@dataclass(frozen=True)
class CommitVerdict:
    """A verifier fixes its verdict without telling it."""

    TAG: ClassVar[int] = 10
    job: JobId
    attempt: Count
    digest: Digest
    """``verdict_digest`` of the verdict."""


@dataclass(frozen=True)
class RevealVerdict:
    """A verifier tells the verdict that it fixed, after the beacon."""

    TAG: ClassVar[int] = 11
    job: JobId
    attempt: Count
    head: RunHead
    agrees: bool
    salt: Digest
    work: Digest
    """``work_digest`` of the verifier and its trace root of the beacon's step."""


@dataclass(frozen=True)
class Challenge:
    """The sender claims another state than the solver at a mark, the first on which they differ.

    Everything before that mark it claims as the solver does. Its bond is locked.
    """

    TAG: ClassVar[int] = 12
    job: JobId
    attempt: Count
    mark: Count
    """A mark that the solver has committed to, at least 1."""
    root: Digest
    """State root there."""


@dataclass(frozen=True)
class DisputeMove:
    """A move of a dispute."""

    TAG: ClassVar[int] = 13
    dispute: DisputeId
    move: SignedMove
    """Signed by itself as well, for the transcript (DSP-14)."""


@dataclass(frozen=True)
class Ask:
    """The sender wants a stored state that the blob store cannot give any more."""

    TAG: ClassVar[int] = 15
    job: JobId
    attempt: Count
    mark: Count
    """A mark whose state the solver has stored."""


@dataclass(frozen=True)
class Served:
    """The solver has stored the state again that was asked for."""

    TAG: ClassVar[int] = 16
    job: JobId
    attempt: Count
    mark: Count


@dataclass(frozen=True)
class CannotTell:
    """A verifier gives its seat back: its data or its machine are not sound."""

    TAG: ClassVar[int] = 17
    job: JobId
    attempt: Count


@dataclass(frozen=True)
class CallTime:
    """Anyone may point out that a clock has run down."""

    TAG: ClassVar[int] = 14
    subject: Digest
    """A job or a dispute."""


JobStatement = (
    AcceptJob
    | CancelJob
    | Commit
    | Stored
    | Finish
    | Abandon
    | CommitVerdict
    | RevealVerdict
    | Challenge
    | Ask
    | Served
    | CannotTell
)
"""Statements about a job that exists; each has a field ``job``."""

Statement = (
    Enrol
    | Leave
    | SubmitJob
    | CancelJob
    | AcceptJob
    | Commit
    | Stored
    | Finish
    | Abandon
    | CommitVerdict
    | RevealVerdict
    | Challenge
    | Ask
    | Served
    | CannotTell
    | DisputeMove
    | CallTime
)


@dataclass(frozen=True)
class Message:
    """A statement with its sender and address."""

    network: PartyId
    """Identity of the coordinator that the message is for."""
    party: PartyId
    """The sender, whose key signs."""
    nonce: Unsigned
    """Any value that the sender has not used with the same statement."""
    statement: Statement


@dataclass(frozen=True)
class SignedMessage:
    """A message with the sender's signature over its canonical encoding."""

    TAG: ClassVar[int] = 1
    message: Message
    signature: Signature


def message_digest(message: Message) -> Digest:
    """Name of a message; a log holds each at most once (MSG-3)."""
    return tagged(Domain.MESSAGE, encode(message))


@dataclass(frozen=True)
class GameName:
    """What names a dispute: two parties meet once in a contest for the same bonds."""

    job: JobId
    attempt: Count
    defender: Digest
    """The digest of its challenge; of a party that vouches for the run, its identity."""
    challenger: Digest
    """Likewise."""


def game_id(job: JobId, attempt: int, defender: Digest, challenger: Digest) -> DisputeId:
    """Name of the dispute between two parties of a contest (JOB-23)."""
    name = GameName(job, Count(attempt), defender, challenger)
    return DisputeId(tagged(Domain.DISPUTE, encode(name)))


def verdict_digest(verdict: Verdict) -> Digest:
    """What a verifier commits to (JOB-14)."""
    return tagged(Domain.VERDICT, encode(verdict))


def work_digest(party: PartyId, trace_root: Digest) -> Digest:
    """A trace root bound to whoever computed it, so that copying another's earns nothing."""
    return tagged(Domain.WORK, party + trace_root)
