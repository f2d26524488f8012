"""A shelf: what was computed, kept as long as there is room, by when it was last of use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """Keeps values up to a total of bytes; the newest one in any case."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._used = 0

    @property
    def used_bytes(self) -> int:
        """Bytes of all that is kept."""
        return self._used

    def __iter__(self) -> Iterator[K]:
        """Names of what is kept, least recently used first."""
        return iter(tuple(self._kept))

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def get(self, key: K) -> V | None:
        """What is kept under a name; it counts as used."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: K, value: V, nbytes: int) -> V:
        """Keep a value; what was not used for longest makes room for it."""
        if key in self._kept:
            self._used -= self._kept.pop(key)[1]
        self._kept[key] = (value, nbytes)
        self._used += nbytes
        while self._used > self.room_bytes and len(self._kept) > 1:
            _, (_, freed) = self._kept.popitem(last=False)
            self._used -= freed
        return value
