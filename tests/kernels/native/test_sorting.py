"""Running sums, sorted positions and scatters on every path, long rows included."""

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

ROWS = st.integers(1, 5)
LENGTHS = st.sampled_from([1, 2, 7, 60, 255, 256, 257, 1023, 1024, 1025, 1500])


def words(array: Array) -> list[int]:
    return [int(x) for x in np.ascontiguousarray(array).view("<u4").reshape(-1)]


def running_sums(values: list[int]) -> list[int]:
    """OP-30 in Python integers."""
    out: list[int] = []
    before, chain = None, 0
    for i, value in enumerate(values):
        if i and i % 256 == 0:
            before, chain = (chain if before is None else f32.add(before, chain)), 0
        chain = f32.add(chain, value)
        out.append(chain if before is None else f32.add(before, chain))
    return out


@settings(max_examples=examples(30), deadline=None)
@given(ROWS, LENGTHS, st.sampled_from([0.0, 0.01]), st.integers(0, 2**32))
def test_op_30__running_sums(rows: int, n: int, special: float, seed: int) -> None:
    x = floats(np.random.default_rng(seed), (rows, n), special=special)

    def run() -> Array:
        out = np.empty_like(x)
        _native.cumsum(out, x, rows, n)
        return out

    got = everywhere(run)
    assert words(got[0]) == running_sums(words(x[0]))


@pytest.mark.parametrize("kind", ["<i8", "<i4"])
def test_num_9__running_sums_of_integers_wrap(kind: str) -> None:
    limits = np.iinfo(kind)
    rng = np.random.default_rng(2)
    x = rng.integers(limits.min, limits.max, (9, 3001), dtype=kind, endpoint=True)

    def run() -> Array:
        out = np.empty_like(x)
        _native.cumsum(out, x, *x.shape)
        return out

    assert np.array_equal(everywhere(run), x.cumsum(axis=1, dtype=kind))


def expected(x: Array, *, descending: bool) -> Array:
    """Positions in the order of OP-31 by numpy's stable sort of keys."""
    if x.dtype.kind == "f":
        u = np.where(x == 0, np.uint32(0), x.view("<u4")).astype(np.int64)
        key = np.where(u >> 31, (1 << 31) - u, u)
        key = np.where(np.isnan(x), 1 << 33, key)
        return np.argsort(-key if descending else key, axis=-1, kind="stable")
    # The opposite of every bit orders the other way round, without overflow.
    return np.argsort(~x if descending else x, axis=-1, kind="stable")


@settings(max_examples=examples(60), deadline=None)
@given(
    ROWS,
    st.sampled_from([1, 2, 7, 60, 511, 512, 513, 2000, 9000]),
    st.sampled_from(["<f4", "<i8", "<i4"]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_op_31__positions(rows: int, n: int, kind: str, descending: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if kind == "<f4":
        x = floats(rng, (rows, n), special=float(rng.choice([0.0, 0.3])))
    else:
        bound = int(rng.choice([3, 1 << 20, np.iinfo(kind).max]))
        x = rng.integers(-bound, bound, (rows, n), dtype=kind, endpoint=True)
    want = expected(x, descending=descending)
    for count in {0, 1, n // 10, n // 2, n}:

        def run(count: int = count) -> Array:
            out = np.empty((rows, count), np.int64)
            _native.argsort(out, x, rows, n, count, descending)
            return out

        assert np.array_equal(everywhere(run), want[:, :count])


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from([0, 1, 2, 9, 70]),
    st.sampled_from([0, 1, 3, 200]),
    st.sampled_from([0, 1, 9, 40]),
    st.sampled_from(["u1", "<u2", "<u4", "<u8"]),
    st.integers(0, 2**32),
)
def test_op_32__rows(rows: int, count: int, inner: int, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    init, source = (rng.integers(0, 250, (n, inner), dtype=kind) for n in (rows, count))
    index = rng.integers(-2, rows + 2, count).astype(rng.choice(["<i8", "<i4"]))

    def run() -> Array:
        out = np.empty_like(init)
        _native.set_rows(out, init, index, source, rows, inner)
        return out

    want = init.copy()
    for row, values in zip(index, source, strict=True):
        if 0 <= row < rows:
            want[row] = values
    assert np.array_equal(everywhere(run), want)


def lines(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """A shape, the shape of an index into it, and the axis."""
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 9, 30], rank))
    axis = int(rng.integers(rank))
    sizes = [int(rng.integers(0, n + 1)) for n in shape]
    sizes[axis] = int(rng.choice([0, 1, 2, 40, 300]))
    return shape, tuple(sizes), axis


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(["u1", "<u2", "<u4", "<u8"]), st.integers(0, 2**32))
def test_op_32__scatter(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, sizes, axis = lines(rng)
    x, source = (rng.integers(0, 250, n, dtype=kind) for n in (shape, sizes))
    index = rng.integers(-1, shape[axis] + 1, sizes)

    def run() -> Array:
        out = np.empty_like(x)
        _native.scatter(out, x, index, source, axis)
        return out

    want = x.copy()
    for place in np.ndindex(*sizes):
        at = int(index[place])
        if 0 <= at < shape[axis]:
            want[(*place[:axis], at, *place[axis + 1 :])] = source[place]
    assert np.array_equal(everywhere(run), want)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32))
def test_num_14__scatter_add_along_an_axis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, sizes, axis = lines(rng)
    x, source = floats(rng, shape, special=0.2), floats(rng, sizes, special=0.01)
    index = rng.integers(-1, shape[axis] + 1, sizes)

    def run() -> Array:
        out = np.empty_like(x)
        _native.scatter_add(out, x, index, source, axis)
        return out

    got = everywhere(run)
    for _ in range(4):
        place = tuple(int(rng.integers(n)) for n in shape)
        line: tuple[int | slice, ...] = (*place[:axis], slice(None), *place[axis + 1 :])
        before, result = words(x[place])[0], words(got[place])[0]
        if any(p >= n for a, (p, n) in enumerate(zip(place, sizes, strict=True)) if a != axis):
            assert result == before
            continue
        named, added = index[line].tolist(), words(source[line])
        for start in range(0, len(named), 256):
            partial = 0
            for v, word in zip(named[start : start + 256], added[start : start + 256], strict=True):
                if v == place[axis]:
                    partial = f32.add(partial, word)
            before = f32.add(before, partial)
        assert result == before


def test_operands_that_do_not_fit_are_refused() -> None:
    out, x = np.zeros((2, 3), "<f4"), np.zeros((2, 3), "<f4")
    one, wide = np.zeros((2, 1), np.int64), np.zeros((3, 1), np.int64)
    with pytest.raises(ValueError, match="elements"):
        _native.cumsum(out, x, 2, 4)
    with pytest.raises(ValueError, match="count"):
        _native.argsort(np.zeros((2, 4), np.int64), x, 2, 3, 4, descending=False)
    with pytest.raises(ValueError, match="float32, int64 or int32"):
        _native.argsort(np.zeros((2, 3), np.int64), x.astype(bool), 2, 3, 3, descending=False)
    with pytest.raises(ValueError, match="larger than x"):
        _native.scatter(out, x, wide, np.zeros((3, 1), "<f4"), 1)
    with pytest.raises(ValueError, match="axis"):
        _native.scatter(out, x, one, np.zeros((2, 1), "<f4"), 2)
    with pytest.raises(ValueError, match="element size"):
        _native.scatter(out, x, one, np.zeros((2, 1), "<f8"), 0)
    with pytest.raises(ValueError, match="elements"):
        _native.set_rows(out, x, one, np.zeros((1, 3), "<f4"), 2, 3)
