"""What a party knows of the network: the coordinator's board, rebuilt from the log.

The coordinator is not asked how a job stands. Every party applies the same entries with the
same function, referee included, and so notices a coordinator that breaks the rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from identic.node.blobs import Blobs
from identic.node.coordinator.board import Board, apply
from identic.node.coordinator.cases import Case
from identic.node.coordinator.programs import Programs
from identic.node.execution.playing import GameRecord, PlayedMove
from identic.proofs.arbiter import party_of
from identic.proofs.merkle import IncrementalTree
from identic.protocol.dispute.moves import Side
from identic.protocol.encoding import decode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import leaf_hash
from identic.protocol.ids import Digest, JobId, PartyId
from identic.protocol.job.entries import LogEntry
from identic.protocol.job.messages import DisputeId, SignedMessage, SubmitJob
from identic.protocol.job.state import Job
from identic.protocol.program.validate import Limits


class Replica:
    """The board after the entries applied so far."""

    def __init__(self, network: PartyId, blobs: Blobs) -> None:
        """Start with nothing.

        Args:
            network: identity of the coordinator.
            blobs: local store; programs of posted jobs must be in it before their entries.
        """
        self.board = Board(network)
        self._tree = IncrementalTree()
        self._programs = Programs(blobs, Limits())

    @property
    def size(self) -> int:
        """Entries applied."""
        return self._tree.size

    @property
    def jobs(self) -> Mapping[JobId, Job]:
        """Every job by its id."""
        return self.board.jobs

    @property
    def disputes(self) -> Mapping[DisputeId, Case]:
        """Every dispute by its id."""
        return self.board.cases

    def apply(self, index: int, encoded: bytes) -> LogEntry:
        """Apply the next entry of the log.

        Raises:
            ProtocolError: the entry is not the next one, not signed by its sender, or not
                allowed: the coordinator is wrong.
        """
        entry = decode(LogEntry, encoded)
        # JOB-4: entries are applied in order, each once.
        if index != self.size or entry.index != index:
            raise ProtocolError(
                "JOB-4", Code.MISMATCH, got=f"entry {entry.index}", want=f"entry {self.size}"
            )
        self.board = apply(self.board, entry, self._tree.root, self._programs.plan)
        self._tree.append(leaf_hash(encoded))
        return entry


def program_of(encoded: bytes) -> Digest | None:
    """Blob of the program that an entry's application needs, if the entry posts a job."""
    event = decode(LogEntry, encoded).event
    if isinstance(event, SignedMessage) and isinstance(event.message.statement, SubmitJob):
        return event.message.statement.artifacts.program
    return None


def side_of(case: Case, party: PartyId) -> Side | None:
    """The side that ``party`` plays in a dispute, if any."""
    setup = case.dispute.setup
    return next((side for side in Side if party_of(setup, side) == party), None)


def record_of(case: Case) -> GameRecord:
    """A dispute's record, for a worker."""
    setup = case.dispute.setup
    sides = {party_of(setup, side): side for side in Side}
    moves = tuple(PlayedMove(m.at, sides[m.move.body.party], m.move.body.move) for m in case.moves)
    return GameRecord(setup.opening, moves)
