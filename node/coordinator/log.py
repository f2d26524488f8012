"""The log over the storage: its tree, its signed heads and its proofs.

Spec: docs/spec/commitments.md (COM-7, COM-8), docs/spec/jobs.md (JOB-4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from identic.node.storage.base import Storage
from identic.node.views import Consistency, Inclusion, SignedHead
from identic.proofs import merkle
from identic.proofs.signatures import SigningKey, sign
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, LocalError, ProtocolError
from identic.protocol.hashing import Domain, leaf_hash
from identic.protocol.ids import Count, Digest, Millis
from identic.protocol.job.entries import LogEntry, LogHead

BATCH = 256
"""Entries read at once."""


class Log:
    """The entries, in the order of their indexes."""

    def __init__(self, storage: Storage, key: SigningKey) -> None:
        self._storage = storage
        self._key = key
        self._hashes: list[Digest] = []
        self._tree = merkle.IncrementalTree()

    @property
    def size(self) -> int:
        """Entries in the tree."""
        return len(self._hashes)

    @property
    def root(self) -> Digest:
        """Root over all entries."""
        return self._tree.root

    def replay(self) -> Iterator[LogEntry]:
        """Yield the stored entries; each joins the tree after it was yielded.

        Raises:
            LocalError: the storage holds something that is no entry of this log.
        """
        while batch := self._storage.read(self.size, BATCH):
            for data in batch:
                try:
                    entry = decode(LogEntry, data)
                except ProtocolError as error:
                    raise _damaged(self.size, str(error)) from error
                if entry.index != self.size:
                    raise _damaged(self.size, f"it says it is entry {entry.index}")
                yield entry
                self._grow(data)

    def append(self, entry: LogEntry, key: Digest) -> None:
        """Store an entry; it has reached the disk when this returns."""
        data = encode(entry)
        stored = self._storage.append(data, key)
        if not stored.new or stored.index != self.size:
            raise _damaged(stored.index, "another process writes to the log")
        self._grow(data)

    def find(self, key: Digest) -> int | None:
        """Index of the entry with a key."""
        return self._storage.find(key)

    def read(self, start: int, limit: int = BATCH) -> Sequence[bytes]:
        """Entries from an index on, encoded."""
        return self._storage.read(start, limit)

    def head(self, at: Millis) -> SignedHead:
        """The log as it is, signed."""
        head = LogHead(Count(self.size), self.root, at)
        signature = sign(self._key, Domain.LOG, head)
        return SignedHead(encode(head), bytes(signature), self._key.party)

    def inclusion(self, index: int, size: int) -> Inclusion:
        """An entry and its path in the log of ``size`` entries; 0 for the present size."""
        size = self._sized(size)
        # JOB-4: what is asked about is in the log.
        if not 0 <= index < size:
            raise ProtocolError("JOB-4", Code.OUT_OF_RANGE, got=f"entry {index}", want=f"< {size}")
        (entry,) = self._storage.read(index, 1)
        return Inclusion(size, entry, merkle.path(self._hashes[:size], index))

    def consistency(self, first: int, second: int) -> Consistency:
        """Proof that the log of ``first`` entries begins that of ``second``; 0 for the present."""
        second = self._sized(second)
        # JOB-4: a proof leads from a smaller log to a larger one.
        if not 0 <= first <= second:
            raise ProtocolError(
                "JOB-4", Code.OUT_OF_RANGE, got=f"size {first}", want=f"at most {second}"
            )
        path = merkle.consistency(self._hashes[:second], first) if first else ()
        return Consistency(second, path)

    def _sized(self, size: int) -> int:
        if size > self.size:
            raise ProtocolError(
                "JOB-4", Code.OUT_OF_RANGE, got=f"size {size}", want=f"at most {self.size}"
            )
        return size or self.size

    def _grow(self, data: bytes) -> None:
        leaf = leaf_hash(data)
        self._hashes.append(leaf)
        self._tree.append(leaf)


def _damaged(index: int, why: str) -> LocalError:
    return LocalError(
        f"entry {index} of the log cannot be used: {why}",
        remedy="restore data_dir from a copy; the log must not be changed",
    )
