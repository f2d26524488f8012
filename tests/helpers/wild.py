"""Values with one number out of place: what a peer that means harm puts into an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

EXTREMES = (0, 1, 2, 255, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def wild(value: Any) -> Iterator[Any]:
    """The value with each whole number in it, one at a time, replaced by extremes of its type."""
    if isinstance(value, Enum):
        yield from (other for other in type(value) if other is not value)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            others = wild(getattr(value, field.name))
            yield from (replace(value, **{field.name: other}) for other in others)
    elif isinstance(value, tuple):
        # The first and the last stand for all.
        for at in {0, len(value) - 1} if value else ():
            yield from ((*value[:at], other, *value[at + 1 :]) for other in wild(value[at]))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (type(value)(number) for number in EXTREMES if number != value)
