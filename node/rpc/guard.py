"""What every call passes: who calls, within which size, and how a failure is told.

* The certificate of the handshake becomes the caller's identity (NET-3).
* ``ProtocolError`` and ``LocalError`` reach the caller with their attributes (NET-5).
* Anything else is a fault of ours: it is logged with its traceback, the caller is told no more
  than that, and the process goes on.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, NoReturn, TypeAlias, cast

import grpc
from google.protobuf.message import Message
from grpc.aio import AbortError, ServerInterceptor, ServicerContext

from identic.node.logging import get_logger
from identic.node.metrics import Metrics
from identic.node.peers import Peers
from identic.node.rpc.errors import to_status
from identic.node.rpc.options import MAX_MESSAGE_BYTES
from identic.protocol.errors import Code, IdenticError, LocalError, ProtocolError
from identic.protocol.ids import PartyId

_CALLER: Final[ContextVar[PartyId]] = ContextVar("caller")

Context: TypeAlias = ServicerContext[Any, Any]
# Subscriptable only in the type stubs.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


def caller() -> PartyId:
    """Return who makes the call that is being answered."""
    return _CALLER.get()


class Guard(ServerInterceptor):
    """The interceptor in front of all services."""

    def __init__(self, peers: Peers, metrics: Metrics) -> None:
        self._peers = peers
        self._metrics = metrics
        self._log = get_logger("rpc")

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap the handler of one call."""
        handler = await continuation(handler_call_details)
        # An unknown method has no handler; the library answers it.
        if handler is None:
            return None
        method = str(handler_call_details.method)
        kind = (bool(handler.request_streaming), bool(handler.response_streaming))
        name = {
            (False, False): "unary_unary",
            (False, True): "unary_stream",
            (True, False): "stream_unary",
            (True, True): "stream_stream",
        }[kind]
        inner = getattr(handler, name)
        wrapped = (
            self._stream(method, inner)
            if inspect.isasyncgenfunction(inner)
            else self._single(method, inner)
        )
        make = getattr(grpc, f"{name}_rpc_method_handler")
        return cast(
            Handler,
            make(
                wrapped,
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            ),
        )

    def _single(self, method: str, inner: Any) -> Any:
        """Wrap a handler that is a coroutine: one answer, or a stream it writes itself."""

        async def answer(request: Any, context: Context) -> Any:
            started = time.monotonic()
            try:
                self._admit(context)
                response = await inner(request, context)
                _check_size(response)
            except Exception as error:  # noqa: BLE001 - told or logged, never swallowed
                await self._fail(method, started, context, error)
            self._count(method, started, "OK")
            return response

        return answer

    def _stream(self, method: str, inner: Any) -> Any:
        """Wrap a handler that is an asynchronous generator."""

        async def answer(request: Any, context: Context) -> AsyncIterator[Any]:
            started = time.monotonic()
            try:
                self._admit(context)
                async for response in inner(request, context):
                    _check_size(response)
                    yield response
            except Exception as error:  # noqa: BLE001 - told or logged, never swallowed
                await self._fail(method, started, context, error)
            self._count(method, started, "OK")

        return answer

    def _admit(self, context: Context) -> None:
        """Find out who calls."""
        certificates = list(context.auth_context().get("x509_pem_cert", ()))
        # NET-3: a call comes over a connection whose handshake showed one certificate.
        if len(certificates) != 1:
            raise ProtocolError(
                "NET-3",
                Code.FORBIDDEN,
                got=f"{len(certificates)} certificates",
                want="one certificate of a known peer",
            )
        _CALLER.set(self._peers.party(certificates[0]))

    async def _fail(
        self, method: str, started: float, context: Context, error: Exception
    ) -> NoReturn:
        """Tell the caller what went wrong."""
        if isinstance(error, AbortError):
            self._count(method, started, "ABORTED")
            raise error
        if isinstance(error, LocalError):
            self._log.error("call failed", method=method, problem=str(error))
        if not isinstance(error, IdenticError):
            self._log.error("fault in a handler", method=method, exc_info=error)
            text = f"a fault at the other end ({type(error).__name__}); its log has the details"
            self._count(method, started, "INTERNAL")
            await context.abort(grpc.StatusCode.INTERNAL, text)
        status, text, metadata = to_status(error)
        self._count(method, started, status.name)
        await context.abort(status, text, metadata)

    def _count(self, method: str, started: float, status: str) -> None:
        self._metrics.calls.labels(method, status).inc()
        self._metrics.seconds.labels(method).observe(time.monotonic() - started)


def _check_size(response: Any) -> None:
    """Refuse to send what the other end would not take."""
    # NET-4: a message has at most MAX_MESSAGE_BYTES.
    if isinstance(response, Message) and response.ByteSize() > MAX_MESSAGE_BYTES:
        raise ProtocolError(
            "NET-4",
            Code.TOO_LARGE,
            got=f"an answer of {response.ByteSize()} bytes",
            want=f"at most {MAX_MESSAGE_BYTES} bytes; ask for less at once",
        )
