"""Refusals over the wire: our errors become gRPC statuses with trailing metadata, and back.

The status code is for foreign tools; our own client reads the metadata, so that a caller sees
the same class and the same attributes as if the handler were in its own process.
"""

from __future__ import annotations

import contextlib
from typing import Final

import grpc
from grpc.aio import AioRpcError

from identic.protocol.errors import Code, IdenticError, IllegalMove, LocalError, ProtocolError

STATUS: Final[dict[Code, grpc.StatusCode]] = {
    Code.MALFORMED: grpc.StatusCode.INVALID_ARGUMENT,
    Code.TOO_LARGE: grpc.StatusCode.INVALID_ARGUMENT,
    Code.OUT_OF_RANGE: grpc.StatusCode.OUT_OF_RANGE,
    Code.UNKNOWN: grpc.StatusCode.NOT_FOUND,
    Code.MISMATCH: grpc.StatusCode.INVALID_ARGUMENT,
    Code.BAD_SIGNATURE: grpc.StatusCode.PERMISSION_DENIED,
    Code.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    Code.ILLEGAL_MOVE: grpc.StatusCode.FAILED_PRECONDITION,
    Code.LATE: grpc.StatusCode.FAILED_PRECONDITION,
    Code.UNSUPPORTED: grpc.StatusCode.FAILED_PRECONDITION,
    Code.INSUFFICIENT: grpc.StatusCode.FAILED_PRECONDITION,
    Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Code.CANNOT_CAPTURE: grpc.StatusCode.INVALID_ARGUMENT,
}
"""The status of each cause."""

Pairs = tuple[tuple[str, str | bytes], ...]

LOCAL: Final = "local"
MAX_TEXT_BYTES: Final = 1024


def _clip(text: str) -> bytes:
    """Bytes of a text for a metadata value, cut between characters."""
    return text.encode()[:MAX_TEXT_BYTES].decode(errors="ignore").encode()


def to_status(error: IdenticError) -> tuple[grpc.StatusCode, str, Pairs]:
    """Return status, text and trailing metadata for one of our errors (NET-5)."""
    if isinstance(error, ProtocolError):
        return (
            STATUS[error.code],
            str(error)[:MAX_TEXT_BYTES],
            (
                ("identic-code", error.code.value),
                ("identic-rule", error.rule),
                ("identic-got-bin", _clip(error.got)),
                ("identic-want-bin", _clip(error.want)),
            ),
        )
    problem = error.problem if isinstance(error, LocalError) else str(error)
    remedy = error.remedy if isinstance(error, LocalError) else ""
    return (
        grpc.StatusCode.INTERNAL,
        str(error)[:MAX_TEXT_BYTES],
        (
            ("identic-code", LOCAL),
            ("identic-problem-bin", _clip(problem)),
            ("identic-remedy-bin", _clip(remedy)),
        ),
    )


def from_status(error: AioRpcError, address: str) -> IdenticError | None:
    """Return our error that a status carries, or None when it carries none of ours."""
    fields: dict[str, str] = {}
    for key, value in error.trailing_metadata():
        if key.startswith("identic-"):
            raw = value if isinstance(value, bytes) else value.encode()
            fields[key.removeprefix("identic-").removesuffix("-bin")] = raw.decode(errors="replace")
    if fields.get("code") == LOCAL:
        return LocalError(
            f"{address} says: {fields.get('problem', '')}", remedy=fields.get("remedy", "")
        )
    with contextlib.suppress(ValueError):
        code = Code(fields.get("code", ""))
        rule, got, want = (fields.get(name, "") for name in ("rule", "got", "want"))
        if code is Code.ILLEGAL_MOVE:
            return IllegalMove(rule, got=got, want=want)
        return ProtocolError(rule, code, got=got, want=want)
    return None
