"""What screens show about jobs, disputes and nodes: plain values that bind nobody.

The fields have the names of the messages in ``proto/identic/v1``, where each is described;
``node/rpc/convert.py`` carries them over the wire. Times are Unix milliseconds, money is
millionths of a credit, an absent party or digest is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from identic.protocol.ids import Digest, PartyId


@dataclass(frozen=True)
class JobSummary:
    """One line of the job board."""

    job_id: Digest
    phase: str
    submitter: PartyId
    steps: int
    posted_ms: int
    solver: PartyId | None = None
    committed_step: int = 0
    attempt: int = 1
    verdicts: int = 0
    verdicts_wanted: int = 0
    escrow: int = 0
    deadline_ms: int = 0


@dataclass(frozen=True)
class Progress:
    """What a party reports about its own work on a job."""

    job_id: Digest
    role: str
    step: int
    loss: float | None = None
    rate: float = 0.0
    activity: str = ""


@dataclass(frozen=True)
class PartyProgress:
    """A party's last report as the coordinator keeps it."""

    party: PartyId
    role: str
    step: int
    loss: float | None
    rate: float
    activity: str
    reported_ms: int


@dataclass(frozen=True)
class LossPoint:
    """The loss of one step, for a curve."""

    step: int
    loss: float


@dataclass(frozen=True)
class JobDetail:
    """All about one job."""

    summary: JobSummary
    terms: bytes
    parties: tuple[PartyProgress, ...] = ()
    losses: tuple[LossPoint, ...] = ()
    dispute_ids: tuple[Digest, ...] = ()
    log_indexes: tuple[int, ...] = ()


@dataclass(frozen=True)
class DisputeSummary:
    """One line of the list of disputes."""

    dispute_id: Digest
    job_id: Digest
    defender: PartyId
    challenger: PartyId
    phase: str
    level: str
    moves: int
    bytes_exchanged: int
    opened_ms: int
    deadline_ms: int = 0
    verdict: str = ""
    rule: str = ""
    loser: PartyId | None = None


@dataclass(frozen=True)
class DisputeDetail:
    """All about one dispute."""

    summary: DisputeSummary
    log_indexes: tuple[int, ...] = ()
    transcript: Digest | None = None


@dataclass(frozen=True)
class SignedHead:
    """The coordinator's claim about its log, with the signature over ``head``."""

    head: bytes
    signature: bytes
    party: PartyId


@dataclass(frozen=True)
class Inclusion:
    """An entry with the sibling hashes up to the root of the log of ``size`` entries."""

    size: int
    entry: bytes
    path: tuple[Digest, ...]


@dataclass(frozen=True)
class Consistency:
    """Hashes showing that a log began as an earlier one."""

    second_size: int
    path: tuple[Digest, ...]


class RoleState(IntEnum):
    """How a role fares; the numbers of the wire."""

    STARTING = 1
    RUNNING = 2
    WAITING = 3
    STOPPED = 4


@dataclass(frozen=True)
class RoleStatus:
    """What a node says about one of its roles."""

    name: str
    state: RoleState
    restarts: int = 0
    last_error: str = ""
    last_error_ms: int = 0
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeStatus:
    """What a node says about itself."""

    party: PartyId
    name: str
    version: str
    kernel_set: int
    started_ms: int
    now_ms: int
    roles: tuple[RoleStatus, ...]
    memory_limit_bytes: int
    memory_used_bytes: int
    disk_limit_bytes: int
    disk_free_bytes: int
    blob_bytes: int
    known_peers: int
