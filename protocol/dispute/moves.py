"""What the two sides of a dispute say.

* ``Children``, ``Chunk`` and ``Entries`` publish the children of the node in dispute; both
  sides make one in every round.
* ``Evidence`` opens the operands of the one step that is left; either side may give it.
* ``SignedMove`` binds a move to its dispute, its round and its party.

Spec: docs/spec/dispute.md (DSP-4, DSP-5, DSP-14).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Generic, TypeVar

from identic.protocol.ids import Count, Digest, PartyId, Signature, TraceIndex, Unsigned

WIDTH = 2048
"""Most digests of one ``Children`` move."""

MAX_EVIDENCE_BYTES = 64 * 1024
"""Largest encoding of an ``Evidence`` move, in bytes."""

T = TypeVar("T")


class Side(IntEnum):
    """The two sides; numbered as ``Loser`` of the coordinator's log."""

    DEFENDER = 1
    """Who made the claim: the solver, or a verifier that vouches for it."""
    CHALLENGER = 2
    """Who claims another result."""

    @property
    def other(self) -> Side:
        """The opponent."""
        return Side.CHALLENGER if self is Side.DEFENDER else Side.DEFENDER


@dataclass(frozen=True)
class Pair(Generic[T]):
    """Something of each side."""

    defender: T
    challenger: T

    def of(self, side: Side) -> T:
        """The part of one side."""
        return self.defender if side is Side.DEFENDER else self.challenger


@dataclass(frozen=True)
class Children:
    """Digests of the children of a tree's node: payloads of leaves, or roots of blocks."""

    TAG: ClassVar[int] = 1
    digests: tuple[Digest, ...]
    """As many as the level has items in this round, at most 2,048."""


@dataclass(frozen=True)
class Chunk:
    """The bytes of a tensor's chunk."""

    TAG: ClassVar[int] = 2
    data: bytes
    """At most 4,096 bytes, little end first as in the tensor."""


@dataclass(frozen=True)
class Entries:
    """Values of a fold's entries."""

    TAG: ClassVar[int] = 3
    words: tuple[Unsigned, ...]
    """Bit patterns, one an entry, at most 2,048."""


@dataclass(frozen=True)
class LeafOpening:
    """A leaf of the trace or the run log under an agreed block's root."""

    index: Unsigned
    """Position in the whole tree: a plan value, or a mark."""
    digest: Digest
    """Payload of the leaf: a tensor digest or a state root."""
    path: tuple[Digest, ...]
    """Siblings up to the agreed block's root (COM-7)."""


@dataclass(frozen=True)
class StateOpening:
    """A tensor digest under a state's root."""

    index: Unsigned
    """Tensor number in the state's order."""
    digest: Digest
    path: tuple[Digest, ...]
    """Siblings up to the root of the state's tree (COM-4)."""


@dataclass(frozen=True)
class ChunkOpening:
    """A chunk under a tensor's digest."""

    value: TraceIndex
    """Plan value that the tensor is."""
    chunk: Count
    """Chunk number."""
    data: bytes
    """The chunk's bytes."""
    path: tuple[Digest, ...]
    """Siblings up to the root over the chunks (COM-3)."""


@dataclass(frozen=True)
class Evidence:
    """Openings of what the last question needs: exactly those, each once, in order of need."""

    TAG: ClassVar[int] = 4
    leaves: tuple[LeafOpening, ...]
    states: tuple[StateOpening, ...]
    chunks: tuple[ChunkOpening, ...]


NO_EVIDENCE = Evidence((), (), ())

Move = Children | Chunk | Entries | Evidence


@dataclass(frozen=True)
class MoveBody:
    """What a party signs for a move, under the label ``move`` (DSP-14)."""

    dispute: Digest
    """The dispute's name; a move counts in no other."""
    turn: Count
    """Rounds completed before; a move counts in no other round."""
    party: PartyId
    """Who moves."""
    move: Move


@dataclass(frozen=True)
class SignedMove:
    """A move with its party's signature over the body."""

    body: MoveBody
    signature: Signature
