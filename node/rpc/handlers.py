"""What stands behind the services: values in, values out, no protobuf.

A handler is told who calls: ``peer`` is the identity that the TLS handshake established. Who
signed a message is another matter, which the handler checks itself (MSG-2). A handler refuses
with ``ProtocolError`` or ``LocalError``, which the caller gets as they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from identic.node.blobs import Blobs
from identic.node.views import (
    Consistency,
    DisputeDetail,
    DisputeSummary,
    Inclusion,
    JobDetail,
    JobSummary,
    NodeStatus,
    Progress,
    SignedHead,
)
from identic.protocol.ids import Digest, PartyId


class JobHandler(Protocol):
    """Behind JobService."""

    async def submit_job(self, peer: PartyId, message: bytes) -> tuple[Digest, int]:
        """Judge and append a posting; return the job's id and the index of the entry."""

    async def list_jobs(self, peer: PartyId, limit: int, phase: str) -> Sequence[JobSummary]:
        """Return at most ``limit`` jobs, newest first, in one phase or, with "", in any."""

    async def get_job(self, peer: PartyId, job: Digest) -> JobDetail:
        """Return all about one job."""

    async def report_progress(self, peer: PartyId, progress: Progress) -> None:
        """Keep the last report of a party."""


class LogHandler(Protocol):
    """Behind LogService."""

    async def append(self, peer: PartyId, message: bytes) -> int:
        """Judge and append a signed message; return its index, the old one when repeated."""

    def watch(self, peer: PartyId, from_index: int) -> AsyncIterator[tuple[int, bytes]]:
        """Yield index and encoding of every entry from an index on, without an end."""

    async def head(self, peer: PartyId) -> SignedHead:
        """Return the newest signed head."""

    async def inclusion(self, peer: PartyId, index: int, size: int) -> Inclusion:
        """Return an entry with its path in the log of a size, 0 for the present one."""

    async def consistency(self, peer: PartyId, first: int, second: int) -> Consistency:
        """Return the proof from one size to another, 0 for the present one."""


class DisputeHandler(Protocol):
    """Behind DisputeService."""

    async def submit_move(self, peer: PartyId, message: bytes) -> int:
        """Judge and append a move; return the index of the entry."""

    async def get_dispute(self, peer: PartyId, dispute: Digest) -> DisputeDetail:
        """Return all about one dispute."""

    async def list_disputes(
        self, peer: PartyId, job: Digest | None, limit: int, *, open_only: bool
    ) -> Sequence[DisputeSummary]:
        """Return at most ``limit`` disputes, newest first."""


class NodeHandler(Protocol):
    """Behind NodeService."""

    async def status(self, peer: PartyId) -> NodeStatus:
        """Tell how the node fares."""


@dataclass
class Handlers:
    """Who answers at present. None: that part of the node is not up, callers are told so.

    The services stay registered while the process runs; a role that starts again puts its new
    handler in place of the old.
    """

    node: NodeHandler | None = None
    jobs: JobHandler | None = None
    log: LogHandler | None = None
    disputes: DisputeHandler | None = None
    blobs: Blobs | None = None
