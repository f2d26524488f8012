"""Sums and maxima on every path, long rows and columns included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.protocol.arithmetic import f32
from tests.helpers.effort import examples
from tests.kernels.native.machine import everywhere, floats


def words(array: Array) -> list[int]:
    return [int(x) for x in np.ascontiguousarray(array).view("<u4").reshape(-1)]


def row_sum(values: list[int]) -> int:
    """NUM-12 in Python integers."""
    if len(values) > 4096:
        return row_sum([row_sum(values[i : i + 4096]) for i in range(0, len(values), 4096)])
    lanes = [0] * 64
    for i, value in enumerate(values):
        lanes[i % 64] = f32.add(lanes[i % 64], value)
    for width in (32, 16, 8, 4, 2, 1):
        lanes = [f32.add(lanes[i], lanes[i + width]) for i in range(width)]
    return lanes[0]


def column_sum(values: list[int]) -> int:
    """NUM-13 in Python integers."""
    total = 0
    for start in range(0, len(values), 256):
        acc = 0
        for value in values[start : start + 256]:
            acc = f32.add(acc, value)
        total = acc if start == 0 else f32.add(total, acc)
    return total


def sum_last(x: Array) -> Array:
    out = np.empty(x.shape[0], x.dtype)
    _native.sum_last(out, x, *x.shape)
    return out


def sum_first(x: Array) -> Array:
    out = np.empty(x.shape[1], x.dtype)
    _native.sum_first(out, x, *x.shape)
    return out


@pytest.mark.parametrize("n", [0, 1, 5, 63, 64, 65, 128, 1000, 4096, 4097, 12_300])
def test_num_12__row_sums(n: int) -> None:
    x = floats(np.random.default_rng(n), (3, n), special=0.0)
    x[1:] = floats(np.random.default_rng(n + 1), (2, n), special=0.01)
    assert words(everywhere(lambda: sum_last(x))) == [row_sum(words(row)) for row in x]


def test_num_12__blocks_of_blocks() -> None:
    """More than 4,096 blocks: three levels of the rule."""
    x = np.random.default_rng(3).standard_normal((1, 4096 * 4097 + 5), dtype=np.float32)
    whole = everywhere(lambda: sum_last(x))
    blocks = sum_last(x[0, : 4096 * 4097].reshape(4097, 4096))
    rest = sum_last(x[:, 4096 * 4097 :])
    assert whole.tobytes() == sum_last(np.concatenate([blocks, rest])[None]).tobytes()


def test_num_12__a_sum_of_negative_zeros_is_plus_zero() -> None:
    assert words(everywhere(lambda: sum_last(np.full((1, 100), -0.0, np.float32)))) == [0]


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1500])
@pytest.mark.parametrize("inner", [1, 3, 8, 65, 600])
def test_num_13__column_sums(n: int, inner: int) -> None:
    rng = np.random.default_rng(n * 1000 + inner)
    x = floats(rng, (n, inner), special=0.001)
    got = words(everywhere(lambda: sum_first(x)))
    for j in {0, inner - 1, int(rng.integers(inner))}:
        assert got[j] == column_sum(words(x[:, j]))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 300), st.sampled_from([0.0, 0.02, 0.9]), st.integers(0, 2**32)
)
def test_num_4__largest_and_its_position(rows: int, n: int, special: float, seed: int) -> None:
    x = floats(np.random.default_rng(seed), (rows, n), special=special)

    def largest() -> Array:
        out = np.empty(rows, np.float32)
        _native.amax(out, x, rows, n)
        return out

    def position() -> Array:
        out = np.empty(rows, np.int64)
        _native.argmax(out, x, rows, n)
        return out

    for row, top, at in zip(x, words(everywhere(largest)), everywhere(position), strict=True):
        best = f32.maximum(words(row)[0], words(row)[0])
        first = 0
        for i, word in enumerate(words(row)):
            canonical = f32.maximum(word, word)
            if f32.maximum(best, canonical) != best:
                best, first = canonical, i
        assert top == best
        assert at == first


@pytest.mark.parametrize("kind", ["<i8", "<i4"])
def test_num_9__sums_of_integers_wrap(kind: str) -> None:
    limits = np.iinfo(kind)
    rng = np.random.default_rng(1)
    x = rng.integers(limits.min, limits.max, (7, 301), dtype=kind, endpoint=True)
    assert np.array_equal(everywhere(lambda: sum_last(x)), x.sum(axis=1, dtype=kind))
    assert np.array_equal(everywhere(lambda: sum_first(x)), x.sum(axis=0, dtype=kind))


def test_an_empty_row_has_no_largest() -> None:
    with pytest.raises(ValueError, match="at least one"):
        _native.amax(np.empty(2, "<f4"), np.empty((2, 0), "<f4"), 2, 0)
