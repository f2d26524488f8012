"""Shapes, and how a tensor falls into chunks and elements. Integers only.

A tensor is its elements in row-major order, little end first. A chunk is 4,096 bytes of
it, the leaf of its tree; the last chunk may be shorter; an empty tensor has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Unsigned

CHUNK_BYTES = 4096
MAX_RANK = 8
MAX_BYTES = 1 << 46

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorType:
    """Element type and shape of a tensor."""

    dtype: DType
    shape: tuple[Unsigned, ...]
    """Lengths of the axes, outermost first; ``()`` is a scalar."""

    @classmethod
    def of(cls, dtype: DType, shape: Sequence[int]) -> TensorType:
        """Build from plain integers, checked (PRG-3)."""
        kind = cls(dtype, tuple(Unsigned(n) for n in shape))
        kind.check()
        return kind

    def check(self) -> None:
        """Refuse a rank or a size beyond the limits."""
        # PRG-3: a tensor has at most 8 axes and at most 2**46 bytes, empty axes left aside.
        large = len(self.shape) > MAX_RANK
        if large or math.prod(n for n in self.shape if n) * self.dtype.size > MAX_BYTES:
            raise ProtocolError(
                "PRG-3",
                Code.TOO_LARGE,
                got=f"{len(self.shape)} axes" if large else self,
                want=f"rank <= {MAX_RANK} and at most {MAX_BYTES} bytes",
            )

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Length in bytes."""
        return self.elements * self.dtype.size

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.nbytes // CHUNK_BYTES)

    @property
    def chunk_elements(self) -> int:
        """Elements of a full chunk; every element size divides 4,096."""
        return CHUNK_BYTES // self.dtype.size

    def __str__(self) -> str:
        return f"{self.dtype.label}[{', '.join(str(n) for n in self.shape)}]"


def strides(shape: Sequence[int]) -> Shape:
    """Row-major strides in elements."""
    out, step = [], 1
    for length in reversed(shape):
        out.append(step)
        step *= length
    return tuple(reversed(out))


def unravel(flat: int, shape: Sequence[int]) -> Shape:
    """Index along each axis of the element at ``flat``, ``0 <= flat < prod(shape)``."""
    out = []
    for length in reversed(shape):
        flat, index = divmod(flat, length)
        out.append(index)
    return tuple(reversed(out))


def ravel(index: Sequence[int], shape: Sequence[int]) -> int:
    """Flat position of the element at ``index``."""
    flat = 0
    for i, length in zip(index, shape, strict=True):
        flat = flat * length + i
    return flat


def broadcast_shapes(shapes: Sequence[Sequence[int]]) -> Shape:
    """Common shape of operands, axes aligned at the last; an axis of length 1 repeats.

    Raises:
        ProtocolError: two lengths differ and neither is 1 (OP-2).
    """
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for axis in range(rank):
        lengths = {s[len(s) - rank + axis] for s in shapes if len(s) - rank + axis >= 0} - {1}
        # OP-2: operands' axes are equal or 1.
        if len(lengths) > 1:
            raise ProtocolError(
                "OP-2",
                Code.MISMATCH,
                got=[tuple(s) for s in shapes],
                want="shapes that broadcast",
            )
        out.append(lengths.pop() if lengths else 1)
    return tuple(out)


def broadcast_index(flat: int, shape: Sequence[int], operand: Sequence[int]) -> int:
    """Flat position in ``operand`` of the element that meets ``flat`` of ``shape``."""
    index = unravel(flat, shape)[len(shape) - len(operand) :]
    return ravel([0 if n == 1 else i for i, n in zip(index, operand, strict=True)], operand)
