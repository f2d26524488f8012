"""Whom this node accepts connections from: a folder of contact cards, read again when it changes.

* A card put into the folder counts from the next handshake on; one taken out no longer does.
* The node's own card always counts, so that its operator can ask it for its status.
* A file that holds no sound card is left out and named in ``problems``; the others still count.

Spec: docs/spec/network.md (NET-3).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from identic.node.identity import Card
from identic.protocol.errors import Code, LocalError, ProtocolError
from identic.protocol.ids import PartyId

_Signature = tuple[tuple[str, int, int], ...]


class Peers:
    """The known peers; safe to use from several threads.

    Attributes:
        folder: where the ``*.card`` files lie, or None for a fixed set.
        problems: one line for each file of the folder that holds no sound card.
    """

    def __init__(self, folder: Path | None, always: Iterable[Card]) -> None:
        self.folder = folder
        self.problems: tuple[str, ...] = ()
        self._always = tuple(always)
        self._lock = threading.Lock()
        self._seen: _Signature | None = None
        self._cards: dict[bytes, Card] = {}
        self._revision = 0
        self.refresh()

    def refresh(self) -> int:
        """Read the folder if it changed; return a number that grows with every change."""
        with self._lock:
            signature = self._stat()
            if signature != self._seen:
                self._seen = signature
                self._read(signature)
                self._revision += 1
            return self._revision

    @property
    def cards(self) -> tuple[Card, ...]:
        """Every card that counts."""
        with self._lock:
            return tuple(self._cards.values())

    @property
    def roots(self) -> bytes:
        """The certificates of all cards, PEM, as a TLS library wants them."""
        return b"".join(card.certificate for card in self.cards)

    def party(self, certificate: bytes) -> PartyId:
        """Return who presents a certificate, PEM, after the handshake.

        Raises:
            ProtocolError: NET-3, the certificate is not that of a known peer.
        """
        self.refresh()
        with self._lock:
            card = self._cards.get(certificate.strip())
        # NET-3: the certificate presented is byte for byte that of a known card.
        if card is None:
            raise ProtocolError(
                "NET-3", Code.FORBIDDEN, got="an unknown certificate", want="that of a known card"
            )
        return card.party

    def _stat(self) -> _Signature:
        if self.folder is None:
            return ()
        try:
            entries = [(path, path.stat()) for path in sorted(self.folder.glob("*.card"))]
        except FileNotFoundError:
            # A card vanished while we looked; an impossible signature makes the next look read.
            return (("", -1, -1),)
        return tuple((path.name, stat.st_mtime_ns, stat.st_size) for path, stat in entries)

    def _read(self, signature: _Signature) -> None:
        cards = list(self._always)
        problems: list[str] = []
        for name, _, size in signature:
            if self.folder is None or size < 0:
                continue
            try:
                cards.append(Card.load(self.folder / name))
            except LocalError as error:
                problems.append(str(error))
        self._cards = {card.certificate.strip(): card for card in cards}
        self.problems = tuple(problems)
