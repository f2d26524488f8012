"""What a role is to the daemon, and what the daemon lends to a role.

A role is made anew by its factory each time it starts; what must outlast that lies in the
storage. A role fails by raising; the daemon logs it, shows it in the status and starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from identic.node.blobs import Blobs
from identic.node.config import Config
from identic.node.identity import Identity
from identic.node.metrics import Metrics
from identic.node.peers import Peers
from identic.node.rpc.handlers import Handlers
from identic.node.rpc.remote import Remote
from identic.node.storage.base import Storage
from identic.protocol.errors import LocalError


@dataclass(frozen=True)
class Context:
    """What the roles of one node share.

    Attributes:
        config: the settings.
        identity: the node's keys.
        peers: who may connect.
        storage: the log and named values; a role uses a space of its own name.
        blobs: the local blob store.
        handlers: what answers calls; a coordinator puts itself there in ``start``.
        metrics: the node's numbers.
        coordinator: the connection to the coordinator, or None where none is configured.
    """

    config: Config
    identity: Identity
    peers: Peers
    storage: Storage
    blobs: Blobs
    handlers: Handlers
    metrics: Metrics
    coordinator: Remote | None

    @property
    def remote(self) -> Remote:
        """The coordinator, for a role that cannot do without.

        Raises:
            LocalError: none is configured.
        """
        if self.coordinator is None:
            raise LocalError(
                "no coordinator is configured",
                remedy="set network.coordinator and network.card",
            )
        return self.coordinator


class Role(Protocol):
    """One thing a node does."""

    async def start(self) -> None:
        """Get ready; the role counts as running when this returns."""

    async def run(self) -> None:
        """Work until cancelled."""

    async def stop(self) -> None:
        """Let go of everything; called once, also after a failed ``start``."""

    def status(self) -> Mapping[str, str]:
        """Tell how things are, as words for a screen."""


Factory = Callable[[Context], Role]
