"""Copies, look-ups, scatter-add and random numbers on every path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.protocol.arithmetic import f32
from identic.protocol.arithmetic.permutation import permute
from identic.protocol.arithmetic.philox import bounded, philox4x32, uniform24
from tests.helpers.effort import examples
from tests.kernels.native.machine import everywhere, floats

KINDS = ["u1", "<u2", "<u4", "<u8"]
SHAPES = st.lists(st.sampled_from([1, 2, 3, 9, 33, 70]), min_size=1, max_size=4).map(tuple)


def steps(array: Array) -> list[int]:
    return [s // array.itemsize for s in array.strides]


@settings(max_examples=examples(100), deadline=None)
@given(SHAPES, st.sampled_from(KINDS), st.integers(0, 2**32))
def test_copies_between_any_strides(shape: tuple[int, ...], kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    top = np.iinfo(kind).max
    order = rng.permutation(len(shape))
    stored = rng.integers(0, top, tuple(shape[i] for i in order), dtype=kind, endpoint=True)
    x = stored.transpose(np.argsort(order))
    if rng.random() < 0.3:
        x = np.broadcast_to(x[:1], shape)
    pads = [(int(p), int(q)) for p, q in rng.integers(0, 3, (len(shape), 2))]
    inside = tuple(slice(p, p + n) for (p, _), n in zip(pads, shape, strict=True))

    def run() -> Array:
        out = np.full([n + p + q for n, (p, q) in zip(shape, pads, strict=True)], 77, kind)
        offset = int(np.dot([p for p, _ in pads], steps(out)))
        _native.copy_strided(out, offset, steps(out), x, 0, steps(x), shape)
        return out

    want = np.full_like(run(), 77)
    want[inside] = x
    assert np.array_equal(everywhere(run), want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(64, 64), (130, 67), (1, 300), (300, 2)])
def test_transpositions(shape: tuple[int, int], kind: str) -> None:
    x = np.arange(shape[0] * shape[1]).astype(kind).reshape(shape)

    def run() -> Array:
        out = np.empty(shape[::-1], kind)
        _native.copy_strided(out, 0, steps(out), x, 0, steps(x)[::-1], out.shape)
        return out

    assert np.array_equal(everywhere(run), x.T)


def test_copies_outside_their_arrays_are_refused() -> None:
    out, x = np.zeros(10, "<f4"), np.zeros(10, "<f4")
    for out_offset, out_steps, x_offset, x_steps in (
        (5, 1, 0, 1),
        (-1, 1, 0, 1),
        (0, 2, 0, 1),
        (0, 1, 4, 1),
        (0, 1, 0, 3),
        (0, 0, 0, 1),
        (0, 1, 3, -1),
        (0, 2**62, 0, 1),
    ):
        with pytest.raises(ValueError, match="stride"):
            _native.copy_strided(out, out_offset, [out_steps], x, x_offset, [x_steps], [7])
    with pytest.raises(ValueError, match="size"):
        _native.copy_strided(out, 0, [1], x, 0, [1], [-1])


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 20), st.integers(0, 50), st.integers(0, 40), st.integers(0, 2**32))
def test_op_4__rows_that_are_not_there_read_zero(
    rows: int, count: int, inner: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 255, (rows, inner), dtype="u1")
    index = rng.integers(-3, rows + 3, count).astype(rng.choice(["<i8", "<i4"]))

    def run() -> Array:
        out = np.empty((count, inner), "u1")
        _native.take_rows(out, table, index, rows, inner)
        return out

    present = (index >= 0) & (index < rows)
    want = np.where(present[:, None], table[np.where(present, index, 0)], 0)
    assert np.array_equal(everywhere(run), want)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 30), st.integers(0, 12), st.sampled_from(KINDS), st.integers(0, 2**32))
def test_op_4__windows_that_reach_outside_read_zero(
    size: int, length: int, kind: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, 250, size, dtype=kind)
    starts = np.concatenate([rng.integers(-5, size + 5, 20), [2**63 - 1, -(2**63)]])

    def run() -> Array:
        out = np.empty((22, length), kind)
        _native.take_windows(out, tokens, starts, length)
        return out

    want = [
        [int(tokens[s + j]) if s >= 0 and s + j < size else 0 for j in range(length)]
        for s in map(int, starts)
    ]
    assert everywhere(run).tolist() == want


@settings(max_examples=examples(60), deadline=None)
@given(SHAPES, st.sampled_from(KINDS), st.integers(0, 2**32))
def test_op_4__gather(shape: tuple[int, ...], kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(len(shape)))
    x = rng.integers(1, 250, shape, dtype=kind)
    sizes = [int(rng.integers(0, n + 1)) for n in shape]
    sizes[axis] = int(rng.integers(0, 9))
    index = rng.integers(-2, shape[axis] + 2, sizes)

    def run() -> Array:
        out = np.empty(sizes, kind)
        _native.gather(out, x, index, axis)
        return out

    present = (index >= 0) & (index < shape[axis])
    kept = x[tuple(slice(0, n) if a != axis else slice(None) for a, n in enumerate(sizes))]
    want = np.where(present, np.take_along_axis(kept, np.where(present, index, 0), axis), 0)
    assert np.array_equal(everywhere(run), want)


def words(array: Array) -> list[int]:
    return [int(x) for x in np.ascontiguousarray(array).view("<u4").reshape(-1)]


def scatter(init: list[int], index: list[int], source: list[int], row: int) -> int:
    """One element by NUM-14, in Python integers."""
    result = init[row]
    for start in range(0, len(index), 256):
        partial = 0
        for at in range(start, min(start + 256, len(index))):
            if index[at] == row:
                partial = f32.add(partial, source[at])
        result = f32.add(result, partial)
    return result


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from([1, 2, 9, 40]),
    st.sampled_from([0, 1, 255, 256, 257, 1100]),
    st.sampled_from([1, 7, 33]),
    st.integers(0, 2**32),
)
def test_num_14__scatter_add(rows: int, count: int, inner: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    init = floats(rng, (rows, inner), special=0.2)
    source = floats(rng, (count, inner), special=0.01)
    index = rng.integers(-2, rows + 2, count)

    def run() -> Array:
        out = np.empty_like(init)
        _native.add_rows(out, init, index, source, rows, inner)
        return out

    got = everywhere(run).view("<u4")
    if count == 0:
        assert got.tobytes() == init.tobytes()
        return
    for _ in range(3):
        r, j = int(rng.integers(rows)), int(rng.integers(inner))
        column = words(init[:, j])
        assert int(got[r, j]) == scatter(column, index.tolist(), words(source[:, j]), r)


def test_num_14__wide_rows_are_cut_between_threads() -> None:
    rng = np.random.default_rng(4)
    init, source = floats(rng, (3, 5000), special=0.0), floats(rng, (700, 5000), special=0.0)
    index = rng.integers(0, 2, 700)

    def run() -> Array:
        out = np.empty_like(init)
        _native.add_rows(out, init, index, source, 3, 5000)
        return out

    got = everywhere(run).view("<u4")
    for j in (0, 1023, 1024, 4999):
        want = scatter(words(init[:, j]), index.tolist(), words(source[:, j]), 1)
        assert int(got[1, j]) == want


@pytest.mark.parametrize("n", [0, 1, 3, 4, 31, 64, 67, 40_001])
def test_num_16__uniforms(n: int) -> None:
    def run() -> Array:
        out = np.empty(n, np.float32)
        _native.philox_uniform(out, 0x12345678, 0x9ABCDEF0, 7, 3)
        return out

    got = words(everywhere(run))
    for i in {0, 1, 2, 3, n // 2, n - 1} & set(range(n)):
        block = philox4x32((0x12345678, 0x9ABCDEF0), (i // 4, 0, 7, 3))
        assert got[i] == uniform24(block[i % 4])


def test_num_17__indices_below_a_bound() -> None:
    for bound in (1, 10, 2**31 + 1, 2**63 - 1):
        out = np.empty(33, np.int64)
        _native.philox_index(out, 1, 2, bound, 5, 6)
        for i in range(33):
            block = philox4x32((1, 2), (i // 2, 0, 5, 6))
            assert out[i] == bounded(block[2 * (i % 2)], block[2 * (i % 2) + 1], bound)


def test_num_18__shuffled_positions() -> None:
    for bound in (1, 2, 5, 17, 1000, 2**40 + 3):
        out = np.empty(9, np.int64)
        _native.shuffled_index(out, 11, 22, bound, 12345, 4, 2)
        for i in range(9):
            position = (12345 * 4 + 2) * 9 + i
            assert out[i] == permute((11, 22), position // bound, bound, position % bound)


def test_filling() -> None:
    for kind in KINDS:
        out = np.empty(1000, kind)
        _native.full(out, 0x5A)
        assert (out == 0x5A).all()
    out = np.empty(5, "<i4")
    _native.iota(out, 2**31 - 2, 3)
    assert out.tolist() == [2**31 - 2, -(2**31) + 1, -(2**31) + 4, -(2**31) + 7, -(2**31) + 10]
