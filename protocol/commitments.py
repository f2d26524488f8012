"""The records under every commitment, and the digests made of them.

A commitment is the root of a tree of leaf hashes (``protocol/hashing.py``). This module says
which bytes a leaf is made of; the trees themselves, with their paths, are in ``proofs/``.

* A leaf names its own position, so that it cannot be opened at another one.
* Everything that influences a later bit is under the state's root: tensors, program, seed,
  step and cursor.
* The last leaf of a step's trace binds the new state's root, so that nothing can be changed
  at the seam between step and trace.

Spec: docs/spec/commitments.md (COM-3 to COM-8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from identic.protocol.encoding import encode
from identic.protocol.hashing import Domain, fold, leaf_hash, tagged
from identic.protocol.ids import Count, Digest, JobId, StepIndex, TraceIndex, Unsigned
from identic.protocol.tensors import TensorType


@dataclass(frozen=True)
class TensorHeader:
    """What a tensor's digest binds (COM-3)."""

    type: TensorType
    """Element type and shape."""
    nbytes: Count
    """Length in bytes; follows from the type and is stated for readers of the bytes alone."""
    chunk_root: Digest
    """Root over the leaf hashes of the tensor's 4,096-byte chunks."""


@dataclass(frozen=True)
class StateHeader:
    """What a state holds besides its tensors (COM-4)."""

    program: Digest
    """Digest of the program that made the state and continues from it."""
    seed: Unsigned
    """Seed of all random numbers of the job."""
    step: StepIndex
    """Steps done so far; 0 for the initial state."""
    cursor: Count
    """Examples taken so far: ``step * shards * examples``."""


@dataclass(frozen=True)
class StateLeaf:
    """One tensor of a state (COM-4)."""

    index: Unsigned
    """Position in the state's order."""
    digest: Digest
    """Tensor digest."""


@dataclass(frozen=True)
class TraceLeaf:
    """One value of a step, or the new state's root as the last (COM-5)."""

    step: StepIndex
    """The step the value belongs to, counted from 0."""
    index: TraceIndex
    """Value number of the plan."""
    digest: Digest
    """Tensor digest; for the last leaf the root of the state after the step."""


@dataclass(frozen=True)
class RunLeaf:
    """One mark of a run (COM-6)."""

    mark: Unsigned
    """Position in the run log; mark 0 is the initial state."""
    step: StepIndex
    """Steps done at the mark: ``min(mark * cadence, steps)``."""
    state: Digest
    """Root of the state at the mark."""


@dataclass(frozen=True)
class RunHead:
    """The run log so far, signed by the solver as it grows (COM-6)."""

    job: JobId
    """Digest of the job's terms."""
    marks: Count
    """Number of leaves under the root, the initial state's included."""
    root: Digest
    """Root over the run's leaves."""


def digest_of(kind: TensorType, chunk_root: Digest) -> Digest:
    """Tensor digest from the root over its chunks (COM-3)."""
    return tagged(Domain.TENSOR, encode(TensorHeader(kind, Count(kind.nbytes), chunk_root)))


def header_digest(header: StateHeader) -> Digest:
    """Digest of a state's header: the first leaf of the state's tree (COM-4)."""
    return tagged(Domain.STATE_HEADER, encode(header))


def state_leaf(index: int, digest: Digest) -> Digest:
    """Leaf hash at position ``index`` of a state's tree; position 0 is the header (COM-4)."""
    if index == 0:
        return leaf_hash(digest)
    return leaf_hash(encode(StateLeaf(Unsigned(index - 1), digest)))


def state_root(header: Digest, digests: Sequence[Digest]) -> Digest:
    """Root of a state from its header's digest and its tensors' digests (COM-4)."""
    leaves = [state_leaf(i, digest) for i, digest in enumerate((header, *digests))]
    return state_root_of(fold(leaves))


def state_root_of(tree: Digest) -> Digest:
    """Root of a state from the root of its tree (COM-4)."""
    return tagged(Domain.STATE, tree)


def trace_leaf(step: int, index: int, digest: Digest) -> Digest:
    """Leaf hash of value ``index`` of a step's trace (COM-5)."""
    return leaf_hash(encode(TraceLeaf(StepIndex(step), TraceIndex(index), digest)))


def run_leaf(mark: int, step: int, state: Digest) -> Digest:
    """Leaf hash of mark ``mark`` of a run log (COM-6)."""
    return leaf_hash(encode(RunLeaf(Unsigned(mark), StepIndex(step), state)))


def mark_step(mark: int, cadence: int, steps: int) -> int:
    """Steps done at mark ``mark``, for ``cadence >= 1`` (COM-6)."""
    return min(mark * cadence, steps)


def mark_count(cadence: int, steps: int) -> int:
    """Marks of a whole run: the initial state, and one each ``cadence`` steps (COM-6)."""
    return 1 + -(-steps // cadence)
