"""Convolutions on a device have the bits of the CPU twin, however they are cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.conv import cuda
from identic.kernels.conv.cuda import DW, DX, FORWARD, Product
from identic.kernels.cuda.device import Kernel
from identic.kernels.matmul.cuda import FLAT, LARGE, Cut, Kind, Tile, cut, launch
from tests.cuda.axes import Six, axes, axis
from tests.cuda.operands import floats, same_bits
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.helpers.effort import examples

TILES: dict[str, Tile | None] = {
    "large": LARGE,
    "flat": FLAT,
    "thin": cuda.THIN,
    "alone": None,
}


def operands(product: Product, seed: int) -> tuple[tuple[int, ...], list[Array]]:
    """The result's shape, and both operands in the order of the launchers."""
    rng = np.random.default_rng(seed)
    batch, groups, channels, outputs = product.sizes
    down, across = product.axes
    x = (batch, groups * channels, down[0], across[0])
    y = (batch, groups * outputs, down[5], across[5])
    w = (groups * outputs, channels, down[1], across[1])
    shapes = {FORWARD: (y, x, w), DX: (x, y, w), DW: (w, y, x)}[product.direction]
    return shapes[0], [floats(rng, s, endless=seed % 2) for s in shapes[1:]]


def check(device: ShimDevice, product: Product, tile: Tile | None, ranges: int, seed: int) -> None:
    """One convolution, cut as told, against the CPU twin's element by element."""
    shape, (a, b) = operands(product, seed)
    want = np.empty(shape, np.float32)
    name = ("conv", "conv_dx", "conv_dw")[product.direction]
    getattr(_native, name)(want, a, b, product.sizes, *product.axes, plain=True)
    out = device.empty(shape, want.dtype)
    first, second = device.upload(a), device.upload(b)
    left, right = (first, second) if product.direction == DW else (second, first)
    how = cut(tile or cuda.ALONE, -(-product.matrix[2] // 256), ranges)
    plan = (
        cuda.planned(Kind.of(device), how, product, on_border=True)
        if tile
        else cuda.planned_plainly(Kind.of(device), how, product)
    )
    assert plan
    launch(device, (plan,), out, left, right)
    assert same_bits(device.download(out), want)


DRAWN: dict[str, Any] = {
    "sizes": st.tuples(*[st.integers(1, 3)] * 4),
    "down": axes(),
    "across": axes(),
    "order": st.sampled_from(ORDERS),
    "seed": st.integers(0, 1000),
}
"""A small convolution, an order of threads, and a seed of its operands."""


@pytest.mark.parametrize("tile", ["flat", "thin", "alone"])
@pytest.mark.parametrize("direction", [FORWARD, DX, DW])
def test_op_41__convolutions_of_any_shape(direction: int, tile: str) -> None:
    @settings(max_examples=examples(12), deadline=None)
    @given(**DRAWN)
    def run(
        sizes: tuple[int, int, int, int], down: Six, across: Six, order: int, seed: int
    ) -> None:
        check(ShimDevice(order), Product(direction, sizes, (down, across)), TILES[tile], 1, seed)

    run()


@pytest.mark.parametrize("direction", [FORWARD, DX, DW])
@pytest.mark.parametrize("stride", [1, 2])
def test_num_10__chunks_apart_are_added_in_their_order(direction: int, stride: int) -> None:
    down, across = axis(12, 3, stride, pad=1), axis(13, 3, stride, pad=2)
    product = Product(direction, (6, 2, 18, 20), (down, across))
    for tile in (FLAT, cuda.THIN):
        for ranges in (1, 9):
            check(ShimDevice(ranges % 3), product, tile, ranges, seed=ranges)
    short = Product(direction, (6, 2, 3, 2), (down, across))
    for ranges in (1, 9):
        check(ShimDevice(ranges % 3), short, None, ranges, seed=ranges)


def check_phases(
    device: ShimDevice, product: Product, how: Cut | None, arrays: list[Array]
) -> Array:
    """The gradient in x by phases against the CPU twin's element by element; gives it."""
    shape, _ = operands(product, 0)
    want = np.empty(shape, np.float32)
    grad, w = arrays
    _native.conv_dx(want, grad, w, product.sizes, *product.axes, plain=True)
    out = device.empty(shape, want.dtype)
    cuda.conv_dx_by_phases(device, how, product, out, device.upload(grad), device.upload(w))
    assert same_bits(device.download(out), want)
    return want


@settings(max_examples=examples(25), deadline=None)
@given(**DRAWN)
def test_op_41__a_gradient_by_phases_of_the_strides(
    sizes: tuple[int, int, int, int], down: Six, across: Six, order: int, seed: int
) -> None:
    product = Product(DX, sizes, (down, across))
    how = cut((FLAT, cuda.THIN)[seed % 2], -(-product.matrix[2] // 256), 1)
    check_phases(ShimDevice(order), product, how, operands(product, seed)[1])


@pytest.mark.parametrize(("taps", "outputs"), [(3, 200), (1, 600), (5, 170)])
def test_num_10__chunks_of_phases_begin_where_they_would(taps: int, outputs: int) -> None:
    product = Product(DX, (2, 2, 5, outputs), (axis(9, taps, 2, pad=1), axis(7, taps, 3, 2, 4)))
    chunks = -(-product.matrix[2] // 256)
    for tile, ranges in ((FLAT, 1), (cuda.THIN, chunks), (cuda.THIN, 2)):
        how = cut(tile, chunks, ranges)
        arrays = operands(product, 2 * ranges)[1]
        check_phases(ShimDevice(ranges % 3), product, how, arrays)


def test_op_41__what_zeros_between_windows_decide_is_computed_again() -> None:
    product = Product(DX, (2, 2, 3, 4), (axis(8, 3, 2, pad=1), axis(9, 3, 2, pad=1)))
    grad, w = (np.full_like(x, 0.5) for x in operands(product, 0)[1])
    w[3, 1, 0, 0], w[5, 2, 2, 2] = np.inf, np.nan
    endless = check_phases(ShimDevice(), product, None, [grad, w])
    assert not np.isfinite(endless[:, [1, 5]]).any()
    assert np.isfinite(endless[:, [0, 2, 3, 4]]).all()
    # Products that vanish below zero, and zeros of either sign after them.
    vanishing = [np.full_like(grad, -1e-30), np.full_like(w, 1e-30)]
    vanishing[1][2:4] = 0.0
    vanishing[1][0, :, ::2] = -0.0
    zeros = check_phases(ShimDevice(), product, None, vanishing).view(np.uint32)
    assert set(zeros.reshape(-1).tolist()) == {0, 1 << 31}
    for arrays in ([grad, w], vanishing):
        with pytest.raises(AssertionError):
            check_phases(Unmended(), product, None, arrays)


class Unmended(ShimDevice):
    """A device that leaves out what is to be computed again."""

    def launch(self, kernel: Kernel, *how: Any, **more: Any) -> None:
        if kernel != cuda.MEND:
            super().launch(kernel, *how, **more)


def test_num_10__large_tiles_and_their_edges() -> None:
    product = Product(FORWARD, (2, 1, 5, 130), (axis(9, 3), axis(16, 3, pad=1)))
    for order in ORDERS:
        check(ShimDevice(order), product, LARGE, 1, seed=order)


def test_num_10__groups_of_many_chunks_apart() -> None:
    product = Product(DW, (6, 1, 2, 3), (axis(29, 2), axis(29, 1)))
    assert cut(cuda.THIN, 20, 1).span > 16 > cut(cuda.THIN, 20, 20).span
    for ranges in (1, 20):
        check(ShimDevice(), product, cuda.THIN, ranges, seed=2)
        check(ShimDevice(), product, None, ranges, seed=3)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 8, 1000, (1 << 29) + 1, (1 << 30) - 1])
def test_a_multiplier_divides(length: int) -> None:
    by, shift = cuda.multiplier(length), (length - 1).bit_length()
    for x in (
        0,
        1,
        length - 1,
        length,
        2 * length - 1,
        (1 << 31) - 1,
        (1 << 31) // length * length - 1,
    ):
        if 0 <= x < 1 << 31 and length > 1:
            assert ((x * by >> 32) + x) >> shift == x // length


def test_which_kernel_computes_what() -> None:
    common = Product(FORWARD, (8, 1, 64, 64), (axis(56, 3, pad=1), axis(56, 3, pad=1)))
    assert cuda.tiled(common) == (FLAT, cuda.THIN)
    assert cuda.tiled(replace(common, sizes=(8, 1, 64, 256))) == (LARGE, FLAT)
    depthwise = replace(common, sizes=(8, 64, 1, 1))
    assert cuda.tiled(depthwise) == (cuda.THIN,)
    assert cuda.tiled(replace(depthwise, direction=DW)) == ()
    far = axis(5, 2, dilation=1 << 31, pad=1 << 31)
    assert cuda.tiled(replace(common, axes=(far, far))) == ()


@pytest.mark.parametrize("direction", [FORWARD, DX, DW])
def test_op_40__paddings_strides_and_dilations_beyond_32_bits(direction: int) -> None:
    far = axis(3, 2, 1 << 33, 1 << 34, 1 << 34)
    product = Product(direction, (2, 1, 2, 2), (far, axis(4, 2)))
    check(ShimDevice(), product, None, 1, seed=1)
    launched = launch_all(product)
    assert [k.file for k in launched] == ["conv/cuda_plain.cu"]


@pytest.mark.parametrize("direction", [FORWARD, DX])
def test_windows_of_one_place_are_products_of_images(direction: int) -> None:
    product = Product(direction, (2, 1, 7, 6), (axis(8, 1), axis(16, 1)))
    assert [k.file for k in launch_all(product)] == ["matmul/cuda.cu"]
    strided = replace(product, axes=(axis(8, 1), axis(31, 1, 2)))
    phases = ["convolve"] * 2 + ["find_finite", "convolve_plainly"]
    assert [k.entry for k in launch_all(strided)] == (phases if direction == DX else ["convolve"])


def launch_all(product: Product) -> list[Kernel]:
    """What the launcher of a product runs on a small device."""
    device = ShimDevice()
    shape, (a, b) = operands(product, 0)
    out = device.empty(shape, a.dtype)
    function: Any = (cuda.conv, cuda.conv_dx, cuda.conv_dw)[product.direction]
    function(device, out, device.upload(a), device.upload(b), product.sizes, *product.axes)
    want = np.empty(shape, np.float32)
    name = ("conv", "conv_dx", "conv_dw")[product.direction]
    getattr(_native, name)(want, a, b, product.sizes, *product.axes)
    assert same_bits(device.download(out), want)
    return device.launches


@pytest.mark.parametrize("direction", [FORWARD, DX, DW])
def test_empty_results_and_empty_sums(direction: int) -> None:
    plain = (axis(3, 2), axis(3, 2))
    for sizes in [(0, 1, 2, 2), (2, 1, 0, 2), (2, 1, 2, 0), (2, 0, 2, 2)]:
        product = Product(direction, sizes, plain)
        made = [kernel.entry for kernel in launch_all(product)]
        empty = product.elements and not product.matrix[2]
        assert made == (["fold_planes"] if empty else [])


def test_launchers_cut_for_the_device() -> None:
    product = Product(DW, (4, 1, 8, 8), (axis(10, 3, pad=1), axis(10, 3, pad=1)))
    assert [k.entry for k in launch_all(product)] == ["convolve", "fold_planes"]


def test_a_table_that_not_all_threads_have_filled_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*how: Any, strided: bool) -> Kernel:
        made = made_by(*how, strided=strided)
        return replace(made, defines=(*made.defines, ("__syncthreads()", "__syncwarp()")))

    product = Product(FORWARD, (2, 1, 5, 20), (axis(9, 3), axis(16, 3, pad=1)))
    check(ShimDevice(), product, FLAT, 1, seed=1)
    made_by = cuda.kernel
    cuda.planned.cache_clear()
    monkeypatch.setattr(cuda, "kernel", broken)
    with pytest.raises(AssertionError):
        check(ShimDevice(), product, FLAT, 1, seed=1)
    cuda.planned.cache_clear()
