"""The commitment to one step: a leaf for each value, then the new state's root.

Spec: docs/spec/commitments.md (COM-5).
"""

from __future__ import annotations

from collections.abc import Sequence

from identic.proofs import merkle
from identic.protocol.commitments import trace_leaf
from identic.protocol.hashing import fold
from identic.protocol.ids import Digest


def trace_hashes(step: int, digests: Sequence[Digest]) -> list[Digest]:
    """Leaf hashes of a trace.

    Args:
        step: the step, counted from 0.
        digests: the digest of each plan value in order, then the root of the new state.
    """
    return [trace_leaf(step, index, digest) for index, digest in enumerate(digests)]


def trace_root(step: int, digests: Sequence[Digest]) -> Digest:
    """Root of a step's trace; see ``trace_hashes`` for the arguments."""
    return fold(trace_hashes(step, digests))


def block_path(
    step: int, digests: Sequence[Digest], index: int, first: int, size: int
) -> merkle.Path:
    """Path of value ``index`` inside the aligned block of values ``[first, first + size)``."""
    hashes = [trace_leaf(step, i, digests[i]) for i in range(first, first + size)]
    return merkle.path(hashes, index - first)
