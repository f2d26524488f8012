"""Reading the tensors of a model file that came from a stranger."""

from __future__ import annotations

import struct
from typing import Any, Final

from safetensors import SafetensorError, deserialize

from identic.proofs.receipt import ReadTensor
from identic.protocol.dtypes import DType
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.tensors import TensorType

TYPES: Final = {
    "F32": DType.FLOAT32,
    "BF16": DType.BFLOAT16,
    "I64": DType.INT64,
    "I32": DType.INT32,
    "U8": DType.UINT8,
    "BOOL": DType.BOOL,
}
"""Element types by their names in model files."""


def reader(data: bytes) -> tuple[ReadTensor, frozenset[str]]:
    """Return what reads tensors of a safetensors file by name, and all their names.

    Raises:
        ProtocolError: the bytes are no such file (RCP-8).
    """
    try:
        found: dict[str, Any] = dict(deserialize(data))  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError, struct.error) as error:
        # RCP-8: the model file is a safetensors file.
        raise ProtocolError(
            "RCP-8", Code.MALFORMED, got=str(error)[:200], want="a safetensors file"
        ) from error

    def read(name: str) -> tuple[TensorType, bytes] | None:
        tensor = found.get(name)
        if tensor is None or tensor["dtype"] not in TYPES:
            return None
        kind = TensorType.of(TYPES[tensor["dtype"]], tensor["shape"])
        return kind, bytes(tensor["data"])

    return read, frozenset(found)
