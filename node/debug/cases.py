"""Calls of operators with words for their inputs, and what they are made from at random.

Float words include both zeros, subnormals, infinities, NaNs of several payloads, the largest
and the smallest numbers; shapes include empty axes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.program.types import Attribute
from identic.protocol.tensors import TensorType

F32, I64, I32, U8, BOOL, BF16 = (
    DType.FLOAT32,
    DType.INT64,
    DType.INT32,
    DType.UINT8,
    DType.BOOL,
    DType.BFLOAT16,
)

SPECIAL: dict[DType, tuple[int, ...]] = {
    F32: (
        0x00000000,
        0x80000000,
        0x00000001,
        0x80000001,
        0x007FFFFF,
        0x00800000,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0xFFC00000,
        0x7F800001,
        0x3F800000,
        0xBF800000,
        0x4B800000,
        0x33800000,
    ),
    I64: (0, 1, 2**64 - 1, 2**63 - 1, 2**63, 2**31, 2**53 + 1),
    I32: (0, 1, 2**32 - 1, 2**31 - 1, 2**31),
    U8: (0, 1, 127, 128, 255),
    BOOL: (0, 1),
    BF16: (0, 0x8000, 1, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F7F, 0x3F80),
}
"""Words that every element type gets often."""

Inputs = list[list[int]]


@dataclass(frozen=True)
class Case:
    """A call and the words of its inputs."""

    call: Call
    inputs: Inputs

    def read(self, number: int, element: int) -> int:
        """Word of one element of one input."""
        return self.inputs[number][element]


class Maker:
    """Random shapes, words and attributes for one case.

    Args:
        seed: what everything follows from.
        finite: whether special words are left out.
    """

    def __init__(self, seed: int, *, finite: bool = False) -> None:
        self.random = random.Random(seed)  # noqa: S311 - it makes test data
        self.special = 0.0 if finite else self.random.choice([0.0, 0.1, 0.5])

    def dtype(self, *allowed: DType) -> DType:
        """One of the element types."""
        return self.random.choice(allowed)

    def length(self, most: int = 5) -> int:
        """A length of an axis, small or 0."""
        return self.random.choice([0, 1, 1, 2, 3, self.random.randint(1, most)])

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        """A shape of ``least`` to ``most`` axes."""
        return tuple(self.length() for _ in range(self.random.randint(least, most)))

    def word(self, dtype: DType) -> int:
        """One element: now and then a special one, mostly an ordinary one."""
        if self.random.random() < self.special:
            return self.random.choice(SPECIAL[dtype])
        if dtype is F32:
            # Mostly near 1, where sums and products neither overflow nor vanish.
            field = self.random.choice([self.random.randint(120, 134), self.random.randint(0, 254)])
            return self.random.getrandbits(1) << 31 | field << 23 | self.random.getrandbits(23)
        if dtype is BOOL:
            return self.random.getrandbits(1)
        return self.random.getrandbits(8 * dtype.size)

    def words(self, kind: TensorType) -> list[int]:
        """The elements of a tensor."""
        return [self.word(kind.dtype) for _ in range(kind.elements)]

    def indices(self, kind: TensorType, bound: int) -> list[int]:
        """Indices mostly inside ``[0, bound)``, some just outside, a few far away."""
        values = []
        for _ in range(kind.elements):
            near = self.random.randint(-1, bound)
            inside = self.random.randint(0, max(0, bound - 1))
            value = self.random.choice([inside, inside, inside, near])
            if self.random.random() < 0.05:
                value = self.random.choice([-(2**31), 2**31 - 1])
            values.append(kind.dtype.pattern(value))
        return values

    def broadcastable(self, count: int) -> list[tuple[int, ...]]:
        """Shapes that broadcast together."""
        whole = self.shape()
        out = []
        for _ in range(count):
            kept = whole[self.random.randint(0, len(whole)) if self.random.random() < 0.3 else 0 :]
            out.append(tuple(1 if self.random.random() < 0.25 else n for n in kept))
        return out


def case(name: str, kinds: Sequence[TensorType], inputs: Inputs, **attributes: object) -> Case:
    """Build a case; an attribute is an int or a sequence of ints."""
    pairs = tuple(
        Attribute(key, (value,) if isinstance(value, int) else tuple(value))  # type: ignore[arg-type]
        for key, value in sorted(attributes.items())
    )
    return Case(TABLE[name].call(tuple(kinds), pairs), inputs)
