"""Entries of the coordinator's log: signed messages, and what the coordinator decides.

The log is the only truth: every machine and the ledger are rebuilt by applying its entries
in order. Whatever the coordinator adds follows by rule from the entries before it, so that
a reader of the log checks the coordinator as well.

Spec: docs/spec/jobs.md (JOB-4), docs/spec/commitments.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from identic.protocol.encoding import encode
from identic.protocol.hashing import leaf_hash
from identic.protocol.ids import Count, Credits, Digest, JobId, Millis, PartyId, StepIndex
from identic.protocol.job.messages import DisputeId, SignedMessage
from identic.protocol.job.run import RunHead


@dataclass(frozen=True)
class Deposit:
    """Money issued to a party; number ``n`` of the network happens once."""

    TAG: ClassVar[int] = 2
    number: Count
    party: PartyId
    amount: Credits


@dataclass(frozen=True)
class VerifiersAssigned:
    """The verifiers drawn for an attempt; their bonds are locked."""

    TAG: ClassVar[int] = 3
    job: JobId
    attempt: Count
    seed: Digest
    """Root of the log before this entry, from which the draw follows."""
    parties: tuple[PartyId, ...]


@dataclass(frozen=True)
class BeaconDrawn:
    """The step whose trace every verifier binds to its own name when it reveals."""

    TAG: ClassVar[int] = 4
    job: JobId
    attempt: Count
    seed: Digest
    """Root of the log before this entry, from which the step follows."""
    step: StepIndex


@dataclass(frozen=True)
class DisputeOpened:
    """A challenge has become a dispute; the clocks run from this entry's time."""

    TAG: ClassVar[int] = 5
    dispute: DisputeId
    job: JobId
    attempt: Count
    defender: PartyId
    challenger: PartyId
    defender_head: RunHead
    """The defender's run log, over as many marks as both claim."""
    challenger_head: RunHead
    step_ms: Millis
    """Time that the solver took for a step, by its commitments so far."""
    load: Count
    """How many games a side may have to play at once."""


class Verdicts(IntEnum):
    """How a dispute ends."""

    WRONG = 1
    LATE = 2
    CANNOT_TELL = 3


class Loser(IntEnum):
    """Which side lost."""

    NOBODY = 0
    DEFENDER = 1
    CHALLENGER = 2


@dataclass(frozen=True)
class Ruled:
    """A dispute is over."""

    TAG: ClassVar[int] = 6
    dispute: DisputeId
    job: JobId
    attempt: Count
    verdict: Verdicts
    loser: Loser
    """NOBODY exactly when the verdict is CANNOT_TELL."""
    rule: str
    """Id of the rule that decided."""
    transcript: Digest
    """SHA-256 of the transcript file."""


@dataclass(frozen=True)
class TimeCalled:
    """The clock of a job or a dispute has run down by the time of this entry."""

    TAG: ClassVar[int] = 7
    subject: Digest


@dataclass(frozen=True)
class Settled:
    """The job is paid."""

    TAG: ClassVar[int] = 8
    job: JobId
    attempt: Count
    receipt: Digest
    """SHA-256 of the receipt file."""


@dataclass(frozen=True)
class Resumed:
    """The coordinator is at work again; the clocks that ran are moved on by its absence."""

    TAG: ClassVar[int] = 9
    since: Millis
    """Unix time at which it was last at work, from the entry's before on."""


Event = (
    SignedMessage
    | Deposit
    | VerifiersAssigned
    | BeaconDrawn
    | DisputeOpened
    | Ruled
    | TimeCalled
    | Settled
    | Resumed
)


@dataclass(frozen=True)
class LogEntry:
    """One entry of the log."""

    index: Count
    """Zero-based position."""
    at: Millis
    """Unix time at which the coordinator appended it; never less than the entry's before."""
    event: Event


@dataclass(frozen=True)
class LogHead:
    """The coordinator's claim about the whole log; signed under ``Domain.LOG``."""

    size: Count
    """Entries under ``root``."""
    root: Digest
    at: Millis
    """Unix time of the signature."""


def entry_hash(entry: LogEntry) -> Digest:
    """Leaf hash of an entry in the log's tree (COM-2)."""
    return leaf_hash(encode(entry))
