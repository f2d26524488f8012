"""Elementwise operators on every path: rows of any stride, special values, tails of vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.protocol.arithmetic import f32
from tests.helpers.effort import examples
from tests.kernels.native.machine import SPECIAL, everywhere, floats

ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": f32.add,
    "sub": f32.sub,
    "mul": f32.mul,
    "div": f32.div,
    "maximum": f32.maximum,
    "minimum": f32.minimum,
}
COMPARISONS: dict[str, Callable[[int, int], int]] = {
    "eq": f32.eq,
    "ne": f32.ne,
    "lt": f32.lt,
    "le": f32.le,
    "gt": f32.gt,
    "ge": f32.ge,
}
UNARY: dict[str, Callable[[int], int]] = {
    "neg": f32.neg,
    "abs": f32.absolute,
    "sqrt": f32.sqrt,
    "rsqrt": f32.rsqrt,
}
INTEGER = ["add", "sub", "mul", "maximum", "minimum", *COMPARISONS]


def words(array: Array) -> list[int]:
    return [int(x) for x in np.ascontiguousarray(array).view("<u4").reshape(-1)]


def pairs(rng: np.random.Generator, more: int) -> tuple[Array, Array]:
    """Every pair of special values, and random numbers near and far from each other."""
    a, b = (x.reshape(-1) for x in np.meshgrid(SPECIAL, SPECIAL))
    x = floats(rng, (more,))
    y = np.where(rng.random(more) < 0.5, x, floats(rng, (more,)))
    return np.concatenate([a, x]), np.concatenate([b, y])


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_num_1__two_operands(name: str) -> None:
    a, b = pairs(np.random.default_rng(5), 600)
    kind = np.bool_ if name in COMPARISONS else np.float32

    def run() -> Array:
        out: Array = np.empty(a.shape, kind)
        _native.binary(name, out, a, b)
        return out

    got = everywhere(run)
    rule = (ARITHMETIC | COMPARISONS)[name]
    want = [rule(x, y) for x, y in zip(words(a), words(b), strict=True)]
    assert (words(got) if kind is np.float32 else got.tolist()) == want


@pytest.mark.parametrize("name", UNARY)
def test_num_6__one_operand(name: str) -> None:
    x = np.concatenate([SPECIAL, floats(np.random.default_rng(6), (1000,))])

    def run() -> Array:
        out = np.empty_like(x)
        _native.unary(name, out, x)
        return out

    assert words(everywhere(run)) == [UNARY[name](w) for w in words(x)]


def spread(
    rng: np.random.Generator, make: Callable[[tuple[int, ...]], Array], shape: tuple[int, ...]
) -> Array:
    """An operand that broadcasts to ``shape``, sometimes a view with strides of its own."""
    kept = tuple(1 if rng.random() < 0.35 else n for n in shape)
    order = rng.permutation(len(shape))
    stored = make(tuple(kept[i] for i in order))
    return np.transpose(stored, np.argsort(order))


def over(array: Array, shape: tuple[int, ...]) -> list[int]:
    return [
        0 if n == 1 else s // array.itemsize
        for n, s in zip(array.shape, array.strides, strict=True)
    ] + [0] * (len(shape) - array.ndim)


SHAPES = st.lists(st.sampled_from([1, 2, 3, 5, 17, 40]), min_size=1, max_size=4).map(tuple)


@settings(max_examples=examples(60), deadline=None)
@given(SHAPES, st.sampled_from(["add", "sub", "maximum", "lt"]), st.integers(0, 2**32))
def test_op_2__operands_of_any_strides(shape: tuple[int, ...], name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (spread(rng, lambda s: floats(rng, s), shape) for _ in range(2))
    kind = np.bool_ if name == "lt" else np.float32

    def run(x: Array, y: Array) -> Array:
        out: Array = np.empty(shape, kind)
        _native.binary(name, out, x, y, shape, over(x, shape), over(y, shape))
        return out

    whole = [np.ascontiguousarray(np.broadcast_to(x, shape)) for x in (a, b)]
    assert everywhere(lambda: run(a, b)).tobytes() == run(*whole).tobytes()


@settings(max_examples=examples(40), deadline=None)
@given(SHAPES, st.sampled_from(INTEGER), st.sampled_from(["<i8", "<i4"]), st.integers(0, 2**32))
def test_num_9__integers_wrap(shape: tuple[int, ...], name: str, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = np.iinfo(kind)
    edges = np.array([0, 1, -1, limits.max, limits.min], kind)

    def make(s: tuple[int, ...]) -> Array:
        wide = rng.integers(limits.min, limits.max, s, dtype=kind, endpoint=True)
        return np.where(rng.random(s) < 0.4, rng.choice(edges, s), wide)

    a, b = spread(rng, make, shape), spread(rng, make, shape)

    def run() -> Array:
        out = np.empty(shape, np.bool_ if name in COMPARISONS else kind)
        _native.binary(name, out, a, b, shape, over(a, shape), over(b, shape))
        return out

    numpy_name = {
        "eq": "equal",
        "ne": "not_equal",
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
        "sub": "subtract",
        "mul": "multiply",
    }.get(name, name)
    want = np.broadcast_to(getattr(np, numpy_name)(a, b), shape)
    assert np.array_equal(everywhere(run), want)


@settings(max_examples=examples(40), deadline=None)
@given(SHAPES, st.sampled_from(["u1", "<u2", "<u4", "<u8"]), st.integers(0, 2**32))
def test_num_2__where_keeps_bits(shape: tuple[int, ...], kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def make(s: tuple[int, ...]) -> Array:
        return rng.integers(0, np.iinfo(kind).max, s, dtype=kind, endpoint=True)

    c = spread(rng, lambda s: rng.random(s) < 0.5, shape)
    a, b = spread(rng, make, shape), spread(rng, make, shape)

    def run() -> Array:
        out = np.empty(shape, kind)
        _native.where(out, c, a, b, shape, over(c, shape), over(a, shape), over(b, shape))
        return out

    assert np.array_equal(everywhere(run), np.broadcast_to(np.where(c, a, b), shape))


def test_booleans() -> None:
    a = np.array([False, False, True, True] * 20)
    b = np.array([False, True] * 40)
    for name, want in (("and", a & b), ("or", a | b), ("eq", a == b), ("ne", a != b)):

        def run(op: str = name) -> Array:
            out = np.empty(a.shape, np.bool_)
            _native.binary(op, out, a, b)
            return out

        assert np.array_equal(everywhere(run), want)
    out = np.empty(a.shape, np.bool_)
    _native.unary("not", out, a)
    assert np.array_equal(out, ~a)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 511, 513, 70_001])
def test_no_element_is_lost_at_the_end_of_a_row(n: int) -> None:
    x = floats(np.random.default_rng(n), (n + 1,))[1:]  # a start that is not aligned

    def run() -> Array:
        out = np.full(n + 2, 7.0, np.float32)
        _native.unary("neg", out[1:-1], x)
        assert out[0] == 7.0
        assert out[-1] == 7.0
        return out

    assert words(everywhere(run)[1:-1]) == [f32.neg(w) for w in words(x)]


def test_what_an_operator_does_not_take_is_refused() -> None:
    x, i, b = np.zeros(3, "<f4"), np.zeros(3, "<i8"), np.zeros(3, np.bool_)
    for name, out, left, right in (
        ("div", i, i, i),
        ("and", b, i, i),
        ("add", x, x, i),
        ("add", b, x, x),
        ("lt", x, x, x),
        ("add", x, x, x[:2]),
        ("nonsense", x, x, x),
        ("add", x, x.astype("<f8"), x.astype("<f8")),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            _native.binary(name, out, left, right)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        _native.unary("neg", x, x)
