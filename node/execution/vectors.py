"""Golden vectors that a node carries: small calls of every operator, with digests of their results.

``vectors.json`` has the operands of the vectors that the project's tests hold all backends to, and
for each operator one SHA-256 over its results (``tests/vectors/packed.py`` writes it).

Spec: docs/spec/execution.md (EXE-22).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Protocol

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import NUMPY, Array, from_bytes
from identic.protocol.dtypes import DType
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.program.types import Attribute
from identic.protocol.tensors import TensorType

FILE: Final = "vectors.json"
KEY: Final = (0x243F6A88, 0x85A308D3)
"""Key of the operands that are made instead of stored (NUM-17)."""
BOUND: Final = 4
"""Made indices lie below this."""


class Runs(Protocol):
    """What runs one operator."""

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of a call."""


@dataclass(frozen=True)
class Known:
    """An operator's calls, and the digest of what they must give.

    Attributes:
        name: of the operator.
        digest: SHA-256 over the bytes of the results in order, in hex.
        calls: each with its operands.
    """

    name: str
    digest: str
    calls: tuple[tuple[Call, tuple[Array, ...]], ...]


@cache
def known() -> tuple[Known, ...]:
    """The vectors of every operator, in the order of their names."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    operators: dict[str, Any] = json.loads(text)["operators"]
    return tuple(
        Known(name, found["digest"], tuple(_call(name, row) for row in found["calls"]))
        for name, found in operators.items()
    )


def digest(backend: Runs, vectors: Known) -> str:
    """SHA-256 over what a backend gives for an operator's calls, in hex."""
    total = hashlib.sha256()
    for call, inputs in vectors.calls:
        total.update(np.ascontiguousarray(backend.run(call, inputs)).tobytes())
    return total.hexdigest()


def differing(backend: Runs) -> Iterator[str]:
    """Names of the operators for which a backend does not give the known bits."""
    return (v.name for v in known() if digest(backend, v) != v.digest)


def _call(name: str, row: dict[str, Any]) -> tuple[Call, tuple[Array, ...]]:
    attributes = tuple(Attribute(key, tuple(v)) for key, v in row["attributes"].items())
    pairs = [
        (TensorType.of(DType.from_label(label), shape), content)
        for label, shape, content in row["inputs"]
    ]
    call = TABLE[name].call(tuple(kind for kind, _ in pairs), attributes)
    return call, tuple(_operand(kind, content) for kind, content in pairs)


def _operand(kind: TensorType, content: str | int) -> Array:
    """An operand: its bytes in hex, or the stream that it is made from."""
    if isinstance(content, str):
        return from_bytes(kind, bytes.fromhex(content))
    made: Array = np.empty(kind.shape, NUMPY[kind.dtype])
    if kind.dtype is DType.FLOAT32:
        _native.philox_uniform(made.reshape(-1), *KEY, content, 0)
    else:
        _native.philox_index(made.reshape(-1), *KEY, BOUND, content, 0)
    return made
