"""Digests of tensors, states, traces and run logs, and what each of them binds."""

import dataclasses
import hashlib

import pytest

from identic.proofs import merkle, runlog, state, tensors, trace
from identic.protocol.commitments import (
    StateHeader,
    header_digest,
    mark_count,
    mark_step,
    state_root,
)
from identic.protocol.dtypes import DType
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import Domain, fold, sha256, tagged
from identic.protocol.ids import Count, Digest, JobId, StepIndex, Unsigned
from identic.protocol.tensors import CHUNK_BYTES, TensorType

SCALAR = TensorType.of(DType.FLOAT32, ())
DIGESTS = tuple(sha256(bytes([i])) for i in range(9))
HEADER = StateHeader(sha256(b"program"), Unsigned(7), StepIndex(3), Count(96))


def test_com_1__a_digest_belongs_to_its_domain() -> None:
    label = b"identic/1/state"
    want = hashlib.sha256(bytes([len(label)]) + label + b"payload").digest()
    assert tagged(Domain.STATE, b"payload") == want
    assert len({tagged(domain, b"payload") for domain in Domain}) == len(Domain)


def test_com_3__a_tensor_digest_is_written_out() -> None:
    data = bytes(4)
    chunk = hashlib.sha256(b"\x00" + data).digest()
    header = bytes([1]) + bytes(4) + (4).to_bytes(8, "big") + chunk
    assert tensors.tensor_digest(SCALAR, data) == tagged(Domain.TENSOR, header)


def test_com_3__empty_scalar_and_many_chunks_have_digests() -> None:
    empty = TensorType.of(DType.FLOAT32, (0, 3))
    assert tensors.chunk_hashes(b"") == []
    assert tensors.tensor_digest(empty, b"") != tensors.tensor_digest(
        TensorType.of(DType.FLOAT32, (3, 0)), b""
    )
    for size in (1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES):
        data = bytes(i % 251 for i in range(size))
        kind = TensorType.of(DType.UINT8, (size,))
        assert len(tensors.chunk_hashes(data)) == kind.chunks
        assert tensors.tensor_digest(kind, data) == tensors.tensor_digest(kind, memoryview(data))


def test_com_3__type_shape_and_every_byte_change_the_digest() -> None:
    data = bytes(range(24))
    kinds = [
        TensorType.of(DType.FLOAT32, (6,)),
        TensorType.of(DType.FLOAT32, (2, 3)),
        TensorType.of(DType.FLOAT32, (3, 2)),
        TensorType.of(DType.INT32, (6,)),
        TensorType.of(DType.INT64, (3,)),
        TensorType.of(DType.UINT8, (24,)),
        TensorType.of(DType.BFLOAT16, (12,)),
    ]
    found = {tensors.tensor_digest(kind, data) for kind in kinds}
    for at in range(24):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        found.add(tensors.tensor_digest(kinds[0], changed))
    assert len(found) == len(kinds) + 24


def test_com_3__bytes_of_another_length_are_refused() -> None:
    with pytest.raises(ProtocolError) as refused:
        tensors.tensor_digest(SCALAR, bytes(8))
    assert refused.value.rule == "COM-3"


def test_com_3__a_replaced_hasher_is_used() -> None:
    seen = []

    def hasher(view: memoryview) -> Digest:
        seen.append(len(view))
        return fold(tensors.chunk_hashes(view))

    assert tensors.tensor_digest(SCALAR, bytes(4), hasher) == tensors.tensor_digest(
        SCALAR, bytes(4)
    )
    assert seen == [4]


def test_com_4__every_field_and_tensor_is_under_the_state_root() -> None:
    base = state.StateCommitment(HEADER, DIGESTS)
    assert base.root == state_root(header_digest(HEADER), DIGESTS)
    others = [
        dataclasses.replace(HEADER, program=DIGESTS[0]),
        dataclasses.replace(HEADER, seed=Unsigned(8)),
        dataclasses.replace(HEADER, step=StepIndex(4)),
        dataclasses.replace(HEADER, cursor=Count(97)),
    ]
    roots = {base.root} | {state.StateCommitment(header, DIGESTS).root for header in others}
    for i in range(len(DIGESTS)):
        changed = (*DIGESTS[:i], sha256(b"other"), *DIGESTS[i + 1 :])
        roots.add(state.StateCommitment(HEADER, changed).root)
    roots.add(state.StateCommitment(HEADER, DIGESTS[::-1]).root)
    roots.add(state.StateCommitment(HEADER, DIGESTS[:-1]).root)
    assert len(roots) == 1 + 4 + len(DIGESTS) + 2


def test_com_4__a_tensor_is_opened_at_its_own_place_only() -> None:
    commitment = state.StateCommitment(HEADER, DIGESTS)
    n = len(DIGESTS)
    for i, digest in enumerate(DIGESTS):
        path = commitment.opening(i)
        state.check_state_opening(commitment.root, n, i, digest, path)
        for wrong in (
            (commitment.root, n, (i + 1) % n, digest, path),
            (commitment.root, n, i, DIGESTS[i - 1], path),
            (DIGESTS[0], n, i, digest, path),
            (commitment.root, n, i, digest, (*path, DIGESTS[0])),
        ):
            with pytest.raises(ProtocolError) as refused:
                state.check_state_opening(*wrong)
            assert refused.value.rule in {"COM-4", "COM-7"}


def test_com_5__a_trace_leaf_names_its_step_and_place() -> None:
    roots = {
        trace.trace_root(3, DIGESTS),
        trace.trace_root(4, DIGESTS),
        trace.trace_root(3, DIGESTS[::-1]),
        trace.trace_root(3, DIGESTS[:-1]),
    }
    assert len(roots) == 4
    for width in (2, 4):
        tops = merkle.blocks(trace.trace_hashes(3, DIGESTS), width)
        for i in range(len(DIGESTS)):
            first = i - i % width
            size = min(width, len(DIGESTS) - first)
            path = trace.block_path(3, DIGESTS, i, first, size)
            leaf = trace.trace_hashes(3, DIGESTS)[i]
            assert merkle.root_from_path(leaf, i - first, size, path) == tops[i // width]


def test_com_6__marks_stand_at_the_cadence_and_the_end() -> None:
    for steps in range(1, 12):
        for cadence in range(1, 14):
            marks = mark_count(cadence, steps)
            at = [mark_step(m, cadence, steps) for m in range(marks)]
            assert at == sorted({*range(0, steps, cadence), steps})


def test_com_6__a_head_is_the_root_over_its_marks() -> None:
    log = runlog.RunLog(JobId(DIGESTS[0]), 5, 38)
    heads = [log.append(digest) for digest in DIGESTS]
    for marks, head in enumerate(heads, 1):
        assert head == log.head_at(marks)
        runlog.check_head(head, DIGESTS[:marks], 5, 38)
        for states, cadence, steps in (
            (DIGESTS[: marks - 1], 5, 38),
            ((*DIGESTS[1:marks], DIGESTS[0])[:marks], 5, 38),
            (DIGESTS[:marks], 4, 38),
        ):
            if marks > 1:
                with pytest.raises(ProtocolError) as refused:
                    runlog.check_head(head, states, cadence, steps)
                assert refused.value.rule == "COM-6"


def test_com_6__heads_of_one_log_are_consistent() -> None:
    log = runlog.RunLog(JobId(DIGESTS[0]), 1, 40)
    heads = [log.append(Digest(digest)) for digest in DIGESTS]
    hashes = runlog.run_hashes(log.states, 1, 40)
    for old in heads:
        proof = merkle.consistency(hashes, old.marks)
        merkle.check_consistency(old.marks, old.root, log.head.marks, log.head.root, proof)
