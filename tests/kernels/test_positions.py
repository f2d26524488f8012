"""The sampler on the CPU takes any context at native speed; a program may name any position."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from identic.kernels.arrays import from_words, words
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.operators import aligned_pieces
from identic.protocol.dtypes import DType
from identic.protocol.ops import TABLE
from identic.protocol.ops.evaluate import element
from identic.protocol.program.types import CONTEXT_TYPE, Attribute

WORDS = st.one_of(
    st.sampled_from([0, 1, 5, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1]),
    st.integers(0, 2**64 - 1),
)
SIZES = st.one_of(st.sampled_from([1, 2, 2**31, 2**32, 2**63 - 1]), st.integers(1, 2**63 - 1))


@given(st.lists(WORDS, min_size=6, max_size=6), SIZES, st.integers(0, 40), SIZES)
def test_num_18__positions_of_any_context(
    context: list[int], bound: int, count: int, shards: int
) -> None:
    pairs = (("bound", bound), ("count", count), ("shards", shards))
    attributes = tuple(Attribute(name, (value,)) for name, value in pairs)
    call = TABLE["shuffled_index"].call((CONTEXT_TYPE,), attributes)
    found = words(CpuBackend().run(call, [from_words(CONTEXT_TYPE, context)]))
    assert found == [element(call, i, lambda _, at: context[at]) for i in range(count)]


@given(WORDS, st.integers(0, 5_000))
def test_pieces_are_aligned_and_few(first: int, count: int) -> None:
    out = np.arange(count, dtype=np.int64)
    assert out.dtype.itemsize == DType.INT64.size
    at = 0
    pieces = list(aligned_pieces(out, first))
    for start, piece in pieces:
        assert start == (first + at) % 2**64
        assert start % piece.size == 0
        assert piece.size & piece.size - 1 == 0
        assert list(piece[:1]) == [at]
        at += piece.size
    assert at == count
    assert len(pieces) <= 2 * count.bit_length() + 1
