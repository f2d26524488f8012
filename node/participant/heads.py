"""Heads of the coordinator's log that this node has seen signed, against a rewritten history.

A head is kept across restarts. The log that is read later must lead to it: a coordinator that
takes an entry back, or tells two parties different logs, is noticed by whoever kept a head.

Spec: docs/spec/commitments.md (COM-8).
"""

from __future__ import annotations

from identic.node.mirror import Mirror
from identic.node.storage.base import Storage
from identic.node.views import SignedHead
from identic.proofs.signatures import verify
from identic.protocol.encoding import decode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import Digest, PartyId, Signature
from identic.protocol.job.entries import LogHead

SPACE = "heads"
"""Space of the storage that holds the last head of each network."""


class Heads:
    """What the log must lead to.

    Args:
        storage: keeps the largest head.
        network: the coordinator.
    """

    def __init__(self, storage: Storage, network: PartyId) -> None:
        self._storage = storage
        self._network = network
        self._wanted: dict[int, Digest] = {}
        kept = storage.get(SPACE, bytes(network))
        self._kept = None if kept is None else decode(LogHead, kept)
        self._newest: tuple[LogHead, bytes] | None = None
        if self._kept is not None:
            self._wanted[self._kept.size] = self._kept.root

    def expect(self, signed: SignedHead, mirror: Mirror) -> LogHead:
        """Check a head's signature, and hold the log to it from now on.

        Raises:
            ProtocolError: COM-9, the coordinator did not sign it; COM-8, the log has shrunk or
                does not lead to it.
        """
        head = decode(LogHead, signed.head)
        verify(self._network, Domain.LOG, head, Signature(signed.signature))
        # COM-8: a log only grows.
        if self._kept is not None and head.size < self._kept.size:
            raise ProtocolError(
                "COM-8",
                Code.MISMATCH,
                got=f"a log of {head.size}",
                want=f"{self._kept.size} or more",
            )
        if self._newest is None or head.size > self._newest[0].size:
            self._newest = (head, signed.head)
        if head.size >= mirror.size:
            self._wanted[head.size] = head.root
            self.compare(mirror.size, mirror.root)
        return head

    def compare(self, size: int, root: Digest) -> None:
        """Compare the log of ``size`` entries with the head of that size, if there was one.

        Raises:
            ProtocolError: COM-8, it is another log.
        """
        want = self._wanted.pop(size, None)
        # COM-8: the log that is read is the one whose head was signed.
        if want is not None and want != root:
            raise ProtocolError(
                "COM-8", Code.MISMATCH, got=f"root {root} of {size} entries", want=want
            )
        if self._newest is not None and size == self._newest[0].size:
            self.keep()

    def keep(self) -> None:
        """Remember the newest head that the log has led to."""
        if self._newest is None:
            return
        head, encoded = self._newest
        if head.size not in self._wanted and (self._kept is None or head.size > self._kept.size):
            self._storage.put(SPACE, bytes(self._network), encoded)
            self._kept = head
