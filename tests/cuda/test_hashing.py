"""Hashes made on a device are those of the CPU, whatever the order of its threads."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from identic.kernels import hashing
from identic.kernels.arrays import Array
from identic.kernels.hashing import cuda
from identic.node.execution.states import commit_state
from identic.protocol.commitments import StateHeader
from identic.protocol.dtypes import DType
from identic.protocol.hashing import EMPTY_ROOT, fold
from identic.protocol.ids import Count, Digest, StepIndex, Unsigned
from identic.protocol.program.types import Variable
from identic.protocol.tensors import TensorType
from tests.cuda.shim.device import ORDERS, ShimDevice

LENGTHS = [1, 3, 4, 53, 54, 55, 56, 63, 64, 119, 4095, 4096, 4097, 8192, 3 * 4096 + 7]
RNG = np.random.default_rng(1)


def data(length: int) -> Array:
    return RNG.integers(0, 256, length, np.uint8)


@pytest.mark.parametrize("order", ORDERS)
def test_com_3__leaf_hashes_of_chunks_of_every_length(order: int) -> None:
    device = ShimDevice(order)
    for length in LENGTHS:
        x = data(length)
        assert cuda.chunk_hashes(device, device.upload(x)) == hashing.chunk_hashes(x.data)
    assert cuda.chunk_hashes(device, device.empty((0,), np.dtype("u1"))) == []


@pytest.mark.parametrize("order", ORDERS)
def test_com_2__roots_of_a_whole_state(order: int) -> None:
    device = ShimDevice(order)
    kinds = [(8, "<f4"), (0, "u1"), (140000, "<f4"), (4096, "<i8")]
    arrays: list[Array] = [data(n).view(t) for n, t in kinds]
    arrays += [data(n) for n in LENGTHS]
    arrays[2] = arrays[2].reshape(7, 5000)
    want = [hashing.chunk_root(hashing.raw_bytes(a)) for a in arrays]
    assert cuda.chunk_roots(device, [device.upload(a) for a in arrays]) == want
    assert len(device.launches) == 2
    assert want[1] == EMPTY_ROOT


def test_com_2__trees_of_several_blocks() -> None:
    device = ShimDevice()
    nodes = [1, 511, 512, 513, 1025]
    words = device.upload(data(32 * sum(nodes)).view(np.uint32))
    once, counts = cuda._subtrees(device, words, nodes)
    assert counts == [1, 1, 1, 2, 3]
    twice, counts = cuda._subtrees(device, once, counts)
    roots, at = cuda._digests(device, twice), 0
    leaves = cuda._digests(device, words)
    for root, n in zip(roots, nodes, strict=True):
        assert root == fold(leaves[at : at + n])
        at += n
    assert counts == [1] * len(nodes)


def test_com_4__a_state_on_a_device_and_on_the_host_has_one_root() -> None:
    device = ShimDevice()
    none: Array = np.zeros((0, 0, 4), np.uint8)
    tensors: list[Array] = [data(24).view(np.float32), data(20000).view(np.int64), none]
    kinds = [(DType.FLOAT32, (6,)), (DType.INT64, (2500,)), (DType.UINT8, (0, 0, 4))]
    variables = [Variable(f"v{i}", TensorType.of(*kind)) for i, kind in enumerate(kinds)]
    header = StateHeader(Digest(bytes(32)), Unsigned(1), StepIndex(2), Count(3))
    want = commit_state(header, variables, tensors)
    roots = partial(cuda.chunk_roots, device)
    held: list[Array] = [device.upload(t) for t in tensors]
    for mixed in (held, [tensors[0], *held[1:]]):
        assert commit_state(header, variables, mixed, roots) == want


def test_an_array_that_begins_anywhere_is_hashed() -> None:
    device = ShimDevice()
    room = device.upload(data(40000))
    for first in (0, 1, 2, 4, 8, 16):
        part = room[first : first + 9000]
        assert cuda.chunk_root(device, part) == hashing.chunk_root(part.data)


def test_only_row_major_arrays_are_hashed() -> None:
    device = ShimDevice()
    x = device.upload(np.zeros((4, 6), np.float32))
    with pytest.raises(ValueError, match="row-major"):
        cuda.chunk_root(device, x.transpose())
