"""Matrix products: the order of NUM-10 on every path, for every layout."""

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

SHAPES = [
    (1, 1, 1),
    (6, 256, 16),
    (7, 257, 17),
    (14, 512, 32),
    (29, 300, 65),
    (97, 4096, 33),
    (13, 4097, 31),
    (50, 9000, 37),
    (130, 777, 257),
    (600, 64, 1100),
]


def steps(array: Array) -> tuple[int, int, int]:
    """Batch, row and column strides of a matrix, in elements."""
    return (0, array.strides[0] // 4, array.strides[1] // 4)


def multiply(a: Array, b: Array) -> Array:
    out = np.full((a.shape[0], b.shape[1]), np.nan, np.float32)
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    _native.matmul(out, a, b, 1, m, n, k, steps(a), steps(b))
    return out


def element(a: Array, b: Array, i: int, j: int) -> int:
    """One element of the product, in Python integers by the letter of NUM-10."""
    row = [int(x) for x in np.ascontiguousarray(a[i]).view("<u4")]
    column = [int(x) for x in np.ascontiguousarray(b[:, j]).view("<u4")]
    groups = []
    for group in range(0, len(row), 4096):
        sums = []
        for chunk in range(group, min(group + 4096, len(row)), 256):
            acc = 0
            for k in range(chunk, min(chunk + 256, len(row))):
                acc = f32.fma(row[k], column[k], acc)
            sums.append(acc)
        groups.append(added(sums))
    return added(groups)


def added(values: list[int]) -> int:
    """Left to right, the first as it is; +0 for none."""
    total = values[0] if values else 0
    for value in values[1:]:
        total = f32.add(total, value)
    return total


@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("layout", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("special", [0.0, 0.002])
def test_num_10__every_path_and_layout_gives_the_chains_of_the_rule(
    m: int, k: int, n: int, layout: str, special: float
) -> None:
    rng = np.random.default_rng(m * 7919 + k * 31 + n)
    a = np.asarray(floats(rng, (m, k), special=special), order=layout[0])  # type: ignore[call-overload]
    b = np.asarray(floats(rng, (k, n), special=special), order=layout[1])  # type: ignore[call-overload]
    result = everywhere(lambda: multiply(a, b))
    for _ in range(4):
        i, j = int(rng.integers(m)), int(rng.integers(n))
        assert int(result.view("<u4")[i, j]) == element(a, b, i, j)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 40),
    st.integers(0, 300),
    st.integers(0, 40),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_num_10__small_products_of_any_shape(
    m: int, k: int, n: int, seed: int, transposed: bool
) -> None:
    rng = np.random.default_rng(seed)
    a = floats(rng, (m, k))
    b = floats(rng, (n, k)).T if transposed else floats(rng, (k, n))
    result = everywhere(lambda: multiply(a, b))
    if m and n:
        i, j = int(rng.integers(m)), int(rng.integers(n))
        assert int(result.view("<u4")[i, j]) == element(a, b, i, j)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.integers(1, 5),
    st.sampled_from([(128, 32, 128), (3, 70, 9), (40, 300, 20), (1, 5, 64)]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_num_10__a_batch_is_its_products(
    batch: int, shape: tuple[int, int, int], shared: bool, seed: int
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(seed)
    a = floats(rng, (batch, m, k))
    b = floats(rng, (1 if shared else batch, n, k))

    def run() -> Array:
        out = np.empty((batch, m, n), np.float32)
        b_strides = (0 if shared else n * k, 1, k)
        _native.matmul(out, a, b, batch, m, n, k, (m * k, k, 1), b_strides)
        return out

    result = everywhere(run)
    for i in range(batch):
        assert result[i].tobytes() == multiply(a[i], b[0 if shared else i].T).tobytes()


@pytest.mark.parametrize(("m", "k", "n"), [(2100, 40, 4200), (2100, 4200, 40), (20, 4200, 4200)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_num_10__a_large_product_is_its_parts(m: int, k: int, n: int, threads: int) -> None:
    """So many rows and columns are not packed at once; a later group of k has its own sums."""
    rng = np.random.default_rng(m + k)
    a, b = floats(rng, (m, k)), floats(rng, (k, n))
    before = _native.threads()
    try:
        _native.set_threads(threads)
        result = multiply(a, b)
    finally:
        _native.set_threads(before)
    for i in range(0, m, 700):
        for j in range(0, n, 1300):
            part = multiply(a[i : i + 700], b[:, j : j + 1300])
            assert result[i : i + 700, j : j + 1300].tobytes() == part.tobytes()


def test_num_10__an_empty_contraction_is_plus_zero() -> None:
    result = everywhere(lambda: multiply(np.empty((3, 0), "<f4"), np.empty((0, 5), "<f4")))
    assert result.tobytes() == bytes(4 * 15)


def test_num_11__padding_of_tiles_never_enters_a_chain() -> None:
    """A chain fed with a padded zero would lose -0, or meet inf * 0."""
    a = np.full((1, 1), -1.0, np.float32)
    b = np.array([[1e-45, np.inf, 0.0]], np.float32)
    result = everywhere(lambda: multiply(a, b))
    assert result.view("<u4").tolist() == [[0x80000001, 0xFF800000, 0x00000000]]


def test_num_2__a_product_has_one_nan() -> None:
    a = np.array([[np.inf, 1.0]], np.float32)
    b = np.array([[0.0, 1.0], [1.0, 2.0]], np.float32)
    result = everywhere(lambda: multiply(a, b))
    assert result.view("<u4").tolist() == [[0x7FC00000, 0x7F800000]]


def test_strides_that_leave_an_operand_are_refused() -> None:
    out, a, b = (np.zeros((2, 2), np.float32) for _ in range(3))
    for bad in ((0, 3, 1), (0, 2, 2), (0, -1, 1)):
        with pytest.raises(ValueError, match="strides"):
            _native.matmul(out, a, b, 1, 2, 2, 2, bad, (0, 2, 1))
    with pytest.raises(ValueError, match="elements"):
        _native.matmul(out, a, b, 1, 2, 3, 2, (0, 2, 1), (0, 2, 1))
    with pytest.raises(ValueError, match="float32"):
        _native.matmul(out, a.astype("<f8"), b, 1, 2, 2, 2, (0, 2, 1), (0, 2, 1))
