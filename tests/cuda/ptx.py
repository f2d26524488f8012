"""Which instructions of PTX may stand in a kernel: those whose floats round to nearest, or move."""

from __future__ import annotations

import re
from collections import Counter

_INSTRUCTION = re.compile(
    r"^\s*(?:\{\s*)?(?:@!?%\w+\s+)?([a-z][a-z0-9_]*(?:\.[a-zA-Z0-9_:]+)+)[ \t;]", re.MULTILINE
)
_FLOAT = re.compile(r"\.(?:f16|f16x2|bf16|bf16x2|tf32|f32|f64|e4m3|e5m2)\w*\b")
_LOOSE = re.compile(r"\.(?:ftz|approx|full|sat|rz|rm|rp|rna|relu)\b")
_ALLOWED = re.compile(
    r"""(?x)
    (?:ld|st|mov|selp|set|setp|ldu|call|shfl|bra)\b.*   # moves, choices, comparisons
    | (?:add|sub|mul|div|rcp|fma|sqrt)\.rn\.f(?:32|64)       # rounded to nearest, spelled so
    | (?:neg|abs|copysign|testp)\b.*                     # the sign, the class
    | (?:min|max)\.f32                                   # one of two numbers: idn_max
    | cvt\.f64\.f32                                      # exact
    | cvt\.rn\.f32\.f64
    | cvt\.rn\.f(?:32|64)\.[su](?:8|16|32|64)            # from integers
    | cvt\.rzi\.[su](?:8|16|32|64)\.f(?:32|64)           # to integers, toward zero: NUM-5
    """
)
_MATRIX = ("mma", "wmma", "wgmma", "tcgen05")
_ATOMIC = ("atom", "red")


def instructions(ptx: str) -> Counter[str]:
    """How often each instruction stands in a text, its suffixes included."""
    return Counter(match.group(1) for match in _INSTRUCTION.finditer(without_comments(ptx)))


def forbidden(ptx: str) -> dict[str, int]:
    """Instructions that make a float in another way than the rules, with their numbers."""
    return {name: count for name, count in instructions(ptx).items() if not _may(name)}


def without_comments(ptx: str) -> str:
    """The text without comments, which name the compiler and its options."""
    return re.sub(r"//[^\n]*", "", ptx)


def _may(name: str) -> bool:
    head = name.partition(".")[0]
    if head in _MATRIX:
        return False
    if not _FLOAT.search(name):
        return True
    if head in _ATOMIC:
        return False
    if name.startswith("cvt.rzi."):
        return _ALLOWED.fullmatch(name) is not None
    return _LOOSE.search(name) is None and _ALLOWED.fullmatch(name) is not None
