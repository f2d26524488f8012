"""Values of the canonical encoding as JSON, for people and other languages; strict both ways.

The annotations of a dataclass are the schema, as in ``protocol/encoding.py``:

* integers are numbers up to 2**53 and decimal strings above; bytes are lower-case hex;
  truth values, text, lists and ``null`` are themselves; an enumeration is its name in
  lower case;
* a dataclass is an object with exactly its fields; a member of a union has a field ``kind``
  with its class's name besides.

``parse(kind, text)`` gives ``v`` only if ``render(v)`` has the same content. Not canonical: white
space and the order of fields are free, so nothing is ever hashed or signed in this form.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from enum import IntEnum
from typing import Any, TypeVar

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import FixedBytes, Unsigned

T = TypeVar("T")

RULE = "RCP-4"
EXACT = 1 << 53
"""Integers below it are exact in every reader of JSON."""


def render(value: object) -> str:
    """A dataclass value as indented JSON."""
    return json.dumps(_out(type(value), value), indent=1, ensure_ascii=False) + "\n"


def parse(kind: type[T], text: str) -> T:
    """Read a dataclass value from JSON.

    Raises:
        ProtocolError: not JSON, or not exactly such a value (RCP-4).
    """
    try:
        tree = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except (ValueError, RecursionError) as error:
        raise _refused(str(error), "JSON") from error
    return typing.cast(T, _in(kind, tree, kind.__name__))


def _refused(got: object, want: object) -> ProtocolError:
    # RCP-4: the JSON form has exactly the fields and forms of its schema.
    return ProtocolError(RULE, Code.MALFORMED, got=str(got)[:200], want=want)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise _refused(f"fields {names}", "each field once")
    return dict(pairs)


def _no_number(text: str) -> Any:
    raise _refused(text, "an integer")


# ---- writing --------------------------------------------------------------------------------


def _out(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    union = _members(kind)
    if union:
        inner = type(value) if dataclasses.is_dataclass(value) else union[0]
        tagged = {"kind": inner.__name__} if len(union) > 1 else {}
        out = _out(inner, value)
        return {**tagged, **out} if tagged else out
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        return [_out(item, entry) for entry in value]
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind)]
        return {name: _out(hints[name], getattr(value, name)) for name in names}
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < EXACT else str(int(value))
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"no JSON form for {kind!r}")


def _members(kind: Any) -> list[Any]:
    """Members of a union other than ``None``; none for what is no union."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return []
    return [member for member in typing.get_args(kind) if member is not types.NoneType]


# ---- reading --------------------------------------------------------------------------------


def _in(kind: Any, tree: Any, where: str) -> Any:
    union = _members(kind)
    if union:
        return _in_union(kind, union, tree, where)
    if typing.get_origin(kind) is tuple:
        if not isinstance(tree, list):
            raise _refused(f"{where}: {tree!r}", "a list")
        item = typing.get_args(kind)[0]
        return tuple(_in(item, entry, f"{where}[{i}]") for i, entry in enumerate(tree))
    if dataclasses.is_dataclass(kind):
        return _in_record(kind, tree, where)
    return _in_scalar(kind, tree, where)


def _in_union(kind: Any, union: list[Any], tree: Any, where: str) -> Any:
    if tree is None and types.NoneType in typing.get_args(kind):
        return None
    if len(union) == 1:
        return _in(union[0], tree, where)
    by_name = {member.__name__: member for member in union}
    name = tree.get("kind") if isinstance(tree, dict) else None
    if not isinstance(name, str) or name not in by_name:
        raise _refused(f"{where}: kind {name!r}", sorted(by_name))
    rest = {key: value for key, value in tree.items() if key != "kind"}
    return _in(by_name[name], rest, where)


def _in_record(kind: Any, tree: Any, where: str) -> Any:
    names = [field.name for field in dataclasses.fields(kind)]
    if not isinstance(tree, dict) or set(tree) != set(names):
        got = sorted(tree) if isinstance(tree, dict) else tree
        raise _refused(f"{where}: {got!r}", f"fields {names}")
    hints = typing.get_type_hints(kind)
    return kind(**{name: _in(hints[name], tree[name], f"{where}.{name}") for name in names})


def _in_scalar(kind: Any, tree: Any, where: str) -> Any:
    if kind is bool or kind is str:
        # Half a pair of surrogates is text in JSON, but no text that the encoding has (ENC-6).
        if type(tree) is not kind or (isinstance(tree, str) and not _is_text(tree)):
            raise _refused(f"{where}: {tree!a}", kind.__name__)
        return tree
    if issubclass(kind, IntEnum):
        names = {member.name.lower(): member for member in kind}
        if not isinstance(tree, str) or tree not in names:
            raise _refused(f"{where}: {tree!r}", sorted(names))
        return names[tree]
    if issubclass(kind, int):
        return _in_integer(kind, tree, where)
    if issubclass(kind, bytes):
        return _in_bytes(kind, tree, where)
    raise TypeError(f"no JSON form for {kind!r}")


def _is_text(tree: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in tree)


def _in_integer(kind: Any, tree: Any, where: str) -> Any:
    value = tree
    if isinstance(tree, str):
        body = tree.removeprefix("-")
        if not (body.isascii() and body.isdigit() and len(body) <= 20):
            raise _refused(f"{where}: {tree!r}", "an integer")
        value = int(tree)
    if type(value) is not int or (abs(value) < EXACT) == isinstance(tree, str):
        raise _refused(f"{where}: {tree!r}", f"a number below {EXACT}, or a string above")
    if isinstance(tree, str) and str(value) != tree:
        raise _refused(f"{where}: {tree!r}", value)
    if not issubclass(kind, Unsigned) and not -(1 << 63) <= value < 1 << 63:
        raise _refused(f"{where}: {value}", "a signed 64-bit integer")
    return kind(value)


def _in_bytes(kind: Any, tree: Any, where: str) -> Any:
    if not isinstance(tree, str) or not set(tree) <= set("0123456789abcdef") or len(tree) % 2:
        raise _refused(f"{where}: {tree!r}", "lower-case hex")
    data = bytes.fromhex(tree)
    return kind(data) if issubclass(kind, FixedBytes) else data
