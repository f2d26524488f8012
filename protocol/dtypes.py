"""Element types of tensors: code on the wire, width, and how an element is read.

Elements lie in memory with the little end first. An element's *word* is its bit pattern as
an unsigned integer; arithmetic on words is in ``protocol/arithmetic``.
"""

from __future__ import annotations

from enum import IntEnum


class DType(IntEnum):
    """Element type; the value is the code in the canonical encoding (PRG-2)."""

    FLOAT32 = 1
    INT64 = 2
    INT32 = 3
    UINT8 = 4
    BOOL = 5
    BFLOAT16 = 6

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]

    @property
    def label(self) -> str:
        """The name people and numpy use, such as ``float32``."""
        return self.name.lower()

    @property
    def is_float(self) -> bool:
        """Whether elements are floating point."""
        return self in (DType.FLOAT32, DType.BFLOAT16)

    def word(self, data: bytes | memoryview) -> int:
        """Bit pattern of the element stored in ``data`` (exactly ``size`` bytes)."""
        return int.from_bytes(data, "little")

    def signed(self, word: int) -> int:
        """Value of an integer or boolean element with bit pattern ``word``."""
        if self in (DType.INT64, DType.INT32):
            half = 1 << (8 * self.size - 1)
            return (word ^ half) - half
        return word

    def pattern(self, value: int) -> int:
        """Bit pattern of the integer ``value``, modulo the width."""
        return value & ((1 << 8 * self.size) - 1)

    @classmethod
    def from_label(cls, label: str) -> DType:
        """The type with this name; ``KeyError`` when there is none."""
        return cls[label.upper()]


_SIZES = {
    DType.FLOAT32: 4,
    DType.INT64: 8,
    DType.INT32: 4,
    DType.UINT8: 1,
    DType.BOOL: 1,
    DType.BFLOAT16: 2,
}
