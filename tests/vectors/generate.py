"""Makes the golden vectors: those of the operators here, and the other files' by their programs.

``python -m tests.vectors.generate`` writes every file and binds the kernel set to them; with
``--check`` it compares them and writes nothing. A result that differs from the one in a file,
for the same operands, is refused: other bits are another kernel set (NUM-20). The format stands
in README.md beside this file.

The operators' results come from their folds, one primitive step at a time: from the definition
that the referee follows, not from a kernel.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from identic.node.debug.calls import BUILDERS
from identic.node.debug.cases import Case, Maker, case
from identic.protocol.arithmetic import bounded, uniform24
from identic.protocol.dtypes import DType
from identic.protocol.ops import KERNEL_SET, TABLE
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import element
from identic.protocol.ops.kernel_set import VECTORS
from identic.protocol.ops.primitives import random_words
from identic.protocol.program.types import Attribute
from identic.protocol.tensors import TensorType
from tests.vectors import arithmetic, commitments, functions, kernel_set, packed

FOLDER = Path(__file__).parent / "ops"
CASES = 10
MOST_WORDS = 300

F, I64, I32 = DType.FLOAT32, DType.INT64, DType.INT32

LONG: dict[str, list[tuple[DType, tuple[int, ...]]]] = {
    "sum_last": [(F, (2, 4200))],
    "sum_first": [(F, (600, 2))],
    "amax": [(F, (2, 1100))],
    "argmax": [(F, (2, 1100))],
    "matmul": [(F, (2, 4400)), (F, (4400, 1))],
    "conv": [(F, (1, 460, 3, 3)), (F, (1, 460, 3, 3))],
    "conv_dx": [(F, (1, 460, 2, 2)), (F, (460, 1, 3, 3))],
    "conv_dw": [(F, (3, 1, 38, 37)), (F, (3, 1, 38, 37))],
    "max_pool": [(F, (34, 34))],
    "max_pool_indices": [(F, (34, 34))],
    "max_pool_dx": [(F, (33, 33)), (I64, (33, 33))],
    "sum_pool": [(F, (34, 34))],
    "sum_pool_dx": [(F, (33, 33))],
    "cumsum": [(F, (1, 300))],
    "argtopk": [(F, (1, 1100))],
    "add_rows": [(F, (3, 2)), (I64, (600,)), (F, (600, 2))],
    "set_rows": [(F, (3, 2)), (I64, (1100,)), (F, (1100, 2))],
    "scatter": [(F, (3, 2)), (I64, (1100, 2)), (F, (1100, 2))],
    "scatter_add": [(F, (3, 2)), (I64, (600, 2)), (F, (600, 2))],
}
"""Operands beyond the borders of the accumulation rules: uniform numbers, random indices."""

_ZEROS, _ONES = (0, 0), (1, 1)
_MOVES: dict[str, object] = {"after": _ZEROS, "before": _ZEROS, "stride": _ONES}
_CONV: dict[str, object] = {**_MOVES, "dilation": _ONES, "groups": 1}
_POOL: dict[str, object] = {**_MOVES, "window": (34, 34)}
_DILATED: dict[str, object] = {**_POOL, "dilation": _ONES}
_BACK: dict[str, object] = {"after": (32, 33), "before": (32, 31), "size": (2, 2)}

LONG_ATTRIBUTES: dict[str, dict[str, object]] = {
    "conv": {**_CONV, "after": (1, 0), "before": _ONES, "stride": (2, 1)},
    "conv_dx": {**_CONV, "after": _ONES, "before": _ONES, "size": (3, 3), "stride": (2, 2)},
    "conv_dw": {**_CONV, "after": (1, 0), "before": (0, 1), "window": (2, 2)},
    "max_pool": _DILATED,
    "max_pool_indices": _DILATED,
    "max_pool_dx": {**_DILATED, **_BACK},
    "sum_pool": _POOL,
    "sum_pool_dx": {**_POOL, **_BACK},
    "argtopk": {"k": 2, "largest": 1},
    "scatter": {"axis": 0},
    "scatter_add": {"axis": 0},
}
"""Attributes of the long cases."""

LONG_BOUND = 4
"""Indices of a long case lie below this: mostly inside the three rows, some outside."""

KEY = (0x243F6A88, 0x85A308D3)
"""Key of the uniform operands."""


def uniform_words(stream: int, count: int) -> list[int]:
    """Element ``i`` is the uniform of NUM-17 for ``KEY``, the stream and shard 0."""
    return [uniform24(random_words(KEY, 0, stream, i // 4)[i % 4]) for i in range(count)]


def index_words(stream: int, count: int) -> list[int]:
    """Element ``i`` is the index of NUM-17 below ``LONG_BOUND`` for ``KEY``, stream and shard 0."""
    blocks = [random_words(KEY, 0, stream, i // 2)[2 * (i % 2) :] for i in range(count)]
    return [bounded(low, high, LONG_BOUND) for low, high, *_ in blocks]


def made_words(dtype: DType, stream: int, count: int) -> list[int]:
    """Words of an operand of a long case."""
    return uniform_words(stream, count) if dtype is F else index_words(stream, count)


def long_case(name: str) -> Case:
    """The long case of an operator."""
    kinds = [TensorType.of(*kind) for kind in LONG[name]]
    inputs = [made_words(kind.dtype, i, kind.elements) for i, kind in enumerate(kinds)]
    return case(name, kinds, inputs, **LONG_ATTRIBUTES.get(name, {}))


def short_cases(name: str) -> list[Case]:
    """Random cases of few words, the same ones always, some with a result."""
    found: list[Case] = []
    seed = 0
    while len(found) < CASES:
        made = BUILDERS[name](Maker(seed))
        seed += 1
        words = sum(len(w) for w in made.inputs) + made.call.output.elements
        if words <= MOST_WORDS and (made.call.output.elements or seed % 5 == 0):
            found.append(made)
    return found


def _words(dtype: DType, words: list[int]) -> list[str]:
    return [f"{w:0{2 * dtype.size}x}" for w in words]


def _tensor(kind: TensorType, **content: Any) -> dict[str, Any]:
    return {"dtype": kind.dtype.label, "shape": [int(n) for n in kind.shape], **content}


def _row(made: Case, *, long: bool) -> dict[str, Any]:
    call = made.call
    result = [element(call, i, made.read) for i in range(call.output.elements)]
    inputs = [
        _tensor(kind, made=number)
        if long
        else _tensor(kind, words=_words(kind.dtype, made.inputs[number]))
        for number, kind in enumerate(call.inputs)
    ]
    return {
        "attributes": {a.name: [int(v) for v in a.values] for a in call.attributes},
        "inputs": inputs,
        "output": _tensor(call.output, words=_words(call.output.dtype, result)),
    }


def table(name: str) -> dict[str, Any]:
    """The content of one operator's file."""
    rows = [_row(made, long=False) for made in short_cases(name)]
    if name in LONG:
        rows.append(_row(long_case(name), long=True))
    return {"kernel_set": KERNEL_SET, "op": name, "cases": rows}


def text(name: str) -> str:
    """The text of one operator's file: a list of words or numbers takes one line."""
    made = json.dumps(table(name), indent=1)
    return re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", made) + "\n"


def path(name: str) -> Path:
    """The file of an operator."""
    return FOLDER / f"{name}.json"


def parse(row: dict[str, Any], name: str) -> tuple[Call, list[list[int]], list[int]]:
    """Call, words of the inputs and words of the result of one stored case."""
    kinds, inputs = [], []
    for tensor in row["inputs"]:
        kind = TensorType.of(DType.from_label(tensor["dtype"]), tensor["shape"])
        kinds.append(kind)
        if "made" in tensor:
            inputs.append(made_words(kind.dtype, tensor["made"], kind.elements))
        else:
            inputs.append([int(w, 16) for w in tensor["words"]])
    attributes = tuple(Attribute(k, tuple(v)) for k, v in row["attributes"].items())
    call = TABLE[name].call(tuple(kinds), attributes)
    return call, inputs, [int(w, 16) for w in row["output"]["words"]]


def texts() -> Iterator[tuple[Path, str]]:
    """Every file of vectors and what it is to say."""
    for other in (arithmetic, commitments, functions):
        yield other.PATH, other.text()
    for name in sorted(TABLE):
        yield path(name), text(name)
    # From the files just written.
    yield packed.PATH, packed.text()


def main() -> int:
    """Write the files and the digest, or compare with ``--check``; 1 when one differs."""
    check = "--check" in sys.argv[1:]
    wrong = [f"no such operator: {p}" for p in FOLDER.glob("*.json") if p.stem not in TABLE]
    for file, made in texts():
        before = file.read_text(encoding="utf-8") if file.exists() else "{}"
        other = kernel_set.changed(before, made)
        wrong += [f"another kernel set, a result changed: {file}: {what}" for what in other]
        if check and before != made:
            wrong.append(f"differs: {file}")
        elif not check and not other:
            file.write_text(made, encoding="utf-8")
    if not check and not wrong:
        kernel_set.bind()
    elif check and kernel_set.digest() != VECTORS:
        wrong.append(f"not the digest of the vectors: {kernel_set.CODE}")
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
