"""Trees against the naive recursive definition of RFC 6962, exhaustively for small sizes."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.proofs import merkle
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import EMPTY_ROOT, leaf_hash, path_length

LARGEST = 130
LEAVES = [leaf_hash(bytes([i])) for i in range(LARGEST)]
# SHA-256 over every root and inclusion path up to 130 leaves, and over consistency proofs.
GOLDEN = "551c6faeb4cf14c898127c9af6a3ea883d26d613f151410c69985d9d0070e3ca"
GOLDEN_CONSISTENCY = "1dcd427e14e51f646d2e0b03edb8432c144cdf5b32c1bc0413989d723aad35a5"


def naive_root(hashes: list[bytes]) -> bytes:
    """Root as RFC 6962 section 2.1 defines it, on leaf hashes."""
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    k = split(len(hashes))
    return hashlib.sha256(b"\x01" + naive_root(hashes[:k]) + naive_root(hashes[k:])).digest()


def naive_path(index: int, hashes: list[bytes]) -> list[bytes]:
    """Audit path of RFC 6962 section 2.1.1."""
    if len(hashes) == 1:
        return []
    k = split(len(hashes))
    if index < k:
        return [*naive_path(index, hashes[:k]), naive_root(hashes[k:])]
    return [*naive_path(index - k, hashes[k:]), naive_root(hashes[:k])]


def split(size: int) -> int:
    """Largest power of two below ``size``."""
    k = 1
    while 2 * k < size:
        k *= 2
    return k


def test_com_2__roots_paths_and_proofs_follow_the_recursive_definition() -> None:
    rolling = hashlib.sha256()
    tree = merkle.IncrementalTree()
    for size in range(LARGEST + 1):
        leaves = LEAVES[:size]
        root = merkle.root(leaves)
        assert root == naive_root(list(leaves)) == tree.root
        rolling.update(root)
        for index in range(size):
            path = merkle.path(leaves, index)
            if size % 13 == 0 or size < 20:
                assert list(path) == naive_path(index, list(leaves))
            assert merkle.root_from_path(leaves[index], index, size, path) == root
            rolling.update(b"".join(path))
        if size < LARGEST:
            tree.append(LEAVES[size])
    assert rolling.hexdigest() == GOLDEN


def test_com_2__a_tree_of_no_leaves_has_the_empty_root() -> None:
    assert merkle.root([]) == EMPTY_ROOT == merkle.IncrementalTree().root


def test_com_2__blocks_are_subtrees() -> None:
    for size in range(1, LARGEST + 1):
        for width in (1, 2, 4, 8, 64, 256):
            assert merkle.root(merkle.blocks(LEAVES[:size], width)) == merkle.root(LEAVES[:size])
    with pytest.raises(ValueError, match="subtree"):
        merkle.blocks(LEAVES, 3)


def test_com_7__a_path_fits_one_leaf_at_one_place_in_one_size() -> None:
    for size in range(1, 34):
        root = merkle.root(LEAVES[:size])
        for index in range(size):
            path = merkle.path(LEAVES[:size], index)
            assert path_length(index, size) == len(path)
            assert merkle.root_from_path(LEAVES[index + 1], index, size, path) != root
            for at in range(len(path)):
                wrong = (*path[:at], LEAVES[40], *path[at + 1 :])
                assert merkle.root_from_path(LEAVES[index], index, size, wrong) != root
            for other in range(size):
                if other != index and len(path) == path_length(other, size):
                    assert merkle.root_from_path(LEAVES[index], other, size, path) != root


@given(index=st.integers(-3, 40), size=st.integers(0, 40), length=st.integers(0, 8))
def test_com_7__a_path_of_another_length_is_refused(index: int, size: int, length: int) -> None:
    path = LEAVES[:length]
    if 0 <= index < size and length == path_length(index, size):
        merkle.root_from_path(LEAVES[0], index, size, path)
        return
    with pytest.raises(ProtocolError) as refused:
        merkle.root_from_path(LEAVES[0], index, size, path)
    assert refused.value.rule == "COM-7"


def test_com_8__every_pair_of_sizes_is_consistent() -> None:
    rolling = hashlib.sha256()
    roots = [merkle.root(LEAVES[:size]) for size in range(LARGEST + 1)]
    for new in range(LARGEST + 1):
        for old in range(0, new + 1, 1 if new < 70 else 7):
            proof = merkle.consistency(LEAVES[:new], old)
            merkle.check_consistency(old, roots[old], new, roots[new], proof)
            rolling.update(b"".join(proof))
    assert rolling.hexdigest() == GOLDEN_CONSISTENCY


def test_com_8__a_rewritten_log_is_refused() -> None:
    roots = [merkle.root(LEAVES[:size]) for size in range(20)]
    for new in range(1, 20):
        for old in range(new + 1):
            proof = merkle.consistency(LEAVES[:new], old)
            wrong = LEAVES[99]
            cases = [
                (old, wrong, new, roots[new], proof),
                (old, roots[old], new, roots[new], (*proof, wrong)),
                (new + 1, roots[old], new, roots[new], proof),
            ]
            if old:
                cases.append((old, roots[old], new, wrong, proof))
            cases += [
                (old, roots[old], new, roots[new], (*proof[:i], wrong, *proof[i + 1 :]))
                for i in range(len(proof))
            ]
            if proof:
                cases.append((old, roots[old], new, roots[new], proof[:-1]))
                cases.append((old, roots[old], new, roots[new], ()))
            for case in cases:
                with pytest.raises(ProtocolError) as refused:
                    merkle.check_consistency(*case)
                assert refused.value.rule == "COM-8"
