"""Convolutions of the size of real ones: blocks, panels and planes beside one element at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array
from tests.helpers.effort import examples
from tests.kernels.native.machine import everywhere, floats

NAMES = ("conv", "conv_dx", "conv_dw")


@dataclass(frozen=True)
class Shape:
    """A convolution over two axes of equal geometry."""

    batch: int
    groups: int
    channels: int
    outputs: int
    size: tuple[int, int]
    window: tuple[int, int] = (3, 3)
    stride: int = 1
    dilation: int = 1
    padding: int = 1

    @property
    def counts(self) -> tuple[int, ...]:
        """Windows along each axis."""
        pairs = zip(self.size, self.window, strict=True)
        reach = [n + 2 * self.padding - self.dilation * (k - 1) - 1 for n, k in pairs]
        return tuple(r // self.stride + 1 for r in reach)

    @property
    def axes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The numbers of the two axes, as the native module takes them."""
        rows = zip(self.size, self.window, self.counts, strict=True)
        found = [(n, k, self.stride, self.dilation, self.padding, c) for n, k, c in rows]
        return found[0], found[1]

    def operands(self, special: float) -> dict[str, Array]:
        """x, w and the gradient of the result."""
        rng = np.random.default_rng(sum(self.size) + self.channels)
        g = self.groups
        shapes = {
            "x": (self.batch, g * self.channels, *self.size),
            "w": (g * self.outputs, self.channels, *self.window),
            "y": (self.batch, g * self.outputs, *self.counts),
        }
        return {k: floats(rng, s, special=special) for k, s in shapes.items()}

    def run(self, name: str, operands: dict[str, Array], *, plain: bool) -> Array:
        """One of the three operators."""
        result, first, second = tuple({"conv": "yxw", "conv_dx": "xyw", "conv_dw": "wyx"}[name])
        out = np.full_like(operands[result], np.nan)
        sizes = (self.batch, self.groups, self.channels, self.outputs)
        function = getattr(_native, name)
        function(out, operands[first], operands[second], sizes, *self.axes, plain)
        return out


SHAPES = [
    Shape(2, 1, 3, 16, (19, 17), (7, 7), 2, 1, 3),
    Shape(2, 1, 16, 14, (16, 16)),
    Shape(3, 1, 33, 9, (8, 8)),
    Shape(5, 1, 30, 20, (4, 4)),
    Shape(8, 1, 40, 70, (2, 2)),
    Shape(2, 1, 20, 24, (14, 14), stride=2),
    Shape(3, 1, 17, 13, (7, 7), (1, 1), 2, 1, 0),
    Shape(2, 1, 40, 30, (9, 11), (1, 1), 1, 1, 0),
    Shape(1, 1, 460, 8, (6, 6)),
    Shape(1, 1, 8, 460, (6, 6)),
    Shape(18, 1, 2, 5, (16, 16)),
    Shape(2, 1, 17, 90, (8, 8)),
    Shape(2, 1, 5, 40, (4, 8), (1, 3), 1, 2, 2),
    Shape(2, 4, 3, 5, (9, 10), stride=3, padding=2),
    Shape(2, 24, 1, 1, (12, 12)),
    Shape(1, 2, 4, 6, (23, 20), (3, 5), 2, 3, 4),
    Shape(2, 1, 5, 7, (12, 1), (5, 1), padding=0),
    Shape(1, 1, 4, 200, (33, 40), (2, 4), padding=0),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_num_10__op_41__blocks_give_the_bits_of_one_element_at_a_time(
    name: str, shape: Shape
) -> None:
    for special in (0.0, 0.001):
        operands = shape.operands(special)
        want = shape.run(name, operands, plain=True)
        got = everywhere(lambda o=operands: shape.run(name, o, plain=False))  # type: ignore[misc]
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_num_10__op_41__convolutions_of_any_shape(name: str, data: st.DataObject) -> None:
    draw = data.draw
    window = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    dilation, padding = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    least = [max(0, dilation * (k - 1) + 1 - 2 * padding) for k in window]
    shape = Shape(
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 8)),
        draw(st.integers(1, 20)),
        (least[0] + draw(st.integers(0, 12)), least[1] + draw(st.integers(0, 20))),
        window,
        draw(st.integers(1, 4)),
        dilation,
        padding,
    )
    operands = shape.operands(draw(st.sampled_from([0.0, 0.01])))
    want = shape.run(name, operands, plain=True)
    assert everywhere(lambda: shape.run(name, operands, plain=False)).tobytes() == want.tobytes()


@pytest.mark.parametrize("windows", [2, 30])
@pytest.mark.parametrize(("window", "padding"), [(3, 1), (1, 0), (4, 2)])
def test_num_3__op_41__zeros_between_windows_take_the_sign_from_underflows(
    windows: int, window: int, padding: int
) -> None:
    """A chain of underflows is -0 until a product with a zero between two windows makes it +0.

    There are a few such results, or many.
    """
    shape = Shape(2, 1, 4, 3, (48, 44), (window, window), 2, 1, padding)
    operands = shape.operands(0.0)
    # Negative kernels leave a -0 as it is, positive ones do not.
    signs = np.where(np.arange(operands["w"][0].size) % 5 == 3, 1, -1).astype("<f4")
    operands["w"][:] = 1e-30 * signs.reshape(operands["w"].shape[1:])
    operands["y"][:] = 1.0
    operands["y"][0, :, :windows, :windows] = 1e-30
    want = shape.run("conv_dx", operands, plain=True)
    got = everywhere(lambda: shape.run("conv_dx", operands, plain=False))
    assert got.tobytes() == want.tobytes()
    assert (want.view("<u4") == 0x80000000).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_convolution_of_few_elements_far_apart_needs_no_more_room(name: str) -> None:
    """Padding and strides may be far larger than the operands; no memory goes with them."""
    far = 1 << 40
    x, y, w = (
        floats(np.random.default_rng(1), s) for s in ((1, 1, 1, 1), (1, 1, 3, 1), (1, 1, 2, 1))
    )
    result, first, second = {"conv": (y, x, w), "conv_dx": (x, y, w), "conv_dw": (w, y, x)}[name]
    out = np.empty_like(result)
    axes = [(1, 2, far, far, far, 3), (1, 1, 1, 1, 0, 1)]
    getattr(_native, name)(out, first, second, (1, 1, 1, 1), *axes)
    plain = np.empty_like(result)
    getattr(_native, name)(plain, first, second, (1, 1, 1, 1), *axes, plain=True)
    assert out.tobytes() == plain.tobytes()


def test_arrays_that_do_not_fit_the_windows_are_refused() -> None:
    shape = Shape(1, 1, 2, 2, (4, 4))
    o = shape.operands(0.0)
    out = np.empty_like(o["y"])
    for bad in ((2, 1, 2, 2), (1, 2, 2, 2), (1, 1, 3, 2), (1, 1, 2, 1), (1, 1, -2, 2)):
        with pytest.raises(ValueError, match=r"elements|size"):
            _native.conv(out, o["x"], o["w"], bad, *shape.axes)
    good = shape.axes[0]
    for bad_axis in (
        (4, 0, 1, 1, 1, 4),
        (4, 3, 0, 1, 1, 4),
        (4, 3, 1, 0, 1, 4),
        (4, 3, 1, 1, -1, 4),
    ):
        with pytest.raises(ValueError, match="out of range"):
            _native.conv(out, o["x"], o["w"], (1, 1, 2, 2), bad_axis, good)
    with pytest.raises(ValueError, match="too far"):
        _native.conv(out, o["x"], o["w"], (1, 1, 2, 2), (4, 3, 1 << 46, 1, 1, 64), good)
    with pytest.raises(ValueError, match="float32"):
        _native.conv(out, o["x"].astype("<f8"), o["w"], (1, 1, 2, 2), good, good)
