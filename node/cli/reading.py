"""The board as this client computes it from the coordinator's log.

The coordinator is believed in nothing that the log can show: every entry is applied by the
same rules, every ruling is found again, and the signed head must be the root over the
entries that were received.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from identic.node.blobs import Blobs
from identic.node.coordinator.board import Board
from identic.node.coordinator.programs import Programs
from identic.node.mirror import Mirror
from identic.node.rpc.remote import Remote
from identic.proofs.signatures import verify
from identic.protocol.encoding import decode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import JobId, PartyId, Signature
from identic.protocol.job.entries import DisputeOpened, LogEntry, LogHead, Ruled
from identic.protocol.job.messages import DisputeId
from identic.protocol.job.state import Job
from identic.protocol.program.codec import MAX_PROGRAM_BYTES
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.validate import Limits
from identic.protocol.settlement.ledger import Transaction


@dataclass(frozen=True)
class Dispute:
    """What is remembered about a dispute besides its case.

    Attributes:
        roles: of the defender and of the challenger when it was opened.
        payments: money that the ruling moved.
    """

    roles: tuple[str, str]
    payments: tuple[Transaction, ...] = ()


class LogReader:
    """Board, log and disputes as far as the log was read.

    Attributes:
        disputes: what is remembered about each dispute.
    """

    def __init__(self, remote: Remote, blobs: Blobs) -> None:
        """Start with nothing.

        Args:
            remote: the coordinator.
            blobs: where programs are kept that disputes need.
        """
        self._remote = remote
        self._blobs = blobs
        self._programs = Programs(blobs, Limits())
        self._mirror = Mirror(remote.connection.peer.party, self._programs.plan)
        self.disputes: dict[DisputeId, Dispute] = {}
        self._roles: dict[PartyId, str] = {}

    @property
    def board(self) -> Board:
        """Everything that the log says."""
        return self._mirror.board

    @property
    def size(self) -> int:
        """Entries applied so far."""
        return self._mirror.size

    async def catch_up(self) -> None:
        """Read the log up to its newest signed head.

        Raises:
            ProtocolError: an entry breaks a rule, or the head is not the root over the entries.
        """
        signed = await self._remote.log.head()
        head = decode(LogHead, signed.head)
        # COM-8: the head is signed by the coordinator, and is the root over the entries received.
        if signed.party != self.board.network:
            raise ProtocolError(
                "COM-8", Code.FORBIDDEN, got=f"a head by {signed.party}", want=self.board.network
            )
        verify(signed.party, Domain.LOG, head, Signature(signed.signature))
        if self.size < head.size:
            async for _, data in self._remote.log.watch(self.size):
                await self._take(data)
                if self.size == head.size:
                    break
        if self.size == head.size and self._mirror.root != head.root:
            raise ProtocolError("COM-8", Code.MISMATCH, got=self._mirror.root, want=head.root)

    async def follow(self) -> AsyncIterator[LogEntry]:
        """Go on with each new entry as it comes, through breaks of the connection."""
        async for _, data in self._remote.log.follow(self.size):
            yield await self._take(data)

    async def plan(self, job: Job) -> StepPlan:
        """The unrolled program of a job, fetched when it is not here."""
        program = job.artifacts.program
        await self._remote.blobs.download(self._blobs, program, MAX_PROGRAM_BYTES)
        return self._programs.plan(program, job.terms.program)

    async def _take(self, data: bytes) -> LogEntry:
        event = decode(LogEntry, data).event
        if isinstance(event, DisputeOpened):
            await self.plan(self.board.job(event.job))
        before = self.board
        entry = self._mirror.take(data)
        self._remember(getattr(event, "job", None))
        if isinstance(event, DisputeOpened):
            job = before.job(event.job)
            roles = (role_of(job, event.defender), role_of(job, event.challenger))
            self.disputes[event.dispute] = Dispute(roles)
        elif isinstance(event, Ruled):
            known = before.ledger.transactions
            moved = [t for n, t in self.board.ledger.transactions.items() if n not in known]
            roles = self.disputes[event.dispute].roles
            self.disputes[event.dispute] = Dispute(roles, tuple(moved))
        return entry

    def role(self, party: PartyId) -> str:
        """What a party was last; a solver stays one on the screen after its job was taken away."""
        return self._roles.get(party, "verifier" if party in self.board.enrolled else "")

    def _remember(self, name: JobId | None) -> None:
        known = self.board.jobs
        for job in known.values() if name is None else (known[name],):
            self._roles.setdefault(job.terms.submitter, "submitter")
            self._roles.update({seat.party: "verifier" for seat in job.verifiers})
            if job.solver is not None:
                self._roles[job.solver] = "solver"


def role_of(job: Job, party: PartyId) -> str:
    """What a party is to a job."""
    if party == job.solver:
        return "solver"
    if job.seat(party) is not None:
        return "verifier"
    return "submitter" if party == job.terms.submitter else "whistleblower"
