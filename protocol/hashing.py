"""SHA-256 with one domain label per use, and the shape of RFC 6962 trees.

* ``tagged(domain, payload)``: SHA-256 of the label's length (one byte), the label, the payload.
* Leaves and nodes of every tree are SHA-256 of ``00 || leaf`` and ``01 || left || right``;
  an odd node is never duplicated; the root of no leaves is SHA-256 of nothing.

Spec: docs/spec/commitments.md (COM-1, COM-2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum

from identic.protocol.ids import Digest

LEAF_PREFIX = b"\x00"
NODE_PREFIX = b"\x01"
EMPTY_ROOT = Digest(hashlib.sha256(b"").digest())


class Domain(StrEnum):
    """Labels that keep one kind of digest from passing for another."""

    TENSOR = "identic/1/tensor"
    PROGRAM = "identic/1/program"
    TERMS = "identic/1/terms"
    STATE_HEADER = "identic/1/state-header"
    STATE = "identic/1/state"
    TRACE = "identic/1/trace"
    RUN = "identic/1/run"
    CONTEXT = "identic/1/context"
    RANDOM = "identic/1/random"
    MESSAGE = "identic/1/message"
    MOVE = "identic/1/move"
    LOG = "identic/1/log"
    VERDICT = "identic/1/verdict"
    WORK = "identic/1/work"
    DISPUTE = "identic/1/dispute"
    TRANSCRIPT = "identic/1/transcript"
    RECEIPT = "identic/1/receipt"
    BLOB = "identic/1/blob"
    TLS = "identic/1/tls"


def sha256(data: bytes | memoryview) -> Digest:
    """Plain SHA-256."""
    return Digest(hashlib.sha256(data).digest())


def tagged(domain: Domain, payload: bytes) -> Digest:
    """Digest of ``payload`` under a domain label (COM-1)."""
    label = domain.value.encode()
    return Digest(hashlib.sha256(bytes([len(label)]) + label + payload).digest())


def leaf_hash(leaf: bytes | memoryview) -> Digest:
    """Hash of one leaf (COM-2)."""
    hasher = hashlib.sha256(LEAF_PREFIX)
    hasher.update(leaf)
    return Digest(hasher.digest())


def node_hash(left: bytes, right: bytes) -> Digest:
    """Hash of an inner node (COM-2)."""
    return Digest(hashlib.sha256(NODE_PREFIX + left + right).digest())


def fold(hashes: Sequence[bytes]) -> Digest:
    """Root over leaf hashes, or over the roots of aligned full blocks and a last shorter one.

    Folding neighbours level by level and carrying an odd last node up unchanged gives the
    tree of RFC 6962. Since blocks of ``2**k`` leaves aligned to ``2**k`` are subtrees of it,
    folding their roots gives the root over the leaves.
    """
    if not hashes:
        return EMPTY_ROOT
    level = [bytes(h) for h in hashes]
    while len(level) > 1:
        paired = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = [*paired, level[-1]] if len(level) % 2 else list(paired)
    return Digest(level[0])


def path_length(index: int, size: int) -> int:
    """Number of siblings of leaf ``index`` in a tree of ``size`` leaves."""
    count = 0
    last = size - 1
    while last > 0:
        count += index % 2 == 1 or index < last
        index, last = index // 2, last // 2
    return count
