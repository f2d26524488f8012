"""Makes ``functions.json``: digests of the rounded functions over a sample of all operands.

``python -m tests.vectors.functions`` writes the file; with ``--check`` it compares and writes
nothing. The results come from the native kernels; ``make exhaustive`` compares those with an
evaluation in 113 bits for every operand there is, which no file could hold.

Format. Operand ``i`` of the sample, ``0 <= i < 2^24``, is the word ``256 * i + h`` with ``h`` the
top eight bits of ``i * 9e3779b1 mod 2^32``: one of each 256 neighbours. ``digests`` has 16 rolling
digests for each function: number ``k`` is the SHA-256 over digest ``k - 1`` (nothing for the first)
and the results of the operands from ``k * 2^20`` on, ``2^20`` words of four bytes, little end
first. So each piece can be checked by itself, and the first digest that
differs tells which million operands to look at.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.protocol.ops import KERNEL_SET

PATH = Path(__file__).with_suffix(".json")
FUNCTIONS = ("exp", "log", "tanh", "erf", "sigmoid", "sin", "cos")
PIECES = 16
PIECE = 1 << 20


def operands(piece: int) -> Array:
    """The operands of one piece of the sample, as float32."""
    i = np.arange(piece * PIECE, (piece + 1) * PIECE, dtype=np.uint64)
    spread = (i * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)) >> np.uint64(24)
    return (i << np.uint64(8) | spread).astype("<u4").view("<f4")


def results(name: str, piece: int) -> bytes:
    """The bytes of a function's results on one piece, by the native path in use."""
    x = operands(piece)
    out = np.empty_like(x)
    _native.unary(name, out, x)
    return out.tobytes()


def digests(name: str) -> list[str]:
    """The rolling digests of a function."""
    made: list[str] = []
    before = b""
    for piece in range(PIECES):
        before = digest(before, name, piece)
        made.append(before.hex())
    return made


def digest(before: bytes, name: str, piece: int) -> bytes:
    """The rolling digest of a piece after the one before it."""
    return hashlib.sha256(before + results(name, piece)).digest()


def table() -> dict[str, Any]:
    """The whole file."""
    return {
        "about": "Rounded functions over a sample of all operands; format: functions.py.",
        "kernel_set": KERNEL_SET,
        "digests": {name: digests(name) for name in FUNCTIONS},
    }


def text() -> str:
    """The file's text."""
    return json.dumps(table(), indent=1) + "\n"


def main() -> int:
    """Write the file, or compare it with ``--check``; 1 when it differs."""
    made = text()
    if "--check" in sys.argv[1:]:
        return int(PATH.read_text() != made)
    PATH.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
