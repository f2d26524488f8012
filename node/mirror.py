"""A coordinator's board as a reader of its log sees it, checked entry by entry.

Every role that acts on jobs keeps one: it applies the same function as the coordinator, so it
knows the same board, and notices a coordinator that breaks its own rules.
"""

from __future__ import annotations

from identic.node.coordinator import board as boards
from identic.node.coordinator.board import Board, Plans
from identic.proofs.merkle import IncrementalTree
from identic.protocol.encoding import decode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import leaf_hash
from identic.protocol.ids import Digest, PartyId
from identic.protocol.job.entries import LogEntry


class Mirror:
    """The board after the entries taken so far.

    Attributes:
        board: what the log says so far.
    """

    def __init__(self, network: PartyId, plans: Plans) -> None:
        """Start with an empty log.

        Args:
            network: identity of the coordinator.
            plans: unrolled programs; asked when a dispute opens.
        """
        self.board = Board(network)
        self._plans = plans
        self._tree = IncrementalTree()

    @property
    def size(self) -> int:
        """Entries taken so far; the index of the next one."""
        return self._tree.size

    @property
    def root(self) -> Digest:
        """Root over the entries taken so far, to compare with signed heads."""
        return self._tree.root

    def take(self, data: bytes) -> LogEntry:
        """Check and apply the next entry; a refused one changes nothing and can be retried.

        Raises:
            ProtocolError: the coordinator breaks a rule, or ``plans`` lacks a program.
        """
        entry = decode(LogEntry, data)
        # JOB-4: entries come in order, without gaps.
        if entry.index != self.size:
            raise ProtocolError("JOB-4", Code.MISMATCH, got=f"entry {entry.index}", want=self.size)
        self.board = boards.apply(self.board, entry, self.root, self._plans)
        self._tree.append(leaf_hash(data))
        return entry
