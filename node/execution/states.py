"""A stored state: the header and the bytes of every tensor, as one blob.

Layout: a four-byte length, the canonical encoding of the ``StateHeader``, then each tensor
of the state in declared order, row-major, little end first, with nothing between. The
lengths follow from the program, so a blob of another size is refused before it is read.

A stored state is never trusted: whoever loads one compares its root with a committed root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from identic.kernels.arrays import Array, from_bytes, to_bytes
from identic.kernels.hashing import chunk_roots
from identic.proofs.state import StateCommitment
from identic.proofs.tensors import root_digest
from identic.protocol.commitments import StateHeader
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Digest
from identic.protocol.program.types import Program, Variable

Arrays = list[Array]
"""Tensors in the order of their variables; of a state, numpy's or those of a device."""

Roots = Callable[[Sequence[Array]], Sequence[Digest]]
"""Root over the chunks of each array."""


def pack_state(header: StateHeader, tensors: Sequence[Array]) -> bytes:
    """Serialise a state."""
    head = encode(header)
    return b"".join([len(head).to_bytes(4, "big"), head, *(to_bytes(t) for t in tensors)])


def unpack_state(program: Program, blob: bytes) -> tuple[StateHeader, Arrays]:
    """Read a stored state of ``program``.

    Raises:
        ProtocolError: the blob is not a state of this program (EXE-1).
    """
    length = int.from_bytes(blob[:4], "big")
    variables = program.state
    want = 4 + length + sum(v.type.nbytes for v in variables)
    # EXE-1: a stored state has exactly the length that the program gives it.
    if len(blob) != want:
        raise ProtocolError(
            "EXE-1", Code.MALFORMED, got=f"{len(blob)} bytes", want=f"a state of {want} bytes"
        )
    header = decode(StateHeader, blob[4 : 4 + length])
    return header, unpack_tensors(variables, memoryview(blob)[4 + length :])


def pack_tensors(tensors: Sequence[Array]) -> bytes:
    """Serialise tensors without a header: the job's data."""
    return b"".join(to_bytes(t) for t in tensors)


def unpack_tensors(variables: Sequence[Variable], blob: bytes | memoryview) -> Arrays:
    """Read tensors of known types that lie one after the other in ``blob``.

    Raises:
        ProtocolError: the length is another than the types give (EXE-1).
    """
    want = sum(v.type.nbytes for v in variables)
    # EXE-1: stored tensors have exactly the length that their types give them.
    if len(blob) != want:
        raise ProtocolError(
            "EXE-1", Code.MALFORMED, got=f"{len(blob)} bytes", want=f"{want} bytes of tensors"
        )
    view, at, out = memoryview(blob), 0, []
    for variable in variables:
        kind = variable.type
        # A copy for each, so that it is aligned, and that one tensor does not keep all.
        out.append(from_bytes(kind, memoryview(bytearray(view[at : at + kind.nbytes]))))
        at += kind.nbytes
    return out


def commit_state(
    header: StateHeader,
    variables: Sequence[Variable],
    tensors: Sequence[Array],
    roots: Roots = chunk_roots,
) -> StateCommitment:
    """Digest every tensor of a state and build its commitment.

    Args:
        header: of the state.
        variables: their types.
        tensors: one for each.
        roots: hashes the chunks of all of them, on the device that they lie on.
    """
    return StateCommitment(header, tuple(_digests(variables, tensors, roots)))


def array_digest(variable: Variable, tensor: Array) -> Digest:
    """Digest of one tensor (COM-3)."""
    (digest,) = _digests([variable], [tensor], chunk_roots)
    return digest


def _digests(
    variables: Sequence[Variable], tensors: Sequence[Array], roots: Roots
) -> Iterator[Digest]:
    found = zip(variables, tensors, roots(tensors), strict=True)
    return (root_digest(v.type, t.nbytes, root) for v, t, root in found)
