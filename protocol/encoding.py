"""The canonical encoding: one byte string for one value, and back, or a refusal.

Every hash and every signature of the protocol covers bytes made here, never protobuf bytes.
A value is a frozen dataclass; its annotations are the schema:

* ``bool``: one byte, 0 or 1. ``int``: eight bytes, two's complement. ``Unsigned`` and its
  subclasses: eight bytes, unsigned. All with the big end first.
* ``FixedBytes`` subclasses: the bytes. ``bytes``: a four-byte length, then the bytes.
  ``str``: the same, in UTF-8. Enumerations of ``int``: one byte.
* ``tuple[T, ...]``: a four-byte count, then the items. ``T | None``: one byte 0, or 1 and T.
* a dataclass: its fields in order. A union of dataclasses: one byte (the ``TAG`` of the
  class), then the dataclass.

Invariants: ``decode(type(v), encode(v)) == v``; for any bytes ``b``, ``decode`` either
raises ``ProtocolError`` or returns ``v`` with ``encode(v) == b``. Spec: docs/spec/conventions.md.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import FixedBytes, Unsigned

T = TypeVar("T")

MAX_LENGTH = 1 << 28
"""Longest byte string and largest count accepted, in bytes or items."""

Writer = Callable[[Any, bytearray], None]
Reader = Callable[["Cursor"], Any]


class Cursor:
    """A position in bytes that are being decoded."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes, or refuse when fewer are left."""
        # ENC-1: a decoder reads no byte beyond the end.
        end = self.at + count
        if end > len(self.data):
            raise ProtocolError(
                "ENC-1", Code.MALFORMED, got=f"{len(self.data)} bytes", want=f"at least {end} bytes"
            )
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def length(self) -> int:
        """Read a four-byte length or count, no larger than what can still follow."""
        value = int.from_bytes(self.take(4), "big")
        # ENC-3: a length is at most MAX_LENGTH and at most what is left.
        if value > min(MAX_LENGTH, len(self.data) - self.at):
            raise ProtocolError(
                "ENC-3",
                Code.TOO_LARGE,
                got=f"length {value}",
                want=f"at most {len(self.data) - self.at}",
            )
        return value


def encode(value: object) -> bytes:
    """Encode a dataclass value canonically."""
    out = bytearray()
    _codec(type(value))[0](value, out)
    return bytes(out)


def decode(kind: type[T], data: bytes) -> T:
    """Decode exactly one value of dataclass ``kind`` from ``data``.

    Raises:
        ProtocolError: the bytes are not the canonical encoding of such a value.
    """
    cursor = Cursor(bytes(data))
    value = _codec(kind)[1](cursor)
    # ENC-1: a value takes all the bytes.
    if cursor.at != len(cursor.data):
        raise ProtocolError(
            "ENC-1",
            Code.MALFORMED,
            got=f"{len(cursor.data) - cursor.at} bytes after the value",
            want="the end",
        )
    return typing.cast(T, value)


def _build(kind: Any) -> tuple[Writer, Reader]:
    """Build the writer and the reader of one annotation."""
    origin = typing.get_origin(kind)
    if origin is tuple:
        return _sequence(typing.get_args(kind))
    if origin in (typing.Union, types.UnionType):
        return _union(typing.get_args(kind))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind)
    if isinstance(kind, type):
        return _scalar(kind)
    raise TypeError(f"no canonical encoding for {kind!r}")


_codec: Callable[[Any], tuple[Writer, Reader]] = cache(_build)


def _scalar(kind: type) -> tuple[Writer, Reader]:
    if kind is bool:
        return _write_bool, _read_bool
    if issubclass(kind, IntEnum):
        return _enumeration(kind)
    if issubclass(kind, Unsigned):
        return _write_unsigned, lambda c: kind(int.from_bytes(c.take(8), "big"))
    if kind is int:
        return _write_signed, lambda c: int.from_bytes(c.take(8), "big", signed=True)
    if issubclass(kind, FixedBytes):
        return lambda v, out: out.extend(kind(v)), lambda c: kind(c.take(kind.SIZE))
    if kind is bytes:
        return _write_bytes, lambda c: c.take(c.length())
    if kind is str:
        return lambda v, out: _write_bytes(v.encode(), out), _read_text
    raise TypeError(f"no canonical encoding for {kind!r}")


def _write_bool(value: Any, out: bytearray) -> None:
    out.append(1 if value else 0)


def _read_bool(cursor: Cursor) -> bool:
    byte = cursor.take(1)[0]
    # ENC-5: a truth value is 0 or 1.
    if byte > 1:
        raise ProtocolError("ENC-5", Code.MALFORMED, got=f"byte {byte}", want="0 or 1")
    return byte == 1


def _write_unsigned(value: Any, out: bytearray) -> None:
    out.extend(Unsigned(value).to_bytes(8, "big"))


def _write_signed(value: Any, out: bytearray) -> None:
    # ENC-2: a signed integer lies in [-2**63, 2**63).
    if not -(1 << 63) <= value < 1 << 63:
        raise ProtocolError("ENC-2", Code.OUT_OF_RANGE, got=value, want="a signed 64-bit integer")
    out.extend(int(value).to_bytes(8, "big", signed=True))


def _write_bytes(value: Any, out: bytearray) -> None:
    if len(value) > MAX_LENGTH:
        raise ProtocolError(
            "ENC-3", Code.TOO_LARGE, got=f"{len(value)} bytes", want=f"at most {MAX_LENGTH}"
        )
    out.extend(len(value).to_bytes(4, "big"))
    out.extend(value)


def _read_text(cursor: Cursor) -> str:
    data = cursor.take(cursor.length())
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # ENC-6: text is UTF-8.
        raise ProtocolError(
            "ENC-6", Code.MALFORMED, got=data[:16].hex(), want="UTF-8 text"
        ) from error


def _enumeration(kind: type[IntEnum]) -> tuple[Writer, Reader]:
    known = {int(member): member for member in kind}

    def read(cursor: Cursor) -> IntEnum:
        byte = cursor.take(1)[0]
        # ENC-7: an enumeration's byte is one of its members.
        if byte not in known:
            raise ProtocolError(
                "ENC-7", Code.UNKNOWN, got=f"{kind.__name__} {byte}", want=sorted(known)
            )
        return known[byte]

    return lambda value, out: out.append(int(value)), read


def _sequence(arguments: tuple[Any, ...]) -> tuple[Writer, Reader]:
    item_kind, ellipsis = arguments
    if ellipsis is not Ellipsis:
        raise TypeError("only homogeneous tuples have an encoding")
    write_item, read_item = _codec(item_kind)

    def write(value: Any, out: bytearray) -> None:
        out.extend(len(value).to_bytes(4, "big"))
        for item in value:
            write_item(item, out)

    def read(cursor: Cursor) -> tuple[Any, ...]:
        return tuple([read_item(cursor) for _ in range(cursor.length())])

    return write, read


def _union(members: tuple[Any, ...]) -> tuple[Writer, Reader]:
    if types.NoneType in members:
        (inner,) = (m for m in members if m is not types.NoneType)
        return _optional(inner)
    by_tag = {member.TAG: member for member in members}
    if len(by_tag) != len(members):
        raise TypeError("two members of a union share a TAG")

    def write(value: Any, out: bytearray) -> None:
        out.append(value.TAG)
        _codec(type(value))[0](value, out)

    def read(cursor: Cursor) -> Any:
        tag = cursor.take(1)[0]
        # ENC-7: a union's tag is one of its members'.
        if tag not in by_tag:
            raise ProtocolError("ENC-7", Code.UNKNOWN, got=f"tag {tag}", want=sorted(by_tag))
        return _codec(by_tag[tag])[1](cursor)

    return write, read


def _optional(inner: Any) -> tuple[Writer, Reader]:
    write_inner, read_inner = _codec(inner)

    def write(value: Any, out: bytearray) -> None:
        _write_bool(value is not None, out)
        if value is not None:
            write_inner(value, out)

    return write, lambda cursor: read_inner(cursor) if _read_bool(cursor) else None


def _record(kind: type) -> tuple[Writer, Reader]:
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    codecs: list[tuple[str, Writer, Reader]] = []

    def fields() -> list[tuple[str, Writer, Reader]]:
        # Filled at first use: a record may contain itself through a tuple.
        if not codecs:
            codecs.extend((name, *_codec(hints[name])) for name in names)
        return codecs

    def write(value: Any, out: bytearray) -> None:
        if type(value) is not kind:
            raise TypeError(f"got {type(value).__name__}, want {kind.__name__}")
        for name, write_field, _ in fields():
            write_field(getattr(value, name), out)

    def read(cursor: Cursor) -> Any:
        return kind(**{name: read_field(cursor) for name, _, read_field in fields()})

    return write, read
