"""When the coordinator was last at work, across restarts, so that its absence is known exactly.

The time is kept in the storage about each second. It need not be exact: what is lost with the
last beat counts as time in which the coordinator was at work.

Spec: docs/spec/jobs.md (JOB-27).
"""

from __future__ import annotations

from typing import Final

from identic.node.storage.base import Storage

SPACE: Final = "heart"
"""Space of the storage that holds the time."""

BEAT_MS: Final = 1_000
"""Least time between two beats that are stored, in milliseconds."""

FROZEN_MS: Final = 5_000
"""Longest time without a beat that counts as work, in milliseconds."""


class Heart:
    """The last time at which the coordinator was at work.

    Attributes:
        last: Unix time in milliseconds; 0 when it never was.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        kept = storage.get(SPACE, b"")
        self.last = int.from_bytes(kept or b"", "big")
        self._kept = self.last

    def beat(self, now: int, *, keep: bool) -> None:
        """Note that the coordinator is at work at Unix time ``now`` (ms).

        Args:
            now: the time.
            keep: whether anybody's clock runs, so that it must outlast a restart.

        Raises:
            LocalError: the disk does not do its part.
        """
        self.last = max(now, self.last)
        if keep and self.last >= self._kept + BEAT_MS:
            self._storage.put(SPACE, b"", self.last.to_bytes(8, "big"))
            self._kept = self.last
