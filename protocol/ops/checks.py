"""Refusals that several operators share, each under its rule."""

from __future__ import annotations

from collections.abc import Sequence

from identic.protocol.dtypes import DType
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.tensors import MAX_RANK, TensorType


def need_dtype(op: str, kind: TensorType, allowed: Sequence[DType]) -> None:
    """Refuse an operand of a type outside ``allowed``."""
    # OP-1: operands have the element types that the operator's rule lists.
    if kind.dtype not in allowed:
        want = " or ".join(d.label for d in allowed)
        raise ProtocolError("OP-1", Code.MISMATCH, got=f"{op} of {kind}", want=want)


def need_equal_dtypes(op: str, a: TensorType, b: TensorType) -> None:
    """Refuse operands of different element types; nothing is converted silently."""
    # OP-1: operands have the element types that the operator's rule lists.
    if a.dtype is not b.dtype:
        raise ProtocolError(
            "OP-1", Code.MISMATCH, got=f"{op} of {a} and {b}", want="equal element types"
        )


def need_rank(op: str, kind: TensorType, least: int) -> None:
    """Refuse a tensor with fewer than ``least`` axes."""
    # OP-3: operands have the shapes that the operator's rule asks for.
    if len(kind.shape) < least:
        raise ProtocolError("OP-3", Code.MISMATCH, got=f"{op} of {kind}", want=f"rank >= {least}")


def need_shape(op: str, holds: bool, *, got: object, want: str) -> None:
    """Refuse shapes outside the operator's rule."""
    # OP-3: operands have the shapes that the operator's rule asks for.
    if not holds:
        raise ProtocolError("OP-3", Code.MISMATCH, got=f"{op} of {got}", want=want)


def need_attribute(op: str, name: str, holds: bool, *, got: object, want: str) -> None:
    """Refuse an attribute outside its range."""
    # OP-5: attributes lie in the ranges that the operator's rule states.
    if not holds:
        raise ProtocolError("OP-5", Code.OUT_OF_RANGE, got=f"{op} {name} {got}", want=want)


def dtype_attribute(op: str, value: int) -> DType:
    """Element type with code ``value``."""
    need_attribute(op, "dtype", value in set(DType), got=value, want="the code of an element type")
    return DType(value)


def shape_attribute(op: str, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape given as an attribute."""
    holds = len(shape) <= MAX_RANK and all(n >= 0 for n in shape)
    need_attribute(op, "shape", holds, got=tuple(shape), want=f"at most {MAX_RANK} lengths >= 0")
    return tuple(shape)


def word_attribute(op: str, name: str, dtype: DType, value: int) -> int:
    """Word of an attribute that gives an element.

    Elements of eight bytes are given as signed numbers, since an attribute is one; others as
    their bit pattern. ``attribute_of_word`` is the other direction.
    """
    if dtype.size == 8:
        signed = -(1 << 63) <= value < 1 << 63
        need_attribute(op, name, signed, got=value, want=f"a signed number for {dtype.label}")
        return dtype.pattern(value)
    top = 1 if dtype is DType.BOOL else (1 << 8 * dtype.size) - 1
    need_attribute(op, name, 0 <= value <= top, got=value, want=f"a word of {dtype.label}")
    return value


def attribute_of_word(dtype: DType, word: int) -> int:
    """The attribute value that stands for ``word``."""
    return dtype.signed(word) if dtype.size == 8 else word
