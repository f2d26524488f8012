"""Identities, and a coordinator's server with an in-memory log, for the tests of the node."""

# ruff: noqa: ARG002 - a handler has the arguments of its interface

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from identic.node.blobs import Blobs
from identic.node.identity import Card, Identity
from identic.node.peers import Peers
from identic.node.rpc.client import Connection
from identic.node.rpc.handlers import Handlers
from identic.node.rpc.options import DEFAULT_KEEPALIVE, Keepalive
from identic.node.rpc.remote import Remote
from identic.node.rpc.server import COORDINATOR_SERVICES, Server
from identic.node.views import Consistency, Inclusion, SignedHead
from identic.protocol.errors import Code, IllegalMove, LocalError, ProtocolError
from identic.protocol.ids import Digest, PartyId


@dataclass
class MemoryLog:
    """A log in memory that judges nothing, but refuses on request."""

    entries: list[bytes] = field(default_factory=list)
    callers: list[PartyId] = field(default_factory=list)
    grown: asyncio.Condition = field(default_factory=asyncio.Condition)
    watching: int = 0

    async def append(self, peer: PartyId, message: bytes) -> int:
        self.callers.append(peer)
        refusals: dict[bytes, Exception] = {
            b"refuse": ProtocolError("JOB-1", Code.INSUFFICIENT, got="3 – three", want="7 ≥ 7"),
            b"illegal": IllegalMove("DSP-1", got="a move", want="patience"),
            b"local": LocalError("the disk is full", remedy="buy another"),
            b"fault": ZeroDivisionError("inner secret"),
        }
        if message in refusals:
            raise refusals[message]
        async with self.grown:
            self.entries.append(message)
            self.grown.notify_all()
        return len(self.entries) - 1

    async def watch(self, peer: PartyId, from_index: int) -> AsyncIterator[tuple[int, bytes]]:
        self.callers.append(peer)
        await self._watchers(1)
        at = from_index
        try:
            while True:
                async with self.grown:
                    while len(self.entries) <= at:
                        await self.grown.wait()
                yield at, self.entries[at]
                at += 1
        finally:
            await self._watchers(-1)

    async def _watchers(self, change: int) -> None:
        async with self.grown:
            self.watching += change
            self.grown.notify_all()

    async def head(self, peer: PartyId) -> SignedHead:
        return SignedHead(b"head", bytes(64), peer)

    async def inclusion(self, peer: PartyId, index: int, size: int) -> Inclusion:
        return Inclusion(size, self.entries[index], (Digest(bytes(32)),))

    async def consistency(self, peer: PartyId, first: int, second: int) -> Consistency:
        return Consistency(second, ())


@dataclass
class Site:
    """A running server with what stands behind it."""

    identity: Identity
    folder: Path
    log: MemoryLog
    blobs: Blobs
    handlers: Handlers
    server: Server

    def know(self, identity: Identity) -> None:
        """Put a card into the server's folder of peers."""
        card = identity.card
        (self.folder / "peers" / f"{card.party.hex()}.card").write_text(card.text)

    def remote(
        self,
        identity: Identity,
        peer: Card | None = None,
        keepalive: Keepalive = DEFAULT_KEEPALIVE,
    ) -> Remote:
        """Prepare a connection to the server."""
        peer = peer or self.identity.card
        return Remote(Connection(self.server.address, identity, peer, keepalive))


@asynccontextmanager
async def running_site(
    folder: Path,
    identity: Identity,
    services: Sequence[str] = COORDINATOR_SERVICES,
    keepalive: Keepalive = DEFAULT_KEEPALIVE,
) -> AsyncIterator[Site]:
    """Run a server with every service."""
    (folder / "peers").mkdir(parents=True)
    log, blobs = MemoryLog(), Blobs(folder / "blobs", 64 << 20)
    handlers = Handlers(log=log, blobs=blobs)
    peers = Peers(folder / "peers", [identity.card])
    server = await Server.start(
        "127.0.0.1:0", identity, peers, handlers, services=services, keepalive=keepalive
    )
    try:
        yield Site(identity, folder, log, blobs, handlers, server)
    finally:
        await server.stop(0)


@pytest.fixture(scope="session")
def identity_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the identities lie, each in a folder of its name."""
    return tmp_path_factory.mktemp("identities")


@pytest.fixture(scope="session")
def identities(identity_root: Path) -> list[Identity]:
    """Three identities: a coordinator and two others."""
    return [Identity.create(identity_root / name, name) for name in ("hub", "ada", "bob")]


@pytest.fixture
async def site(tmp_path: Path, identities: list[Identity]) -> AsyncIterator[Site]:
    """A coordinator's server that knows ``ada`` and not ``bob``."""
    async with running_site(tmp_path / "site", identities[0]) as running:
        running.know(identities[1])
        yield running


@pytest.fixture
async def remote(site: Site, identities: list[Identity]) -> AsyncIterator[Remote]:
    """A connection of ``ada`` to the coordinator."""
    remote = site.remote(identities[1])
    async with remote.connection:
        yield remote
