"""Between protobuf messages and the project's own values, by the names of their fields.

A dataclass and a message that go together have the same field names; the annotation says how a
field crosses: digests and parties as bytes of their length, None as empty bytes or as absence,
tuples as repeated fields, nested dataclasses as messages. What comes in is checked on the way.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

from google.protobuf.message import Message

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import FixedBytes

M = TypeVar("M", bound=Message)
T = TypeVar("T")


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return names and annotations of a dataclass's fields."""
    hints = typing.get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def to_wire(value: Any, kind: type[M]) -> M:
    """Make a message of ``kind`` from a dataclass value."""
    message = kind()
    fill(message, value)
    return message


def fill(message: Message, value: Any) -> None:
    """Set the fields of an empty message from a dataclass value."""
    kind: Any = type(value)
    for name, _ in _fields(kind):
        item = getattr(value, name)
        if item is None:
            continue
        if dataclasses.is_dataclass(item):
            target = getattr(message, name)
            target.SetInParent()
            fill(target, item)
        elif isinstance(item, tuple):
            _extend(getattr(message, name), item)
        elif isinstance(item, Mapping):
            getattr(message, name).update(item)
        else:
            setattr(message, name, bytes(item) if isinstance(item, FixedBytes) else item)


def _extend(target: Any, items: tuple[Any, ...]) -> None:
    for item in items:
        if dataclasses.is_dataclass(item):
            fill(target.add(), item)
        else:
            target.append(bytes(item) if isinstance(item, FixedBytes) else item)


def from_wire(message: Message, kind: type[T]) -> T:
    """Make a dataclass value from a message.

    Raises:
        ProtocolError: NET-6, a field has a value that its type does not have.
    """
    named: Any = kind
    return kind(**{name: _read(message, name, hint) for name, hint in _fields(named)})


def _read(message: Message, name: str, hint: Any) -> Any:
    raw = getattr(message, name)
    origin = typing.get_origin(hint)
    if origin is types.UnionType or origin is typing.Union:
        (inner,) = (a for a in typing.get_args(hint) if a is not types.NoneType)
        if isinstance(inner, type) and issubclass(inner, bytes):
            return _item(raw, inner, name) if raw else None
        return _item(raw, inner, name) if message.HasField(name) else None
    if origin is tuple:
        inner = typing.get_args(hint)[0]
        return tuple(_item(item, inner, name) for item in raw)
    if origin is Mapping:
        return dict(raw)
    return _item(raw, hint, name)


def _item(raw: Any, kind: Any, name: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return from_wire(raw, typing.cast(type[Any], kind))
    try:
        return kind(raw)
    except (ProtocolError, ValueError) as error:
        # NET-6: bytes have their stated length, a state is one of those listed.
        what = f"{len(raw)} bytes" if isinstance(raw, bytes) else repr(raw)
        want = f"{kind.__name__}" + (f" of {kind.SIZE} bytes" if _fixed(kind) else "")
        raise ProtocolError(
            "NET-6", Code.MALFORMED, got=f"{name}: {what}", want=f"{name}: {want}"
        ) from error


def _fixed(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, FixedBytes) and not issubclass(kind, IntEnum)


def fixed(kind: type[T], raw: bytes, name: str) -> T:
    """Return bytes of one fixed length that came in as the field ``name``.

    Raises:
        ProtocolError: NET-6, the length is another.
    """
    return typing.cast(T, _item(raw, kind, name))
