"""The golden vectors of commitments, read as a stranger's implementation would read them."""

import hashlib
import json
from typing import Any

import pytest

from identic.proofs import merkle, state, tensors
from identic.proofs.signatures import verify_bytes
from identic.protocol.dtypes import DType
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import Domain, leaf_hash
from identic.protocol.ids import Digest, PartyId, Signature
from identic.protocol.tensors import TensorType
from tests.vectors import commitments

TABLE: dict[str, Any] = json.loads(commitments.PATH.read_text(encoding="utf-8"))
LEAVES = [leaf_hash(bytes([i])) for i in range(13)]
ROOTS = [Digest(bytes.fromhex(root)) for root in TABLE["trees"]["roots"]]


def digests(texts: list[str]) -> tuple[Digest, ...]:
    return tuple(Digest(bytes.fromhex(text)) for text in texts)


def test_the_file_is_what_its_program_makes() -> None:
    assert commitments.PATH.read_text(encoding="utf-8") == commitments.text()


def test_com_1__domains() -> None:
    assert set(TABLE["domains"]) == {domain.value for domain in Domain}
    for label, digest in TABLE["domains"].items():
        payload = bytes([len(label)]) + label.encode() + bytes([0, 1, 2])
        assert hashlib.sha256(payload).hexdigest() == digest


def test_com_7__paths() -> None:
    for row in TABLE["trees"]["paths"]:
        leaf = LEAVES[row["index"]]
        root = merkle.root_from_path(leaf, row["index"], row["size"], digests(row["path"]))
        assert root == ROOTS[row["size"]]
    for row in TABLE["trees"]["bad_paths"]:
        with pytest.raises(ProtocolError) as refused:
            merkle.root_from_path(LEAVES[0], row["index"], row["size"], digests(row["path"]))
        assert refused.value.rule == row["error"]


def test_com_8__growth() -> None:
    for row in TABLE["trees"]["growth"]:
        old, new = row["old"], row["new"]
        merkle.check_consistency(old, ROOTS[old], new, ROOTS[new], digests(row["proof"]))
    for row in TABLE["trees"]["bad_growth"]:
        old, new = row["old"], row["new"]
        with pytest.raises(ProtocolError) as refused:
            merkle.check_consistency(old, ROOTS[old], new, ROOTS[new], digests(row["proof"]))
        assert refused.value.rule == row["error"]


def test_com_3__tensors() -> None:
    for row in TABLE["tensors"]:
        kind = TensorType.of(DType.from_label(row["dtype"]), row["shape"])
        counting = bytes(i % 251 for i in range(row.get("counting", 0)))
        data = bytes.fromhex(row["data"]) if "data" in row else counting
        assert tensors.tensor_digest(kind, data).hex() == row["digest"]


def test_com_4__states() -> None:
    for row in TABLE["states"]:
        root, listed = Digest(bytes.fromhex(row["root"])), digests(row["tensors"])
        for index, path in enumerate(row["paths"]):
            opened = listed[index]
            state.check_state_opening(root, len(listed), index, opened, digests(path))


def test_com_9__signatures() -> None:
    for row in TABLE["signatures"]:
        party = PartyId(bytes.fromhex(row["party"]))
        signature = Signature(bytes.fromhex(row["signature"]))
        verify_bytes(party, Domain(row["domain"]), bytes.fromhex(row["body"]), signature)
