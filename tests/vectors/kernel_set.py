"""Binds the kernel set to its golden vectors, and finds results that were changed (NUM-20).

The digest is the SHA-256 of what ``sha256sum`` prints for the files in the order of their names:

    cd tests/vectors && LC_ALL=C sha256sum arithmetic.json functions.json ops/*.json | sha256sum
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from identic.protocol.ops import kernel_set

FOLDER = Path(__file__).parent
CODE = Path(kernel_set.__file__)

Facts = dict[str, str]
"""What a file says: the operands of each result, and the result."""


def files() -> list[Path]:
    """The files that belong to the kernel set; commitments have versions of their own."""
    return [
        FOLDER / "arithmetic.json",
        FOLDER / "functions.json",
        *sorted((FOLDER / "ops").glob("*.json")),
    ]


def digest() -> str:
    """The digest over the files as they are."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(FOLDER).as_posix()}\n"
        for path in files()
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def bind() -> None:
    """Write the digest into the code."""
    code = CODE.read_text(encoding="utf-8")
    bound = re.sub(r'(?m)^VECTORS = "[0-9a-f]*"$', f'VECTORS = "{digest()}"', code)
    CODE.write_text(bound, encoding="utf-8")


def changed(before: str, after: str) -> list[str]:
    """Results of the older text that the newer one has otherwise, under the same number."""
    old, new = json.loads(before), json.loads(after)
    if old.get("kernel_set", 1) != new.get("kernel_set", 1):
        return []
    known = dict(_facts(new))
    return [key for key, result in _facts(old) if known.get(key, result) != result]


def _facts(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every result of a file, under a key that says of what."""
    for case in content.get("cases", ()):
        given = {key: case[key] for key in ("attributes", "inputs")}
        yield f"{content['op']} {json.dumps(given, sort_keys=True)}", json.dumps(case["output"])
    for name, rows in content.get("rows", {}).items():
        for row in rows:
            yield f"{name} {row[:-1]}", str(row[-1])
    for name, made in content.get("digests", {}).items():
        yield f"{name} over a set of operands", str(made)
    for row in content.get("philox", ()):
        yield f"philox {row[:6]}", str(row[6:])
    for row in content.get("permutation", ()):
        yield f"permutation {row['key']} {row['epoch']} {row['n']}", str(row["images"])
