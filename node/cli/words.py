"""How numbers, sizes, times, money and names are written for people.

Sizes are decimal (1 kB is 1,000 bytes), money is in credits, times are local. Nothing here
prints; every function returns text.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from identic.protocol.dtypes import DType
from identic.protocol.ids import PartyId

CREDIT: Final = 1_000_000
"""Millionths in a credit."""

_LETTERS: Final = {
    "coordinator": "c",
    "solver": "s",
    "verifier": "v",
    "whistleblower": "w",
    "submitter": "u",
}
_BLOCKS: Final = "▁▂▃▄▅▆▇"
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")


def count(number: int) -> str:
    """A whole number with separators: ``1,148``."""
    return f"{number:,}"


def plural(number: int, word: str) -> str:
    """A number with its noun: ``1 tensor``, ``52 tensors``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def size(nbytes: int) -> str:
    """A length in bytes with two to three digits: ``36.7 kB``."""
    value, unit = float(nbytes), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return f"{nbytes} bytes" if nbytes != 1 else "1 byte"
    return f"{value:.1f} {_UNITS[unit]}" if value < 99.95 else f"{value:.0f} {_UNITS[unit]}"


def money(millionths: int) -> str:
    """An amount in credits, without superfluous zeros: ``2.4``."""
    whole, rest = divmod(abs(millionths), CREDIT)
    sign = "-" if millionths < 0 else ""
    decimals = f"{rest:06d}".rstrip("0")
    return f"{sign}{whole:,}.{decimals or '0'}"


def duration(seconds: float) -> str:
    """A time span in the unit that fits: ``0.21 s``, ``7 min``, ``1 h 5 min``."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} days"


def moment(unix_ms: int) -> str:
    """A time as a date and a clock, local."""
    if unix_ms <= 0:
        return "-"
    return dt.datetime.fromtimestamp(unix_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def short(digest: bytes) -> str:
    """First and last hex digits of a digest."""
    text = digest.hex()
    return f"{text[:4]}…{text[-4:]}" if len(text) > 12 else text


def party(role: str, identity: PartyId | bytes | None) -> str:
    """How screens call a party: a letter for its role and the start of its key."""
    if not identity:
        return "nobody"
    return f"{_LETTERS.get(role, 'p')}-{identity.hex()[:6]}"


def real(value: float) -> str:
    """The shortest decimal that gives the same float32 again."""
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return text
    return repr(value)


def element(dtype: DType | None, word: int) -> str:
    """The value of an element with bit pattern ``word``, in decimal."""
    if dtype is DType.FLOAT32:
        return real(struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0])
    if dtype is DType.BFLOAT16:
        return real(struct.unpack("<f", struct.pack("<I", (word & 0xFFFF) << 16))[0])
    if dtype is DType.BOOL:
        return "true" if word else "false"
    return str(word if dtype is None else dtype.signed(word))


def pattern(dtype: DType | None, word: int) -> str:
    """The bit pattern of an element in hex, as wide as its type."""
    return f"{word:0{2 * (dtype.size if dtype else 8)}x}"


def bar(done: int, total: int, width: int) -> str:
    """A progress bar of ``width`` characters."""
    full = width * min(done, total) // total if total else 0
    return "█" * full + "░" * (width - full)


def sparkline(values: Sequence[float], width: int) -> str:
    """A curve of at most ``width`` characters, over means of equal stretches."""
    finite = [v for v in values if v == v and abs(v) != float("inf")]  # noqa: PLR0124 - NaN
    if not finite or width < 1:
        return ""
    columns = min(width, len(finite))
    edges = [len(finite) * i // columns for i in range(columns + 1)]
    means = [sum(finite[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((v - low) * scale)] for v in means)
