"""The gRPC server of a node: TLS on both sides, the services, health and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from identic.node.identity import Identity
from identic.node.logging import get_logger
from identic.node.metrics import Metrics
from identic.node.peers import Peers
from identic.node.rpc.gen.v1 import (
    blob_service_pb2_grpc,
    dispute_service_pb2_grpc,
    job_service_pb2_grpc,
    log_service_pb2_grpc,
    node_service_pb2_grpc,
)
from identic.node.rpc.guard import Guard
from identic.node.rpc.handlers import Handlers
from identic.node.rpc.options import (
    DEFAULT_KEEPALIVE,
    MAX_CALLS,
    MIN_PING_MS,
    Keepalive,
    common_options,
)
from identic.node.rpc.services import (
    BlobServicer,
    DisputeServicer,
    JobServicer,
    LogServicer,
    NodeServicer,
)
from identic.protocol.errors import LocalError

_PACKAGE: Final = "identic.v1"

_ADDERS: Final[dict[str, Callable[[Handlers, grpc.aio.Server], None]]] = {
    "NodeService": lambda handlers, server: node_service_pb2_grpc.add_NodeServiceServicer_to_server(
        NodeServicer(handlers), server
    ),
    "JobService": lambda handlers, server: job_service_pb2_grpc.add_JobServiceServicer_to_server(
        JobServicer(handlers), server
    ),
    "LogService": lambda handlers, server: log_service_pb2_grpc.add_LogServiceServicer_to_server(
        LogServicer(handlers), server
    ),
    "BlobService": lambda handlers, server: blob_service_pb2_grpc.add_BlobServiceServicer_to_server(
        BlobServicer(handlers), server
    ),
    "DisputeService": lambda handlers, server: (
        dispute_service_pb2_grpc.add_DisputeServiceServicer_to_server(
            DisputeServicer(handlers), server
        )
    ),
}

NODE_SERVICES: Final = ("NodeService",)
"""What every node serves."""

COORDINATOR_SERVICES: Final = tuple(_ADDERS)
"""What a coordinator serves."""


class Server:
    """A running server. Make one with ``Server.start``.

    Attributes:
        host: the address it listens on.
        port: the port, also where port 0 asked for any.
    """

    def __init__(
        self, host: str, port: int, server: grpc.aio.Server, monitor: health.aio.HealthServicer
    ) -> None:
        self.host = host
        self.port = port
        self._server = server
        self._health = monitor

    @property
    def address(self) -> str:
        """Where to reach it from its own machine."""
        return f"{self.host}:{self.port}"

    @classmethod
    async def start(
        cls,
        listen: str,
        identity: Identity,
        peers: Peers,
        handlers: Handlers,
        *,
        services: Sequence[str] = NODE_SERVICES,
        metrics: Metrics | None = None,
        keepalive: Keepalive = DEFAULT_KEEPALIVE,
    ) -> Server:
        """Listen at ``listen`` ("host:port", port 0 for any) and serve.

        Raises:
            LocalError: the address cannot be listened on.
        """
        server = grpc.aio.server(
            interceptors=[Guard(peers, metrics or Metrics())],
            options=[
                *common_options(keepalive),
                ("grpc.so_reuseport", 0),
                ("grpc.max_concurrent_streams", MAX_CALLS),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", MIN_PING_MS),
                ("grpc.http2.max_ping_strikes", 0),
            ],
        )
        for name in services:
            _ADDERS[name](handlers, server)
        monitor = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(monitor, server)
        names = [f"{_PACKAGE}.{name}" for name in services]
        reflection.enable_server_reflection(
            (*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        host, _, _ = listen.rpartition(":")
        try:
            port = server.add_secure_port(listen, server_credentials(identity, peers))
        except RuntimeError as error:
            raise LocalError(
                f"cannot listen on {listen}",
                remedy="another program may use this port; choose another node.listen address",
            ) from error
        await server.start()
        for name in ("", *names):
            await monitor.set(name, health_pb2.HealthCheckResponse.SERVING)
        get_logger("rpc").info("listening", address=f"{host}:{port}", party=identity.party.hex())
        return cls(host, port, server, monitor)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Tell health watchers, let running calls end for a while, then close."""
        await self._health.enter_graceful_shutdown()
        # Streams such as WatchLog have no end of their own; the grace bounds them.
        await asyncio.shield(self._server.stop(grace_s))


def server_credentials(identity: Identity, peers: Peers) -> grpc.ServerCredentials:
    """Return TLS credentials that ask for a certificate and follow the folder of cards.

    The library calls back in each handshake; only a change of the cards costs anything.
    """
    seen = peers.refresh()

    def configuration() -> Any:
        return grpc.ssl_server_certificate_configuration(
            [(identity.tls_key, identity.card.certificate)], root_certificates=peers.roots
        )

    def follow() -> Any:
        nonlocal seen
        revision = peers.refresh()
        if revision == seen:
            return None
        seen = revision
        return configuration()

    return grpc.dynamic_ssl_server_credentials(
        configuration(), follow, require_client_authentication=True
    )
