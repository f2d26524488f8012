"""The commitment to a state: its header and one digest a tensor.

The root is enough to hold someone to every bit of the state; one tensor's digest is opened
against it with a path. Spec: docs/spec/commitments.md (COM-4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from identic.proofs import merkle
from identic.protocol.commitments import (
    StateHeader,
    header_digest,
    state_leaf,
    state_root_of,
)
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import fold
from identic.protocol.ids import Digest


@dataclass(frozen=True)
class StateCommitment:
    """A state in digests."""

    header: StateHeader
    digests: tuple[Digest, ...]
    """Tensor digests in the state's order, the loss last."""

    @cached_property
    def leaves(self) -> tuple[Digest, ...]:
        """Leaf hashes of the state's tree, the header's first."""
        return _leaves(header_digest(self.header), self.digests)

    @property
    def root(self) -> Digest:
        """The state's root."""
        return state_root_of(fold(self.leaves))

    def opening(self, index: int) -> merkle.Path:
        """Path of tensor ``index``, for ``check_state_opening``."""
        return merkle.path(self.leaves, index + 1)


def _leaves(header: Digest, digests: Sequence[Digest]) -> tuple[Digest, ...]:
    return tuple(state_leaf(i, digest) for i, digest in enumerate((header, *digests)))


def state_path(header: Digest, digests: Sequence[Digest], index: int) -> merkle.Path:
    """Path of tensor ``index`` in the tree of a state given by its digests."""
    return merkle.path(_leaves(header, digests), index + 1)


def check_state_opening(
    root: Digest, tensors: int, index: int, digest: Digest, path: Sequence[Digest]
) -> None:
    """Check that tensor ``index`` of the ``tensors`` tensors of state ``root`` has ``digest``.

    Raises:
        ProtocolError: the path does not lead to the root (COM-4, COM-7).
    """
    leaf = state_leaf(index + 1, digest)
    found = state_root_of(merkle.root_from_path(leaf, index + 1, tensors + 1, path))
    # COM-4: an opened tensor leads to the state's root.
    if found != root:
        raise ProtocolError("COM-4", Code.MISMATCH, got=found, want=root)
