"""The run log: the solver's append-only tree of states at the marks.

Leaf ``m`` is ``RunLeaf(m, steps done, state root)``; the tree is that of RFC 6962 (COM-2).
A ``RunHead`` is a claim about the first ``marks`` leaves. Claims belong to their content:
two parties that give the same head make the same claim, and fall with it together.

Spec: docs/spec/jobs.md (JOB-3), docs/spec/commitments.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.encoding import encode
from identic.protocol.hashing import EMPTY_ROOT, leaf_hash, node_hash
from identic.protocol.ids import Count, Digest, JobId, StepIndex


@dataclass(frozen=True)
class RunLeaf:
    """One mark of the run."""

    mark: Count
    """Index of the mark; 0 is the initial state."""
    step: StepIndex
    """Steps done at the mark."""
    state_root: Digest


@dataclass(frozen=True)
class RunHead:
    """A claim about the states of a run, from the initial one on."""

    job: JobId
    marks: Count
    """Leaves under ``root``; the last is mark ``marks - 1``."""
    root: Digest


def run_leaf_hash(mark: int, step: int, state_root: Digest) -> Digest:
    """Leaf hash of one mark."""
    return leaf_hash(encode(RunLeaf(Count(mark), StepIndex(step), state_root)))


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
