"""Limits and timings of the wire, the same on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_MESSAGE_BYTES: Final = 8 << 20
"""Longest protobuf message in either direction (NET-4)."""

MAX_SIGNED_BYTES: Final = 4 << 20
"""Longest canonical encoding of a signed message (MSG-4)."""

MIN_PING_MS: Final = 1_000
"""Pings that come faster than this are held against a client; the server's tolerance."""

MAX_CALLS: Final = 256
"""Calls at the same time over one connection, watchers included; further ones wait."""

Option = tuple[str, int | str]


@dataclass(frozen=True)
class Keepalive:
    """How a silent connection is watched.

    Attributes:
        after_ms: silence after which a ping is sent.
        timeout_ms: how long the answer may take before the connection is given up.
    """

    after_ms: int = 5_000
    timeout_ms: int = 4_000

    @property
    def options(self) -> list[Option]:
        """The channel arguments. Since gRPC 1.6x the ping has a timeout of its own."""
        return [
            ("grpc.keepalive_time_ms", self.after_ms),
            ("grpc.keepalive_timeout_ms", self.timeout_ms),
            ("grpc.http2.ping_timeout_ms", self.timeout_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
        ]


DEFAULT_KEEPALIVE: Final = Keepalive()


def common_options(keepalive: Keepalive) -> list[Option]:
    """Return the options of both sides."""
    return [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        *keepalive.options,
    ]
