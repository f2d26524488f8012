"""Digests of tensors from their bytes.

A tensor's digest binds element type, shape, length and every 4,096-byte chunk. Hashing the
chunks is the only costly part, so the hasher can be replaced by a native one that gives the
same root. Spec: docs/spec/commitments.md (COM-3).
"""

from __future__ import annotations

from collections.abc import Callable

from identic.protocol.commitments import digest_of
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import fold, leaf_hash
from identic.protocol.ids import Digest
from identic.protocol.tensors import CHUNK_BYTES, TensorType

Hasher = Callable[[memoryview], Digest]
"""Root over the leaf hashes of the consecutive chunks of some bytes."""


def chunk_hashes(data: bytes | memoryview) -> list[Digest]:
    """Leaf hashes of the consecutive 4,096-byte chunks of ``data``; none for no bytes."""
    view = memoryview(data).cast("B")
    return [leaf_hash(view[at : at + CHUNK_BYTES]) for at in range(0, len(view), CHUNK_BYTES)]


def _plain(view: memoryview) -> Digest:
    return fold(chunk_hashes(view))


def tensor_digest(
    kind: TensorType, data: bytes | memoryview, hasher: Hasher | None = None
) -> Digest:
    """Digest of the tensor of type ``kind`` whose elements are ``data``.

    Raises:
        ProtocolError: the bytes are not as many as the type says (COM-3).
    """
    view = memoryview(data).cast("B")
    return root_digest(kind, len(view), (hasher or _plain)(view))


def root_digest(kind: TensorType, nbytes: int, root: Digest) -> Digest:
    """Digest of the tensor of type ``kind`` from the root over its chunks of ``nbytes`` in all.

    Raises:
        ProtocolError: the bytes are not as many as the type says (COM-3).
    """
    # COM-3: a tensor has exactly the bytes of its type.
    if nbytes != kind.nbytes:
        raise ProtocolError(
            "COM-3", Code.MISMATCH, got=f"{nbytes} bytes", want=f"{kind.nbytes} bytes"
        )
    return digest_of(kind, root)
