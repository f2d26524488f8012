"""The lower levels of a dispute: the bytes of a chunk, and the partial sums of an element.

Below a chunk nothing is hashed: a claim is a word. The last entry of a fold is its value, so
a list of entries is bound to the claim above by its last word. Folds of one entry are
entered without a move, since that entry is already claimed.

Spec: docs/spec/dispute.md (DSP-6, DSP-11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from identic.protocol.dispute.clocks import LONG, weight
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.moves import Chunk, Entries, Pair, Side
from identic.protocol.dispute.questions import Agreed, Question, StepQuestion, Where
from identic.protocol.dispute.setup import Setup
from identic.protocol.hashing import leaf_hash
from identic.protocol.ids import Digest
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.program.plan import PlannedCall
from identic.protocol.tensors import CHUNK_BYTES, TensorType


def planned(setup: Setup, value: int) -> PlannedCall:
    """The operator that makes ``value``, which is no load."""
    call = setup.plan.call(value)
    if call is None:
        raise TypeError(f"value {value} is a load")
    return call


def words(kind: TensorType, data: bytes) -> list[int]:
    """Bit patterns of the elements in a chunk's bytes."""
    size = kind.dtype.size
    return [kind.dtype.word(data[at : at + size]) for at in range(0, len(data), size)]


@dataclass(frozen=True)
class ChunkLevel(Level[Chunk]):
    """The elements of one chunk."""

    name: ClassVar[str] = "chunk"

    step: int
    value: int
    chunk: int
    trace: Agreed
    claims: Pair[Digest]
    """Leaf hash of the chunk by each side."""

    @property
    def kind(self) -> type[Chunk]:
        """Bytes."""
        return Chunk

    @property
    def subject(self) -> int:
        """The chunk."""
        return self.chunk

    @property
    def where(self) -> Where:
        """The operator's result."""
        return Where(self.step, self.value, None)

    def count(self, setup: Setup) -> int:
        """Elements of this chunk; the last one may be shorter."""
        kind = setup.plan.type(self.value)
        return min(kind.chunk_elements, kind.elements - self.chunk * kind.chunk_elements)

    def items(self, setup: Setup, move: Chunk) -> Sequence[object]:
        """Words of whole elements; a rest of bytes would be one item too many."""
        return words(setup.plan.type(self.value), move.data[: CHUNK_BYTES + 1])

    def bound(self, setup: Setup, side: Side, move: Chunk) -> bool:
        """Whether the bytes are as many as the type says and hash to the claimed leaf."""
        size = self.count(setup) * setup.plan.type(self.value).dtype.size
        return len(move.data) == size and leaf_hash(move.data) == self.claims.of(side)

    def descend(self, setup: Setup, moves: Pair[Chunk], index: int) -> Level[Any] | Question:
        """Into the fold of the first element that differs."""
        kind = setup.plan.type(self.value)
        call = planned(setup, self.value).call
        element = self.chunk * kind.chunk_elements + index
        at = Fragment(self.step, self.value, element, self.trace)
        ours, theirs = (words(kind, moves.of(side).data)[index] for side in Side)
        return enter(at, call.op.fold(call, element), Pair(ours, theirs))


@dataclass(frozen=True)
class Fragment:
    """One element, and how far into its fold the dispute has come."""

    step: int
    value: int
    element: int
    trace: Agreed
    path: tuple[int, ...] = ()
    """Entries entered, outermost first."""
    outer: tuple[tuple[int, ...], ...] = ()
    """Agreed words of the enclosing folds' earlier entries, innermost last."""

    def inside(self, entry: int, agreed: tuple[int, ...]) -> Fragment:
        """Within entry ``entry`` of the present fold, whose earlier entries are ``agreed``."""
        return replace(self, path=(*self.path, entry), outer=(*self.outer, agreed))


def enter(at: Fragment, fold: Fold, claims: Pair[int]) -> Level[Any] | Question:
    """The level of a fold; one of a single entry needs no move (DSP-11)."""
    if fold.length == 1:
        return resolve(at, fold, 0, (), claims)
    return FoldLevel(at, fold, claims)


def resolve(
    at: Fragment, fold: Fold, index: int, agreed: tuple[int, ...], claims: Pair[int]
) -> Level[Any] | Question:
    """Where a difference at entry ``index`` leads: into it, or to the referee."""
    entry = fold.entry(index)
    if isinstance(entry, Nested):
        return enter(at.inside(index, agreed), entry.fold, claims)
    return StepQuestion(
        step=at.step,
        value=at.value,
        element=at.element,
        path=(*at.path, index),
        primitive=entry,
        entries=agreed,
        outer=at.outer,
        trace=at.trace,
        claims=claims,
    )


@dataclass(frozen=True)
class FoldLevel(Level[Entries]):
    """The entries of one fold of an element."""

    name: ClassVar[str] = "fold"

    at: Fragment
    fold: Fold
    claims: Pair[int]
    """Value of the fold by each side."""

    @property
    def kind(self) -> type[Entries]:
        """Words."""
        return Entries

    @property
    def where(self) -> Where:
        """The element."""
        return Where(self.at.step, self.at.value, self.at.element)

    @property
    def subject(self) -> int:
        """The element, or the entry that is itself a fold."""
        return self.at.path[-1] if self.at.path else self.at.element

    def again(self, setup: Setup) -> int | None:
        """No step, but a long fold takes as long as one."""
        del setup
        return 0 if weight(self.fold) > LONG else None

    def count(self, setup: Setup) -> int:
        """Entries of the fold."""
        del setup
        return self.fold.length

    def items(self, setup: Setup, move: Entries) -> Sequence[object]:
        """The words."""
        del setup
        return move.words

    def bound(self, setup: Setup, side: Side, move: Entries) -> bool:
        """Whether the last entry is the claimed value of the fold."""
        del setup
        return int(move.words[-1]) == self.claims.of(side)

    def descend(self, setup: Setup, moves: Pair[Entries], index: int) -> Level[Any] | Question:
        """Into a nested fold, or to the primitive step."""
        del setup
        agreed = tuple(int(word) for word in moves.defender.words[:index])
        claims = Pair(int(moves.defender.words[index]), int(moves.challenger.words[index]))
        return resolve(self.at, self.fold, index, agreed, claims)
