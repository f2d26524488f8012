"""Makes ``arithmetic.json``: operands and results of every operation, for all twins.

``python tests/vectors/arithmetic.py`` writes the file; with ``--check`` it compares and
writes nothing. A consumer may assert every row and every digest.

Format. All numbers are words in lower-case hex: 8 digits for float32, 4 for bfloat16, 16 for
integers (two's complement).

* ``rows``: name of an operation -> list of rows, the operands and then the result.
* ``digests``: SHA-256 over the results, each a 4-byte little-endian word, of an operation
  ``f`` over a whole set of operands: ``f/specials`` over all pairs of ``specials`` (all
  triples for fma), the last operand running fastest; ``f/bfloat16`` over the 65,536 float32
  numbers whose lower half is zero, ascending.
* ``philox``: rows of key (2 words), counter (4), result (4).
* ``permutation``: key (2 words), epoch, n, and the images of the positions 0, 1, ....
"""

import hashlib
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from identic.protocol.arithmetic import f32, functions, permute, philox4x32

PATH = Path(__file__).with_suffix(".json")

POSITIVE = (
    0x00000000,
    0x00000001,
    0x007FFFFF,
    0x00800000,
    0x1A000001,
    0x3F7FFFFF,
    0x3F800000,
    0x3F800800,
    0x4B800001,
    0x5F000000,
    0x7F7FFFFF,
    0x7F800000,
    0x7F800001,
    0x7FC00000,
)
SPECIALS = POSITIVE + tuple(x | 0x80000000 for x in POSITIVE)

UNARY: dict[str, Callable[[int], int]] = {
    "neg": f32.neg,
    "abs": f32.absolute,
    "sqrt": f32.sqrt,
    "rsqrt": f32.rsqrt,
    "exp": functions.exp,
    "log": functions.log,
    "tanh": functions.tanh,
    "erf": functions.erf,
    "sin": functions.sin,
    "cos": functions.cos,
    "sigmoid": functions.sigmoid,
}
BINARY: dict[str, Callable[[int, int], int]] = {
    "add": f32.add,
    "sub": f32.sub,
    "mul": f32.mul,
    "div": f32.div,
    "maximum": f32.maximum,
    "minimum": f32.minimum,
    "eq": f32.eq,
    "ne": f32.ne,
    "lt": f32.lt,
    "le": f32.le,
    "gt": f32.gt,
    "ge": f32.ge,
}
TO_INTEGER: dict[str, Callable[[int], int]] = {
    "to_int64": f32.to_int64,
    "to_int32": f32.to_int32,
    "to_uint8": f32.to_uint8,
    "to_bool": f32.to_bool,
}
LOG_TRAPS = (0x3C413D3A, 0x41178FEB, 0x4C5D65A5, 0x65D890D3, 0x6F31A8EC)


def words(count: int, stream: int) -> list[int]:
    """Make operands: every third of any kind, the others with exponents near 1."""
    made: list[int] = []
    for block in range(-(-count // 2)):
        a, b, _, _ = philox4x32((0x1DE47, stream), (block, 0, 0, 0))
        made += [a, b]
    return [w if i % 3 == 0 else (w & 0x87FFFFFF) | 0x38000000 for i, w in enumerate(made[:count])]


def digest(results: Iterable[int]) -> str:
    """Hash result words in order."""
    return hashlib.sha256(b"".join(r.to_bytes(4, "little") for r in results)).hexdigest()


def rows() -> dict[str, list[list[str]]]:
    """Make the rows of every operation."""
    made: dict[str, list[list[str]]] = {}
    for stream, (name, unary) in enumerate(UNARY.items()):
        operands = [*SPECIALS, *words(36, stream), *(LOG_TRAPS if name == "log" else ())]
        made[name] = [[f"{x:08x}", f"{unary(x):08x}"] for x in operands]
    for stream, (name, binary) in enumerate(BINARY.items(), 100):
        w = words(48, stream)
        pairs = zip(w[::2], w[1::2], strict=True)
        made[name] = [[f"{a:08x}", f"{b:08x}", f"{binary(a, b):08x}"] for a, b in pairs]
    w = words(192, 200)
    triples = [(a, b, c) for a, b, c in zip(w[::3], w[1::3], w[2::3], strict=True)]
    # Products next to their addend, so that sums cancel.
    triples += [(a, b, f32.neg(f32.mul(a, b))) for a, b, _ in triples[:32]]
    made["fma"] = [[f"{x:08x}" for x in (*t, f32.fma(*t))] for t in triples]
    for stream, (name, convert) in enumerate(TO_INTEGER.items(), 300):
        operands = [*SPECIALS, 0x4F000000, 0xCF000000, 0xDF000000, *words(16, stream)]
        operands += [(x & 0x80FFFFFF) | 0x4B000000 for x in words(16, stream)]
        made[name] = [[f"{x:08x}", f"{convert(x) % (1 << 64):016x}"] for x in operands]
    integers = [
        s * ((1 << e) + d) for e in (0, 23, 24, 31, 53, 62) for d in (-1, 0, 1) for s in (1, -1)
    ]
    integers += [3 << 24 | 3, -(1 << 63), (1 << 63) - 1]
    made["from_int"] = [[f"{i % (1 << 64):016x}", f"{f32.from_int(i):08x}"] for i in integers]
    operands = [*SPECIALS, 0x3F808000, 0x3F818000, 0x7F7F7FFF, 0x7F7F8000, *words(16, 400)]
    made["to_bf16"] = [[f"{x:08x}", f"{f32.to_bf16(x):04x}"] for x in operands]
    return made


def digests() -> dict[str, str]:
    """Make the digests over whole sets of operands."""
    made = {f"{n}/bfloat16": digest(f(x << 16) for x in range(1 << 16)) for n, f in UNARY.items()}
    pairs = list(itertools.product(SPECIALS, SPECIALS))
    made |= {f"{n}/specials": digest(f(a, b) for a, b in pairs) for n, f in BINARY.items()}
    triples = itertools.product(SPECIALS, SPECIALS, SPECIALS)
    made["fma/specials"] = digest(f32.fma(a, b, c) for a, b, c in triples)
    made["from_bf16/bfloat16"] = digest(f32.from_bf16(x) for x in range(1 << 16))
    return made


def table() -> dict[str, Any]:
    """Make the whole file."""
    blocks = [
        ((0, 0), (0, 0, 0, 0)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)),
        ((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)),
    ]
    orders = [
        ((0, 0), 0, 1),
        ((0, 0), 0, 5),
        ((1, 2), 3, 17),
        ((0xA4093822, 0x299F31D0), 1 << 32, 40),
    ]
    return {
        "about": "Arithmetic of kernel set 1 (docs/spec/numerics.md); format: arithmetic.py.",
        "specials": [f"{x:08x}" for x in SPECIALS],
        "rows": rows(),
        "digests": digests(),
        "philox": [[f"{w:08x}" for w in (*k, *c, *philox4x32(k, c))] for k, c in blocks],
        "permutation": [
            {
                "key": [f"{w:08x}" for w in key],
                "epoch": f"{epoch:016x}",
                "n": n,
                "images": [permute(key, epoch, n, p) for p in range(n)],
            }
            for key, epoch, n in orders
        ],
    }


def text() -> str:
    """Return the file's text: one row a line."""
    made = json.dumps(table(), indent=1)
    return re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", made) + "\n"


def main() -> int:
    """Write the file, or compare it with ``--check``; 1 when it differs."""
    made = text()
    if "--check" in sys.argv[1:]:
        return int(PATH.read_text() != made)
    PATH.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
