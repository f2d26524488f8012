r"""Trees of RFC 6962: roots, inclusion paths, consistency proofs and aligned blocks.

Everything works on leaf hashes and says so; the record under a leaf is the business of
``state``, ``trace``, ``runlog`` and ``tensors``. The tree over seven leaves::

              root
            /      \
          .          .
        /   \      /   \
       .     .    .     6      an odd last node moves up unchanged
      / \   / \  / \
     0   1 2   3 4  5

* A path lists the siblings from the leaf upwards; its length follows from index and size.
* Blocks of ``2**k`` leaves aligned to ``2**k`` are subtrees: folding their roots gives the
  root, and a path may end at a block's root instead.

Not here: whose tree it is, and whether a root is signed. Spec: docs/spec/commitments.md
(COM-2, COM-7, COM-8).
"""

from __future__ import annotations

from collections.abc import Sequence

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import EMPTY_ROOT, fold, node_hash, path_length
from identic.protocol.ids import Digest
from identic.protocol.job.run import Frontier

Path = tuple[Digest, ...]


def root(hashes: Sequence[bytes]) -> Digest:
    """Root over leaf hashes (COM-2)."""
    return fold(hashes)


def path(hashes: Sequence[bytes], index: int) -> Path:
    """Siblings of leaf ``index`` from the bottom up, ``0 <= index < len(hashes)``."""
    if not 0 <= index < len(hashes):
        raise IndexError(f"leaf {index} of a tree of {len(hashes)}")
    siblings = []
    level = [bytes(h) for h in hashes]
    while len(level) > 1:
        if index ^ 1 < len(level):
            siblings.append(Digest(level[index ^ 1]))
        pairs = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = [*pairs, level[-1]] if len(level) % 2 else [*pairs]
        index //= 2
    return tuple(siblings)


def root_from_path(leaf: bytes, index: int, size: int, siblings: Sequence[bytes]) -> Digest:
    """Root that a leaf hash at ``index`` of ``size`` leaves leads to along ``siblings``.

    Raises:
        ProtocolError: index outside the tree, or a path of another length (COM-7).
    """
    # COM-7: an index lies inside its tree, and a path has exactly the length of that index.
    if not 0 <= index < size:
        raise ProtocolError("COM-7", Code.OUT_OF_RANGE, got=index, want=f"below {size}")
    want = path_length(index, size)
    if len(siblings) != want:
        raise ProtocolError("COM-7", Code.MALFORMED, got=f"{len(siblings)} hashes", want=want)
    node, rest, last = bytes(leaf), iter(siblings), size - 1
    while last > 0:
        if index % 2:
            node = node_hash(next(rest), node)
        elif index < last:
            node = node_hash(node, next(rest))
        index, last = index // 2, last // 2
    return Digest(node)


def blocks(hashes: Sequence[bytes], width: int) -> tuple[Digest, ...]:
    """Roots of consecutive blocks of ``width`` leaves, a power of two; the last may be shorter."""
    if width < 1 or width & (width - 1):
        raise ValueError(f"a block of {width} leaves is no subtree")
    return tuple(fold(hashes[at : at + width]) for at in range(0, len(hashes), width))


# ---- consistency of two sizes of one growing tree -------------------------------------------


def consistency(hashes: Sequence[bytes], old: int) -> Path:
    """Proof that the tree of the first ``old`` leaves is the start of this one (RFC 6962).

    Args:
        hashes: leaf hashes of the larger tree.
        old: leaves of the smaller tree, ``0 <= old <= len(hashes)``.
    """
    if not 0 <= old <= len(hashes):
        raise IndexError(f"{old} leaves of a tree of {len(hashes)}")
    if old in (0, len(hashes)):
        return ()
    return tuple(_subproof(old, hashes, whole=True))


def _subproof(old: int, hashes: Sequence[bytes], *, whole: bool) -> list[Digest]:
    """Nodes for a subtree; ``whole`` while it is a node of the old tree that the old root is."""
    if old == len(hashes):
        return [] if whole else [fold(hashes)]
    split = _split(len(hashes))
    if old <= split:
        return [*_subproof(old, hashes[:split], whole=whole), fold(hashes[split:])]
    return [*_subproof(old - split, hashes[split:], whole=False), fold(hashes[:split])]


def _split(size: int) -> int:
    """Leaves of the left child: the largest power of two below ``size >= 2``."""
    return 1 << (size - 1).bit_length() - 1


def check_consistency(
    old: int, old_root: Digest, new: int, new_root: Digest, proof: Sequence[Digest]
) -> None:
    """Check that a tree of ``old`` leaves is the start of one of ``new`` leaves.

    Raises:
        ProtocolError: the sizes, the roots or the proof do not fit (COM-8).
    """
    # COM-8: a log only grows: its old root follows from the proof, and so does the new one.
    if not 0 <= old <= new:
        raise ProtocolError("COM-8", Code.OUT_OF_RANGE, got=f"{old} leaves", want=f"at most {new}")
    if old == 0:
        computed: tuple[Digest, Digest] | None = (EMPTY_ROOT, new_root)
    elif old == new:
        computed = (new_root, new_root)
    else:
        computed = _roots(old, old_root, new, proof)
    fits = old not in (0, new) or not proof
    if computed is None or not fits:
        raise ProtocolError("COM-8", Code.MALFORMED, got=f"{len(proof)} hashes", want="a proof")
    if computed != (old_root, new_root):
        raise ProtocolError("COM-8", Code.MISMATCH, got=computed, want=(old_root, new_root))


def _roots(
    old: int, old_root: Digest, new: int, proof: Sequence[Digest]
) -> tuple[Digest, Digest] | None:
    """Old and new root that a proof leads to (RFC 9162, 2.1.4.2); ``None`` if it is too short."""
    nodes = list(proof if old & (old - 1) else (old_root, *proof))
    if not nodes:
        return None
    index, last = old - 1, new - 1
    while index % 2:
        index, last = index // 2, last // 2
    left = right = nodes[0]
    for node in nodes[1:]:
        if last == 0:
            return None
        if index % 2 or index == last:
            left, right = node_hash(node, left), node_hash(node, right)
            while index and index % 2 == 0:
                index, last = index // 2, last // 2
        else:
            right = node_hash(right, node)
        index, last = index // 2, last // 2
    return (left, right) if last == 0 else None


class IncrementalTree:
    """A tree that grows by leaves and keeps only the roots of its full subtrees."""

    def __init__(self) -> None:
        self._frontier = Frontier()

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash."""
        self._frontier = self._frontier.append(Digest(leaf))

    @property
    def size(self) -> int:
        """Number of leaves so far."""
        return self._frontier.size

    @property
    def root(self) -> Digest:
        """Root over the leaves so far."""
        return self._frontier.root
