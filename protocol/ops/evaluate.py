"""Values of folds and elements: the definition of every operator, executed literally.

``element`` runs the fold of one result element from the inputs' words. It is what a referee
relies on and what the reference kernels are compared with; it is slow by design.
"""

from __future__ import annotations

from collections.abc import Callable

from identic.protocol.ops.base import Call
from identic.protocol.ops.folds import Constant, Element, Fold, Looked, Operand, run
from identic.protocol.ops.primitives import PRIMITIVES

ReadElement = Callable[[int, int], int]
"""``read(input, element)``: the word at a flat position of an input tensor."""


def looked_position(call: Call, operand: Looked, index_word: int) -> int | None:
    """Flat position a look-up reads once its index is known, or ``None`` outside the table."""
    value = call.inputs[operand.at.input].dtype.signed(index_word)
    # OP-4: an index outside the table reads the word 0.
    if not 0 <= value < operand.bound:
        return None
    return operand.offset + operand.scale * value


def read_operand(operand: Operand, read_element: ReadElement, call: Call) -> int:
    """Word of a ``Constant``, ``Element`` or ``Looked`` operand."""
    if isinstance(operand, Constant):
        return operand.word
    if isinstance(operand, Element):
        return read_element(operand.input, operand.index)
    if isinstance(operand, Looked):
        at = read_element(operand.at.input, operand.at.index)
        position = looked_position(call, operand, at)
        return 0 if position is None else read_element(operand.input, position)
    raise TypeError(f"{operand} is resolved by the fold, not by the inputs")


def apply(primitive: str, words: tuple[int, ...]) -> int:
    """Value of a primitive step by name."""
    return PRIMITIVES[primitive].apply(words)


def entries(
    fold: Fold,
    read_element: ReadElement,
    call: Call,
    outer: tuple[tuple[int, ...], ...] = (),
) -> tuple[int, ...]:
    """Values of all entries of ``fold``; ``outer`` holds those of the enclosing folds."""
    return run(fold, lambda operand: read_operand(operand, read_element, call), apply, outer)


def element(call: Call, flat: int, read_element: ReadElement) -> int:
    """Word of the result's element at flat position ``flat``."""
    return entries(call.op.fold(call, flat), read_element, call)[-1]
