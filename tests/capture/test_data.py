"""Sampling, initial weights and random numbers are those of the protocol's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import identic
from identic.node.capture import Rows, Windows, initial
from identic.node.capture.philox import uniform_block, words
from identic.protocol.arithmetic.philox import philox4x32, uniform24
from identic.protocol.dtypes import DType
from identic.protocol.lowering import Builder
from identic.protocol.ops import TABLE
from identic.protocol.program.context import context
from identic.protocol.program.types import CONTEXT_TYPE
from identic.protocol.tensors import TensorType
from tests.capture.interpreter import TorchBackend
from tests.helpers.effort import examples

_CODES = {
    "uint8": DType.UINT8,
    "int32": DType.INT32,
    "int64": DType.INT64,
    "float32": DType.FLOAT32,
}


def sampled(data: Rows | Windows, seed: int, step: int, shard: int, shards: int) -> list[Any]:
    """The batch that the sampler's instructions make, by torch."""
    arrays = [a for _, a in data.tensors()]
    kinds = [TensorType.of(_CODES[a.dtype.name], a.shape) for a in arrays]
    builder = Builder([*kinds, CONTEXT_TYPE])
    outputs = data.sample(builder, range(len(arrays)), len(arrays), shards)
    section, _ = builder.finish(outputs)
    values: list[Any] = [*arrays, np.array(context(seed, step, shard))]
    types = list(section.inputs)
    for made in section.instructions:
        call = TABLE[made.op].call(tuple(types[i] for i in made.inputs), made.attributes)
        values.append(TorchBackend().run(call, [values[i] for i in made.inputs]))
        types.append(call.output)
    return [values[o] for o in section.outputs]


@settings(max_examples=examples(25), deadline=None)
@given(
    length=st.integers(1, 12),
    extra=st.integers(1, 50),
    shards=st.integers(1, 3),
    each=st.integers(1, 5),
    seed=st.integers(0, 2**64 - 1),
    step=st.integers(0, 2**40),
)
def test_cap_10__windows_are_runs_of_tokens_and_the_next_one(
    length: int, extra: int, shards: int, each: int, seed: int, step: int
) -> None:
    tokens = np.arange(length + extra, dtype=np.int32)
    data = Windows(tokens, length=length, batch=each * shards)
    for shard in range(shards):
        x, y = data.batch_of(context(seed, step, shard), shards)
        made = sampled(data, seed, step, shard, shards)
        assert [a.tolist() for a in made] == [x.tolist(), y.tolist()]
        assert x.shape == (each, length)
        assert x.dtype == np.int64
        assert np.array_equal(y, x + 1)


@settings(max_examples=examples(25), deadline=None)
@given(
    rows=st.integers(1, 40),
    shards=st.integers(1, 3),
    each=st.integers(1, 5),
    seed=st.integers(0, 2**64 - 1),
)
def test_cap_10__rows_come_once_an_epoch(rows: int, shards: int, each: int, seed: int) -> None:
    table, labels = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2), np.arange(rows)
    data = Rows(table, labels, batch=each * shards)
    stream: list[int] = []
    for step in range(-(-2 * rows // data.batch)):
        for shard in range(shards):
            x, y = data.batch_of(context(seed, step, shard), shards)
            made = sampled(data, seed, step, shard, shards)
            assert [a.tolist() for a in made] == [x.tolist(), y.tolist()]
            assert np.array_equal(x, table[y])
            stream.extend(y.tolist())
    assert sorted(stream[:rows]) == list(range(rows))
    assert sorted(stream[rows : 2 * rows]) == list(range(rows))


@settings(max_examples=examples(50), deadline=None)
@given(
    key=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    stream=st.integers(0, 2**32 - 1),
    shard=st.integers(0, 2**32 - 1),
    count=st.integers(1, 30),
)
def test_cap_8__arrays_of_numbers_are_the_reference_numbers(
    key: tuple[int, int], stream: int, shard: int, count: int
) -> None:
    blocks = [philox4x32(key, (b, 0, stream, shard)) for b in range(-(-count // 4))]
    assert words(key, stream, shard, len(blocks)).tolist() == [list(b) for b in blocks]
    want = [uniform24(w) for b in blocks for w in b][:count]
    assert uniform_block(key, stream, shard, count).view(np.uint32).tolist() == want


def test_initial_weights_are_these_bits_everywhere() -> None:
    weights = initial((2, 3), seed=1, stream=2, scale=0.5)
    assert weights.dtype == np.float32
    bits = weights.view(np.uint32).reshape(-1).tolist()
    assert [f"{b:08x}" for b in bits] == GOLDEN
    assert not np.array_equal(weights, initial((2, 3), seed=1, stream=3, scale=0.5))
    assert not np.array_equal(weights, initial((2, 3), seed=2, stream=2, scale=0.5))
    many = initial((10000,), seed=1, stream=0, scale=0.25)
    assert -0.25 <= many.min() < -0.249
    assert 0.249 < many.max() < 0.25


GOLDEN = ["be70d008", "be8c2fc0", "be5a4960", "3eeedf24", "3e89e560", "bea6737e"]


def test_job_words_are_found_in_the_package() -> None:
    for name in identic.__all__:
        assert getattr(identic, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = identic.nothing
