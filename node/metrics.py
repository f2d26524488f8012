"""Numbers about a node for Prometheus. Each node has a registry of its own."""

from __future__ import annotations

from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from identic.protocol.errors import LocalError


class Metrics:
    """The numbers a node counts; roles add their own to ``registry``.

    Attributes:
        registry: where all of them are.
        calls: finished calls, by method and gRPC status.
        seconds: how long a call took at the server, by method.
        alarms: jobs of which a role could not tell, by role.
        restarts: times a role was started again, by role.
        log_entries: entries of the log known here.
        blob_bytes: length of the blobs held.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "identic_rpc_calls", "Finished calls.", ["method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "identic_rpc_seconds", "Duration of calls.", ["method"], registry=self.registry
        )
        self.alarms = Counter(
            "identic_cannot_tell",
            "Jobs of which a role could not tell.",
            ["role"],
            registry=self.registry,
        )
        self.restarts = Counter(
            "identic_role_restarts", "Restarts of a role.", ["role"], registry=self.registry
        )
        self.log_entries = Gauge(
            "identic_log_entries", "Entries of the log known here.", registry=self.registry
        )
        self.blob_bytes = Gauge("identic_blob_bytes", "Blobs held.", registry=self.registry)

    def serve(self, host: str, port: int) -> WSGIServer:
        """Answer Prometheus at an address, from a thread of its own.

        Raises:
            LocalError: the address cannot be listened on.
        """
        try:
            server, _ = start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            raise LocalError(
                f"cannot serve metrics at {host}:{port}: {error.strerror}",
                remedy="choose another node.metrics address, or leave it out",
            ) from error
        return server
