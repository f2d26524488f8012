"""A connection from this node to another: pinned, watched, with deadlines and retries.

* The other end must present the certificate of its contact card, byte for byte.
* Every call has a deadline; a silent connection is noticed by pings.
* A call is repeated only where that is harmless and only when the other end was not reached.
* Refusals arrive as the ``ProtocolError`` or ``LocalError`` that the other end raised; a
  connection that cannot be made is explained in words.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn, Self, TypeVar

import grpc
from google.protobuf.message import Message
from grpc.aio import AioRpcError

from identic.node.identity import TLS_NAME, Card, Identity
from identic.node.rpc.diagnose import diagnose, split_address
from identic.node.rpc.errors import from_status
from identic.node.rpc.options import (
    DEFAULT_KEEPALIVE,
    MAX_MESSAGE_BYTES,
    Keepalive,
    common_options,
)
from identic.protocol.errors import Code, LocalError, ProtocolError

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

DEADLINE_S: Final = 15.0
"""Deadline of a call that does not move blobs, in seconds."""

ATTEMPTS: Final = 5
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0


def pause_s(attempt: int) -> float:
    """Return how long to wait after failed attempt number ``attempt`` (from 0), in seconds."""
    longest = min(FIRST_PAUSE_S * 2.0 ** min(attempt, 20), LONGEST_PAUSE_S)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - keeps clients from retrying together


class Unreachable(LocalError):
    """The other end cannot be reached at present; a later attempt may succeed."""


class Connection:
    """A connection to one node. Usable as ``async with``.

    Attributes:
        address: "host:port" of the other end.
        identity: this node.
        peer: the other end.
    """

    def __init__(
        self,
        address: str,
        identity: Identity,
        peer: Card,
        keepalive: Keepalive = DEFAULT_KEEPALIVE,
    ) -> None:
        """Prepare a connection; it is made with the first call.

        Raises:
            LocalError: the address is not of the form "host:port".
        """
        split_address(address)
        self.address = address
        self.identity = identity
        self.peer = peer
        self.channel = grpc.aio.secure_channel(
            address,
            grpc.ssl_channel_credentials(
                peer.certificate, identity.tls_key, identity.card.certificate
            ),
            options=[
                *common_options(keepalive),
                ("grpc.ssl_target_name_override", TLS_NAME),
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.initial_reconnect_backoff_ms", 200),
                ("grpc.min_reconnect_backoff_ms", 200),
                ("grpc.max_reconnect_backoff_ms", 5_000),
                ("grpc.enable_retries", 0),
            ],
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; running calls end."""
        await self.channel.close()

    async def call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Q, R],
        request: Q,
        *,
        idempotent: bool,
        deadline_s: float = DEADLINE_S,
    ) -> R:
        """Make a call and return the answer.

        Raises:
            ProtocolError: the other end refuses.
            LocalError: the other end has a fault, or is not reached (``Unreachable``).
        """
        check_size(request)
        attempt = 0
        while True:
            try:
                return await method(request, timeout=deadline_s)
            except AioRpcError as error:
                again = idempotent and error.code() is grpc.StatusCode.UNAVAILABLE
                attempt += 1
                if not again or attempt >= ATTEMPTS:
                    await self.explain(error)
            await asyncio.sleep(pause_s(attempt - 1))

    async def stream(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Q, R],
        request: Q,
        *,
        deadline_s: float | None = None,
    ) -> AsyncIterator[R]:
        """Make a call that is answered by a stream. Raises as ``call``; never repeats."""
        check_size(request)
        running = method(request, timeout=deadline_s)
        try:
            async for response in running:
                yield response
        except AioRpcError as error:
            await self.explain(error)
        finally:
            running.cancel()

    async def send(
        self,
        method: grpc.aio.StreamUnaryMultiCallable[Q, R],
        requests: AsyncIterator[Q],
        *,
        deadline_s: float,
    ) -> R:
        """Send a stream and return the answer. Raises as ``call``; never repeats."""
        try:
            return await method(requests, timeout=deadline_s)
        except AioRpcError as error:
            await self.explain(error)

    async def explain(self, error: AioRpcError) -> NoReturn:
        """Raise what a failed call means."""
        ours = from_status(error, self.address)
        if ours is not None:
            raise ours from error
        code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.UNAVAILABLE:
            found = await asyncio.to_thread(diagnose, self.address, self.identity, self.peer)
            raise Unreachable(found.problem, remedy=found.remedy) from error
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            raise Unreachable(
                f"{self.peer.name} at {self.address} did not answer in time",
                remedy="it may be overloaded or frozen; see its log",
            ) from error
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            # NET-4: a message has at most MAX_MESSAGE_BYTES; the library refuses a longer one.
            raise ProtocolError(
                "NET-4", Code.TOO_LARGE, got=details, want=f"at most {MAX_MESSAGE_BYTES} bytes"
            ) from error
        if code is grpc.StatusCode.UNIMPLEMENTED:
            raise LocalError(
                f"{self.peer.name} at {self.address} does not offer this service ({details})",
                remedy="check that the address is that of a node with this role, of this version",
            ) from error
        raise LocalError(
            f"{self.peer.name} at {self.address} failed: {details or code.name}",
            remedy="see its log",
        ) from error


def check_size(request: Message) -> None:
    """Refuse to send what the other end would not take.

    Raises:
        ProtocolError: NET-4, the request is too long.
    """
    # NET-4: a message has at most MAX_MESSAGE_BYTES.
    if request.ByteSize() > MAX_MESSAGE_BYTES:
        raise ProtocolError(
            "NET-4",
            Code.TOO_LARGE,
            got=f"a request of {request.ByteSize()} bytes",
            want=f"at most {MAX_MESSAGE_BYTES} bytes",
        )


def stub(kind: Any, connection: Connection) -> Any:
    """Return a generated stub on a connection."""
    return kind(connection.channel)
