"""Pools of rows longer than what is computed at a time, beside numpy, place by place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from tests.kernels.native.machine import everywhere, floats


@dataclass(frozen=True)
class Shape:
    """Planes, and windows over one axis; the other has ``rows`` places in threes."""

    planes: int
    rows: int
    size: int
    window: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def axes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The numbers of both axes."""
        reach = self.size + self.before + self.after - self.dilation * (self.window - 1) - 1
        down = (self.rows, 3, 2, 1, 1, (self.rows + 2 - 3) // 2 + 1)
        count = reach // self.stride + 1
        return down, (self.size, self.window, self.stride, self.dilation, self.before, count)

    @property
    def counts(self) -> tuple[int, int]:
        """Windows along both axes."""
        return self.axes[0][5], self.axes[1][5]

    def x(self) -> Array:
        """Elements, many of them equal or special."""
        rng = np.random.default_rng(self.size)
        values = floats(rng, (self.planes, self.rows, self.size), special=0.05)
        return np.where(rng.random(values.shape) < 0.3, np.float32(1.5), values)

    def taps(self, oh: int, ow: int, *, all_of_span: bool = False) -> list[int]:
        """Positions in the plane that a window reads, in order."""
        found = []
        for i in range(3):
            step = 1 if all_of_span else self.dilation
            for j in range(0, self.dilation * (self.window - 1) + 1, step):
                h, v = oh * 2 - 1 + i, ow * self.stride - self.before + j
                if 0 <= h < self.rows and 0 <= v < self.size:
                    found.append(h * self.size + v)
        return found


SHAPES = [
    Shape(2, 9, 600, 3, 1, 1, 1, 1),
    Shape(2, 7, 600, 3, 2, 1, 1, 1),
    Shape(3, 5, 530, 4, 1, 3, 2, 0),
    Shape(1, 4, 40, 2, 3, 5, 7, 9),
    Shape(40, 3, 8, 8, 1, 1, 0, 0),
    Shape(1, 6, 5000, 5000, 1, 1, 0, 3),
]


def rank(x: Array) -> Array:
    """Numbers that grow in the order of NUM-4."""
    bits = x.view("<i4").astype("<i8")
    ranks = np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)
    return np.where(np.isnan(x), 1 << 40, ranks)


def every_window(shape: Shape) -> list[tuple[int, int]]:
    return [(i, j) for i in range(shape.counts[0]) for j in range(shape.counts[1])]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_op_42__maxima_are_those_of_the_places_read(shape: Shape) -> None:
    x = shape.x()
    size = (shape.planes, *shape.counts)

    def values() -> Array:
        out = np.empty(size, "<f4")
        _native.max_pool(out, x, shape.planes, *shape.axes)
        return out

    def indices(*, far: bool = False) -> Array:
        out = np.empty(size, "<i8")
        _native.max_pool_indices(out, x, shape.planes, *shape.axes, far)
        return out

    got, places = everywhere(values), everywhere(indices)
    assert (indices(far=True) == places).all()
    flat, ranks = x.reshape(shape.planes, -1), rank(x).reshape(shape.planes, -1)
    for oh, ow in every_window(shape):
        taps = shape.taps(oh, ow)
        if not taps:
            assert (places[:, oh, ow] == -1).all()
            assert (got[:, oh, ow] == -np.inf).all()
            continue
        first = np.array(taps)[ranks[:, taps].argmax(1)]
        assert (places[:, oh, ow] == first).all()
        best = np.take_along_axis(flat, first[:, None], 1)[:, 0]
        bits = np.where(np.isnan(best), 0x7FC00000, best.view("<u4"))
        assert (got[:, oh, ow].view("<u4") == bits).all()


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.dilation == 1], ids=str)
def test_op_43__sums_are_added_in_order(shape: Shape) -> None:
    x = shape.x()

    def run() -> Array:
        out = np.empty((shape.planes, *shape.counts), "<f4")
        _native.sum_pool(out, x, shape.planes, *shape.axes)
        return out

    got, flat = everywhere(run), x.reshape(shape.planes, -1)
    with np.errstate(all="ignore"):
        for oh, ow in every_window(shape)[:: max(1, shape.size // 500)]:
            total = np.zeros(shape.planes, np.float32)
            for tap in shape.taps(oh, ow):
                total = total + flat[:, tap]
            bits = np.where(np.isnan(total), 0x7FC00000, total.view("<u4"))
            assert (got[:, oh, ow].view("<u4") == bits).all()


@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_op_43__gradients_are_added_in_order_of_the_windows(shape: Shape) -> None:
    rng = np.random.default_rng(7)
    grad = floats(rng, (shape.planes, *shape.counts), special=0.01)
    plane = shape.rows * shape.size
    indices = rng.integers(-1, plane + 1, grad.shape)
    inside = np.array([shape.taps(i, j) or [-1] for i, j in every_window(shape)], dtype=object)
    for plane_indices in indices.reshape(shape.planes, -1):
        for number in range(0, len(plane_indices), 2):
            plane_indices[number] = rng.choice(inside[number])
    size = (shape.planes, shape.rows, shape.size)

    def run_max() -> Array:
        out = np.empty(size, "<f4")
        _native.max_pool_dx(out, grad, indices, shape.planes, *shape.axes)
        return out

    def run_sum() -> Array:
        out = np.empty(size, "<f4")
        _native.sum_pool_dx(out, grad, shape.planes, *shape.axes)
        return out

    want = {name: np.zeros((shape.planes, plane), np.float32) for name in ("max", "sum")}
    with np.errstate(all="ignore"):
        for oh, ow in every_window(shape):
            span = shape.taps(oh, ow, all_of_span=True)
            for number in range(shape.planes):
                at, g = indices[number, oh, ow], grad[number, oh, ow]
                if at in span:
                    want["max"][number, at] += g
                want["sum"][number, span] += g
    for name, got in (("max", everywhere(run_max)), ("sum", everywhere(run_sum))):
        total = want[name]
        bits = np.where(np.isnan(total), 0x7FC00000, total.view("<u4"))
        assert (got.reshape(total.shape).view("<u4") == bits).all()


def test_arrays_that_do_not_fit_are_refused() -> None:
    shape = SHAPES[0]
    x = shape.x()
    good = np.empty((shape.planes, *shape.counts), "<f4")
    for out, planes in ((good[:, :-1].copy(), 2), (good, 3), (good, -1)):
        with pytest.raises(ValueError, match=r"elements|size"):
            _native.max_pool(out, x, planes, *shape.axes)
    with pytest.raises(ValueError, match="int64"):
        _native.max_pool_indices(good, x, 2, *shape.axes)
