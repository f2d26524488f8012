"""The run log as the job board keeps it: a tree that only grows.

The leaves are those of ``protocol/commitments.py``; the tree is that of RFC 6962 (COM-2).
A ``RunHead`` is a claim about the first ``marks`` leaves.

Spec: docs/spec/jobs.md (JOB-3), docs/spec/commitments.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.commitments import RunHead
from identic.protocol.hashing import EMPTY_ROOT, node_hash
from identic.protocol.ids import Digest

__all__ = ["Frontier", "RunHead"]


@dataclass(frozen=True)
class Frontier:
    """A tree of RFC 6962 that only grows: the roots of its full subtrees, largest first."""

    size: int = 0
    roots: tuple[Digest, ...] = ()

    def append(self, leaf: Digest) -> Frontier:
        """Add one leaf hash; as many subtrees merge as ``size`` has trailing one bits."""
        roots, node, rest = list(self.roots), leaf, self.size
        while rest & 1:
            node = node_hash(roots.pop(), node)
            rest >>= 1
        return Frontier(self.size + 1, (*roots, node))

    @property
    def root(self) -> Digest:
        """Root over all leaves so far."""
        if not self.roots:
            return EMPTY_ROOT
        node = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            node = node_hash(left, node)
        return node
