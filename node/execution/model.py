"""The model file: parameters and buffers of a state, as safetensors, in one form only.

Layout: the length of the header (eight bytes, little end first), the header (JSON without
spaces, filled up with spaces to a multiple of eight bytes), then the tensors. Tensors lie by
size of their elements, large ones first, then by name, so that each is aligned; the header
lists them in that order after its metadata. One state has one model file, so that its SHA-256
follows from the state and nothing else can be in it (JOB-12).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from identic.kernels.hashing import raw_bytes
from identic.node.execution.states import Arrays
from identic.protocol.dtypes import DType
from identic.protocol.program.types import Variable

DTYPE_NAMES: Final[Mapping[DType, str]] = {
    DType.FLOAT32: "F32",
    DType.BFLOAT16: "BF16",
    DType.INT64: "I64",
    DType.INT32: "I32",
    DType.UINT8: "U8",
    DType.BOOL: "BOOL",
}
"""Element types in the words of model files."""

METADATA: Final = {"format": "pt"}
"""What other libraries look for."""
ALIGNMENT: Final = 8


def model_file(variables: Sequence[Variable], tensors: Arrays) -> bytes:
    """The bytes of the model file.

    Args:
        variables: parameters and buffers.
        tensors: one for each.
    """
    pairs = sorted(
        zip(variables, tensors, strict=True),
        key=lambda pair: (-pair[0].type.dtype.size, pair[0].name),
    )
    header: dict[str, object] = {"__metadata__": METADATA}
    at = 0
    for variable, _ in pairs:
        kind, end = variable.type, at + variable.type.nbytes
        header[variable.name] = {
            "dtype": DTYPE_NAMES[kind.dtype],
            "shape": [int(n) for n in kind.shape],
            "data_offsets": [at, end],
        }
        at = end
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % ALIGNMENT)
    return b"".join([len(head).to_bytes(8, "little"), head, *(raw_bytes(t) for _, t in pairs)])
