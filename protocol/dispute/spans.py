"""Where a wide level is cut: integers and half-open ranges only.

A level of ``n`` children is published in one message when it has at most ``width`` items.
A wider one goes in rounds: first the roots of aligned blocks of ``width ** k`` leaves, then
the blocks inside the one that differs, down to single leaves.

Spec: docs/spec/dispute.md (DSP-8).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Leaves ``[first, last)``, published in blocks of ``block`` leaves."""

    first: int
    last: int
    block: int

    @property
    def items(self) -> int:
        """Number of blocks; the last may be shorter."""
        return -(-(self.last - self.first) // self.block)

    def range(self, item: int) -> tuple[int, int]:
        """Leaves of block ``item``, ``0 <= item < items``."""
        at = self.first + item * self.block
        return at, min(at + self.block, self.last)

    def inside(self, item: int, width: int) -> Span:
        """Block ``item``, published in the next smaller blocks; ``block > 1``."""
        first, last = self.range(item)
        return Span(first, last, self.block // width)


def whole(leaves: int, width: int, besides: int = 0) -> Span:
    """All leaves, in the smallest blocks that fit into one message.

    Args:
        leaves: number of leaves.
        width: most items of a message, a power of two, at least 2.
        besides: items that the message holds besides the blocks.
    """
    block = 1
    while -(-leaves // block) + besides > width:
        block *= width
    return Span(0, leaves, block)
