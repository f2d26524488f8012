"""Hashes of chunks and roots of trees, with and without the SHA instructions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest

from identic.kernels import _native, hashing
from identic.proofs import tensors
from identic.protocol.hashing import LEAF_PREFIX, NODE_PREFIX, fold
from identic.protocol.tensors import CHUNK_BYTES


@pytest.fixture(params=[True, False], ids=["instructions", "portable"], autouse=True)
def sha(request: pytest.FixtureRequest) -> Iterator[None]:
    _native.use_sha_instructions(request.param)
    _native.set_threads(2)
    yield
    _native.use_sha_instructions(True)
    _native.set_threads(1)


@pytest.mark.parametrize("prefix", [b"", LEAF_PREFIX, b"five5", b"p" * 63])
def test_com_2__chunks_hash_as_hashlib_does(prefix: bytes) -> None:
    data = np.random.default_rng(0).bytes(8300)
    for size in [*range(0, 300, 7), 4095, 4096, 4097, 8300]:
        for chunk in (1, 55, 56, 64, 65, 119, 4096):
            part = data[:size]
            want = [hashlib.sha256(prefix + part[i : i + chunk]) for i in range(0, size, chunk)]
            got = _native.chunk_hashes(part, chunk, prefix)
            assert got == b"".join(h.digest() for h in want)


def test_com_2__arrays_hash_as_their_bytes() -> None:
    x = np.arange(3000, dtype="<f4").reshape(3, 1000)
    assert _native.chunk_hashes(x, 4096, b"") == _native.chunk_hashes(x.tobytes(), 4096, b"")
    with pytest.raises(ValueError, match="contiguous"):
        _native.chunk_hashes(x.T, 4096, b"")


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 1000, 1023])
def test_com_2__roots_are_those_of_the_tree(count: int) -> None:
    hashes = [hashlib.sha256(bytes([i % 256])).digest() for i in range(count)]
    assert _native.tree_root(b"".join(hashes), NODE_PREFIX) == fold(hashes)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 9 * CHUNK_BYTES])
def test_com_3__the_native_root_is_that_of_the_chunks(size: int) -> None:
    data = memoryview(bytes(i % 251 for i in range(size)))
    assert hashing.chunk_root(data) == fold(tensors.chunk_hashes(data))


def test_what_is_no_list_of_digests_is_refused() -> None:
    for bad in (b"", b"x" * 33):
        with pytest.raises(ValueError, match="32 bytes"):
            _native.tree_root(bad, NODE_PREFIX)
    with pytest.raises(ValueError, match="prefix"):
        _native.chunk_hashes(b"data", 4096, b"p" * 64)
