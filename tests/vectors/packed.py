"""The vectors that a node carries with it: those of the operators, results as one digest each.

``python -m tests.vectors.packed`` writes the file from ``ops/``; ``make vectors`` does, too.
Operands are the bytes of the elements in hex, or the number of the stream that they are made from.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from identic.node.execution import vectors
from identic.protocol.dtypes import DType
from identic.protocol.ops import KERNEL_SET

PATH = Path(vectors.__file__).with_name(vectors.FILE)
OPS = Path(__file__).parent / "ops"


def text() -> str:
    """The text of the file: a line for each operator."""
    stored = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(OPS.glob("*.json"))]
    lines = [
        f' "{one["op"]}": {json.dumps(_operator(one), separators=(",", ":"))}' for one in stored
    ]
    return f'{{"kernel_set": {KERNEL_SET}, "operators": {{\n' + ",\n".join(lines) + "\n}}\n"


def _operator(stored: dict[str, Any]) -> dict[str, Any]:
    results = hashlib.sha256()
    for case in stored["cases"]:
        results.update(_bytes(case["output"]))
    calls = [
        {"attributes": case["attributes"], "inputs": [_operand(x) for x in case["inputs"]]}
        for case in stored["cases"]
    ]
    return {"digest": results.hexdigest(), "calls": calls}


def _operand(tensor: dict[str, Any]) -> list[Any]:
    content = tensor["made"] if "made" in tensor else _bytes(tensor).hex()
    return [tensor["dtype"], tensor["shape"], content]


def _bytes(tensor: dict[str, Any]) -> bytes:
    size = DType.from_label(tensor["dtype"]).size
    return b"".join(int(word, 16).to_bytes(size, "little") for word in tensor["words"])


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
