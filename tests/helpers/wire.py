"""The village's coordinator behind its real services: gRPC over TLS on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from identic.node.coordinator.service import Coordinator
from identic.node.identity import Identity
from identic.node.peers import Peers
from identic.node.rpc.client import Connection
from identic.node.rpc.handlers import Handlers
from identic.node.rpc.remote import Remote
from identic.node.rpc.server import COORDINATOR_SERVICES, Server
from tests.node.coordinator.village import Village


@asynccontextmanager
async def served(village: Village, folder: Path) -> AsyncIterator[Remote]:
    """Serve the village's host; yields the connection of a peer that the coordinator knows.

    A peer may carry messages of others, so one connection is enough for all parties.
    """
    hub, peer = (Identity.create(folder / name, name) for name in ("hub", "peer"))
    (folder / "peers").mkdir()
    (folder / "peers" / "peer.card").write_text(peer.card.text)
    coordinator = Coordinator(village.host, village.clock)
    handlers = Handlers(
        log=coordinator, jobs=coordinator, disputes=coordinator, blobs=village.blobs
    )
    peers = Peers(folder / "peers", [hub.card])
    server = await Server.start("127.0.0.1:0", hub, peers, handlers, services=COORDINATOR_SERVICES)
    try:
        async with Connection(server.address, peer, hub.card) as connection:
            yield Remote(connection)
    finally:
        await server.stop(0)
        await coordinator.close()
