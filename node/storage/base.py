"""What a node remembers across restarts: an append-only log, and values by name.

A storage is synchronous and safe to use from several threads; a caller in an event loop hands a
slow call to a thread. What a method has returned from has reached the disk.

Invariants:

* entries have indexes from zero without gaps, never change and are never removed;
* no two entries have the same key (MSG-3);
* a call either takes effect as a whole or not at all, also when the process dies in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from identic.protocol.ids import Digest


@dataclass(frozen=True)
class Appended:
    """Where an entry is.

    Attributes:
        index: zero-based position in the log.
        new: False when an entry with this key was there before; nothing was written then.
    """

    index: int
    new: bool


class Storage(Protocol):
    """The interface; every method raises ``LocalError`` when the disk does not do its part."""

    def append(self, entry: bytes, key: Digest) -> Appended:
        """Append an entry, unless one with this key is there."""

    def find(self, key: Digest) -> int | None:
        """Return the index of the entry with a key."""

    def read(self, start: int, limit: int) -> Sequence[bytes]:
        """Return up to ``limit`` entries from index ``start`` on, in order."""

    def size(self) -> int:
        """Return the number of entries."""

    def get(self, space: str, name: bytes) -> bytes | None:
        """Return the value of a name in a space."""

    def put(self, space: str, name: bytes, value: bytes | None) -> None:
        """Set a value, or with None remove it."""

    def items(self, space: str) -> Sequence[tuple[bytes, bytes]]:
        """Return the names and values of a space, ordered by name."""

    def close(self) -> None:
        """Let go of the files; the storage cannot be used afterwards."""
