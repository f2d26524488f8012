"""Numbers of a program as bit patterns (CAP-6)."""

from __future__ import annotations

import struct

from identic.protocol.dtypes import DType
from identic.protocol.ops.checks import attribute_of_word


def float32_word(value: float) -> int:
    """Bit pattern of the binary32 number nearest to ``value``, ties to even.

    Values beyond the largest finite number become infinities; every NaN is ``0x7fc00000``.
    """
    if value != value:  # noqa: PLR0124 - only a NaN differs from itself
        return 0x7FC00000
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000
    return int.from_bytes(packed, "little")


def word(dtype: DType, value: float) -> int:
    """``value`` as an attribute: its bit pattern, or for int64 the signed number."""
    # CAP-6: a constant is rounded once, to nearest even, to its element type.
    if dtype == DType.FLOAT32:
        return float32_word(value)
    if dtype == DType.BFLOAT16:
        high = float32_word(value)
        return (high + 0x7FFF + (high >> 16 & 1)) >> 16
    if dtype == DType.BOOL:
        return int(bool(value))
    return attribute_of_word(dtype, dtype.pattern(int(value)))
