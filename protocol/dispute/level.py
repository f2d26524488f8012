"""What a level of a dispute is, and how a wide tree is published in rounds.

A level is a node on which the two sides differ. It says which kind of move publishes its
children, whether a move fits the side's own claim, and where the leftmost difference leads:
to the next level, or to the question that the referee answers. The game itself
(``machine.py``) is the same at every level.

Spec: docs/spec/dispute.md (DSP-6 to DSP-9).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from identic.protocol.dispute.moves import Children, Pair, Side
from identic.protocol.dispute.questions import Published, Question, Where
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.spans import Span
from identic.protocol.hashing import fold
from identic.protocol.ids import Digest

M = TypeVar("M")


class Level(ABC, Generic[M]):
    """A node in dispute, whose children are published by moves of type ``M``."""

    name: ClassVar[str]
    """Word for screens and transcripts."""

    @property
    @abstractmethod
    def kind(self) -> type[M]:
        """Kind of move that publishes the children."""

    @property
    @abstractmethod
    def subject(self) -> int:
        """Number of the node: a mark, a step, a value, a chunk, an element or an entry."""

    @property
    def where(self) -> Where:
        """The place in the run that the node belongs to, as far as it is known."""
        return Where(None, None, None)

    @property
    def first(self) -> int:
        """Number of the first child of this round."""
        return 0

    @property
    def block(self) -> int:
        """Children that one item of this round stands for."""
        return 1

    def again(self, setup: Setup) -> int | None:
        """Steps that a side has to execute again for its move; ``None`` if it has it at hand."""
        del setup
        return None

    @abstractmethod
    def count(self, setup: Setup) -> int:
        """Number of items that a move of this round has."""

    @abstractmethod
    def items(self, setup: Setup, move: M) -> Sequence[object]:
        """What is compared, left to right."""

    @abstractmethod
    def bound(self, setup: Setup, side: Side, move: M) -> bool:
        """Whether a move of the right size fits the side's claim about the node (DSP-6)."""

    @abstractmethod
    def descend(self, setup: Setup, moves: Pair[M], index: int) -> Level[Any] | Question:
        """Where the leftmost difference, item ``index``, leads (DSP-7)."""


@dataclass(frozen=True)
class Tree(Level[Children]):
    """A level whose children are the leaves of a tree, published in aligned blocks (DSP-8)."""

    claims: Pair[Digest]
    """What each side claims about the node."""
    span: Span
    """Leaves of this round."""
    top: bool
    """Whether ``claims`` are about the whole level rather than roots of a block."""

    @property
    def kind(self) -> type[Children]:
        """Digests."""
        return Children

    @property
    def first(self) -> int:
        """First leaf of the round."""
        return self.span.first

    @property
    def block(self) -> int:
        """Leaves of a block."""
        return self.span.block

    @abstractmethod
    def leaf(self, setup: Setup, index: int, payload: Digest) -> Digest:
        """Leaf hash of child ``index``."""

    @abstractmethod
    def total(self, setup: Setup, root: Digest) -> Digest | None:
        """Claim that a root over all leaves amounts to; ``None`` when a root claims nothing."""

    @abstractmethod
    def landed(self, setup: Setup, index: int, moves: Pair[Children]) -> Level[Any] | Question:
        """Where a difference at a single leaf leads; ``index`` is the leaf's item."""

    @abstractmethod
    def within(self, claims: Pair[Digest], span: Span, agreed: Published) -> Level[Any]:
        """The same level inside one block of it."""

    def count(self, setup: Setup) -> int:
        """One item a block."""
        del setup
        return self.span.items

    def items(self, setup: Setup, move: Children) -> Sequence[object]:
        """The digests."""
        del setup
        return move.digests

    def bound(self, setup: Setup, side: Side, move: Children) -> bool:
        """Whether the items fold to the claim."""
        root = self.root(setup, move.digests[: self.span.items])
        claim = self.total(setup, root) if self.top else root
        return claim is None or claim == self.claims.of(side)

    def root(self, setup: Setup, digests: Sequence[Digest]) -> Digest:
        """Root over the leaves of the span from its items."""
        if self.block > 1:
            return fold(digests)
        return fold([self.leaf(setup, self.first + i, d) for i, d in enumerate(digests)])

    def descend(self, setup: Setup, moves: Pair[Children], index: int) -> Level[Any] | Question:
        """Into a block, or to where a leaf leads."""
        if self.block == 1:
            return self.landed(setup, index, moves)
        span = self.span.inside(index, setup.width)
        return self.within(given(moves, index), span, self.published(moves, index))

    def published(self, moves: Pair[Children], index: int) -> Published:
        """The items left of item ``index``, which both sides gave alike."""
        items = moves.defender.digests[:index]
        last = min(self.first + index * self.block, self.span.last)
        return Published(self.first, self.block, last, items)

    def publish(self, setup: Setup, payloads: Sequence[Digest]) -> tuple[Digest, ...]:
        """Items of this round from the payloads of all leaves of the level."""
        if self.block == 1:
            return tuple(payloads[self.span.first : self.span.last])
        ranges = (self.span.range(item) for item in range(self.span.items))
        return tuple(
            fold([self.leaf(setup, i, payloads[i]) for i in range(*leaves)]) for leaves in ranges
        )


def given(moves: Pair[Children], index: int) -> Pair[Digest]:
    """What each side gave as item ``index``."""
    return Pair(moves.defender.digests[index], moves.challenger.digests[index])
