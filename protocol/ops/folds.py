"""How one element of an operator's result is computed, step by step.

A *fold* is a list of entries with values. An entry is one primitive step over operands, or
a nested fold, whose value is that of its last entry. The value of the fold is that of its
last entry. A dispute publishes the values of one fold's entries, finds the leftmost that
differs, and either enters the nested fold or lets the referee compute the primitive step:
everything to the left is agreed.

Entries are made on demand, so that the referee's work does not grow with the operator.

* No fold has more than ``MAX_ENTRIES`` entries; ``chain`` nests longer ones.
* An operand refers to input tensors, constants, earlier entries of the same fold, or
  entries of an enclosing fold that lie to the left of the nested one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MAX_ENTRIES = 2048
"""Most entries of one fold: one message of a dispute carries their values."""

CHAIN_BLOCK = 1024
"""Length of the innermost piece of a nested chain."""


@dataclass(frozen=True)
class Constant:
    """A word known from the program."""

    word: int


@dataclass(frozen=True)
class Element:
    """The element at flat position ``index`` of input tensor ``input``."""

    input: int
    index: int


@dataclass(frozen=True)
class Looked:
    """An element whose position depends on an integer read from another input.

    With ``v`` the signed value of ``at``: the element at ``offset + scale * v`` of tensor
    ``input`` when ``0 <= v < bound``, and the word 0 otherwise (OP-4).
    """

    input: int
    at: Element
    scale: int
    offset: int
    bound: int


@dataclass(frozen=True)
class Entry:
    """The value of an earlier entry of the same fold."""

    index: int


@dataclass(frozen=True)
class Outer:
    """The value of entry ``index`` of the fold ``up`` levels outside this one."""

    index: int
    up: int = 1


Operand = Constant | Element | Looked | Entry | Outer


@dataclass(frozen=True)
class Step:
    """One primitive step: ``primitive`` names a row of ``protocol/ops/primitives.py``."""

    primitive: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Nested:
    """An entry that is itself a fold."""

    fold: Fold


@dataclass(frozen=True)
class Fold:
    """``length >= 1`` entries; ``at(i)`` describes entry ``i``."""

    length: int
    at: Callable[[int], Step | Nested]

    def entry(self, index: int) -> Step | Nested:
        """Describe entry ``index``, ``0 <= index < length``."""
        if not 0 <= index < self.length:
            raise IndexError(f"entry {index} of a fold of {self.length}")
        return self.at(index)


def single(primitive: str, *operands: Operand) -> Fold:
    """A fold of one step, for operators whose element is one primitive step."""
    step = Step(primitive, operands)
    return Fold(1, lambda _: step)


def lift(operand: Operand) -> Operand:
    """The same operand, seen from inside a fold nested in this one."""
    if isinstance(operand, Entry):
        return Outer(operand.index)
    if isinstance(operand, Outer):
        return Outer(operand.index, operand.up + 1)
    return operand


def chain(length: int, step: Callable[[int, Operand], Step], start: Operand) -> Fold:
    """A running value: entry ``i`` is ``step(i, previous)``, the first with ``start``.

    ``length >= 1``. Chains longer than ``CHAIN_BLOCK`` become chains of nested chains.
    """
    if length <= CHAIN_BLOCK:
        return Fold(length, lambda i: step(i, Entry(i - 1) if i else start))
    block = CHAIN_BLOCK
    while length > block * CHAIN_BLOCK:
        block *= CHAIN_BLOCK

    def nested(group: int) -> Nested:
        first = group * block
        carry = lift(Entry(group - 1) if group else start)
        return Nested(chain(min(block, length - first), lambda i, acc: step(first + i, acc), carry))

    return Fold(-(-length // block), nested)


def run(
    fold: Fold,
    read: Callable[[Operand], int],
    apply: Callable[[str, tuple[int, ...]], int],
    outer: tuple[tuple[int, ...], ...] = (),
) -> tuple[int, ...]:
    """Values of all entries of ``fold``, computed in order.

    Args:
        fold: what to compute.
        read: word of a ``Constant``, ``Element`` or ``Looked`` operand.
        apply: value of a primitive, by name, on operand words.
        outer: entry values of the enclosing folds, innermost last, as far as they are known.
    """
    values: list[int] = []

    def word(operand: Operand) -> int:
        if isinstance(operand, Entry):
            return values[operand.index]
        if isinstance(operand, Outer):
            return outer[-operand.up][operand.index]
        return read(operand)

    for index in range(fold.length):
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            values.append(run(entry.fold, read, apply, (*outer, tuple(values)))[-1])
        else:
            values.append(apply(entry.primitive, tuple(word(o) for o in entry.operands)))
    return tuple(values)
