"""Matrix products on a device have the bits of the CPU twin, however they are cut."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.cuda import source
from identic.kernels.cuda.device import Kernel, Words
from identic.kernels.matmul import cuda
from tests.cuda import nvrtc
from tests.cuda.operands import floats, same_bits
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.helpers.effort import examples

Strides = tuple[int, int, int]


@pytest.fixture
def fresh() -> Iterator[None]:
    """Plans that a test makes with other macros or limits are its own."""
    cuda.planned.cache_clear()
    yield
    cuda.planned.cache_clear()


LAYOUTS = ("wide", "lines", "steps")
"""Lines beside each other, on borders of 16 bytes or off them, or steps beside each other."""


def operand(
    device: ShimDevice, rng: np.random.Generator, sizes: tuple[int, int, int], layout: str
) -> tuple[Any, Strides]:
    """A flat array of ``sizes`` (batch, lines, steps) with its strides in a layout."""
    batch, lines, steps = sizes
    row = -(-lines // 4) * 4 if layout == "wide" else lines + 1
    each = steps * row if layout != "steps" else lines * steps
    shift = int(layout == "lines")
    flat = device.upload(floats(rng, (batch * each + shift,), endless=int(rng.integers(0, 2))))
    return flat[shift:], (each, steps, 1) if layout == "steps" else (each, 1, row)


def check(
    device: ShimDevice,
    sizes: tuple[int, int, int, int],
    layouts: tuple[str, str],
    how: cuda.Cut | None = None,
    seed: int = 0,
) -> list[Kernel]:
    """One product against the CPU twin; gives what was launched."""
    rng = np.random.default_rng(seed)
    batch, m, n, k = sizes
    a, a_strides = operand(device, rng, (batch, m, k), layouts[0])
    b, (b_batch, b_line, b_step) = operand(device, rng, (batch, n, k), layouts[1])
    b_strides = (b_batch, b_step, b_line)
    want = np.empty((batch, m, n), np.float32)
    _native.matmul(want, a.copy(), b.copy(), batch, m, n, k, a_strides, b_strides)
    out = device.empty((batch * m * n,), want.dtype)
    del device.launches[:]
    cuda.multiply(device, how, out, a, b, sizes, a_strides, b_strides)
    assert same_bits(device.download(out), want)
    return device.launches


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_num_10__every_way_of_reading_gives_the_bits_of_the_cpu(left: str, right: str) -> None:
    how = cuda.cut(cuda.SMALL, 3, 1)
    for order in ORDERS:
        check(ShimDevice(order), (2, 68, 92, 530), (left, right), how, seed=order)


@pytest.mark.parametrize(
    ("left", "right"), [("steps", "wide"), ("lines", "steps"), ("wide", "lines")]
)
def test_num_10__large_tiles_and_their_edges(left: str, right: str) -> None:
    for order in ORDERS:
        for m, n, k in [(128, 128, 32), (132, 4, 300), (40, 260, 7)]:
            how = cuda.cut(cuda.LARGE, -(-k // 256), 1)
            check(ShimDevice(order), (1, m, n, k), (left, right), how, seed=m)


@settings(max_examples=examples(20), deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), *[st.integers(1, 90)] * 2, st.integers(1, 600)),
    order=st.sampled_from(ORDERS),
    processors=st.sampled_from([1, 4, 40]),
    seed=st.integers(0, 1 << 30),
)
def test_num_10__chosen_cuts_of_any_shape(
    sizes: tuple[int, int, int, int], order: int, processors: int, seed: int
) -> None:
    device = ShimDevice(order, multiprocessors=processors)
    check(device, sizes, ("lines", "steps"), seed=seed)


@pytest.mark.parametrize("k", [1, 255, 256, 257, 4096, 4097, 9000])
def test_num_10__chunks_and_groups_apart_are_added_in_their_order(k: int) -> None:
    chunks = -(-k // 256)
    for ranges in (1, 2, 3, chunks):
        how = cuda.cut(cuda.NARROW, chunks, ranges)
        planes = how.planes > 1
        launched = check(ShimDevice(ranges % 3), (1, 5, 3, k), ("steps", "lines"), how, seed=k)
        assert [kernel.entry for kernel in launched] == ["matmul", "fold_planes"][: 1 + planes]


def test_num_10__spans_of_planes() -> None:
    spans = {
        r: (cut.span, cut.planes) for r in (1, 2, 3, 40) for cut in [cuda.cut(cuda.LARGE, 40, r)]
    }
    assert spans == {1: (cuda.WHOLE, 1), 2: (16, 3), 3: (1, 40), 40: (1, 40)}


def test_few_tiles_are_cut_and_many_are_not() -> None:
    device = cuda.Kind(132, 90)
    assert cuda.choose_product(device, 1, 4096, 4096, 4096) == cuda.cut(cuda.LARGE, 16, 1)
    assert cuda.choose_product(device, 1, 768, 768, 8192).ranges > 2
    assert cuda.choose_product(device, 1, 64, 64, 256).tile is cuda.SMALL
    assert cuda.choose_product(device, 96, 1024, 1024, 64).ranges == 1
    assert cuda.choose_product(device, 96, 1024, 64, 1024).tile is cuda.TALL
    assert cuda.choose_product(device, 96, 64, 1024, 1024).tile is cuda.FLAT
    huge = cuda.choose_product(device, 1, 2048, 1024, 1 << 30)
    assert huge.planes == 1
    small = cuda.Kind(40, 75)
    assert cuda.choose_product(small, 1, 4096, 4096, 4096).tile == replace(cuda.LARGE, k=8)


@pytest.mark.parametrize(("m", "n"), [(3, 50), (50, 3), (1, 1), (1, 300)])
def test_num_10__few_rows_are_computed_as_few_columns(m: int, n: int) -> None:
    for left, right in [("steps", "lines"), ("wide", "steps")]:
        check(ShimDevice(), (2, m, n, 40), (left, right))


def test_num_10__an_empty_contraction_is_zero() -> None:
    launched = check(ShimDevice(), (2, 3, 5, 0), ("steps", "lines"))
    assert [kernel.entry for kernel in launched] == ["fold_planes"]
    assert not check(ShimDevice(), (2, 0, 5, 7), ("steps", "lines"))


def test_num_11__what_fills_a_tile_is_not_multiplied() -> None:
    device = ShimDevice()
    a, b = np.full((1, 3), -0.0, np.float32), np.full((3, 1), 1e-45, np.float32)
    a[0, 0], b[0, 0] = -1e-45, 1e-45
    out = device.empty((1,), a.dtype)
    cuda.matmul(device, out, device.upload(a), device.upload(b), 1, 1, 1, 3, (3, 3, 1), (3, 1, 1))
    assert device.download(out).view(np.uint32)[0] == 0x80000000


@pytest.mark.parametrize("tile", [replace(cuda.SMALL, k=8), cuda.TALL, cuda.FLAT])
def test_launch_shapes_change_no_bit(tile: cuda.Tile) -> None:
    check(ShimDevice(), (1, 70, 50, 300), ("lines", "steps"), cuda.cut(tile, 2, 1))


@pytest.mark.usefixtures("fresh")
def test_copies_that_arrive_at_once_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(*how: Any) -> Kernel:
        made = made_by(*how)
        return replace(made, defines=(*made.defines, ("IDN_ASYNC", "1")))

    made_by = cuda.kernel
    monkeypatch.setattr(cuda, "kernel", early)
    for order in ORDERS:
        check(ShimDevice(order), (1, 70, 50, 300), ("lines", "steps"), cuda.cut(cuda.SMALL, 2, 1))


@pytest.mark.usefixtures("fresh")
def test_matrices_in_several_rows_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "MOST_BLOCKS", 5)
    for batch in (1, 3, 7):
        check(ShimDevice(), (batch, 70, 20, 30), ("lines", "steps"), cuda.cut(cuda.SMALL, 1, 1))


@pytest.mark.parametrize("architecture", [80, 90, 100, 120])
def test_chains_of_a_large_tile_fit_the_registers(architecture: int) -> None:
    text = source.text(cuda.kernel(cuda.LARGE, 2, 0))
    report = nvrtc.to_report(text, architecture, source.OPTIONS)
    # What a thread keeps on purpose: the sums of a group and of all groups before it.
    assert "512 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in report
    assert int(re.findall(r"Used (\d+) registers", report)[0]) <= 128


SPILT = {(120, 0, 2): 12, (120, 2, 2): 8}
"""Bytes by architecture and ways of reading; of all others none."""


@pytest.mark.long
@pytest.mark.parametrize("architecture", [75, 80, 90, 100, 120])
def test_chains_of_a_large_tile_fit_the_registers_however_it_reads(architecture: int) -> None:
    tile = replace(cuda.LARGE, k=8) if architecture < 80 else cuda.LARGE
    for left, right in itertools.product(range(3), repeat=2):
        text = source.text(cuda.kernel(tile, left, right))
        report = nvrtc.to_report(text, architecture, source.OPTIONS)
        (spilt,) = re.findall(r"(\d+) bytes spill stores", report)
        assert int(spilt) <= SPILT.get((architecture, left, right), 0), (left, right)


def test_a_missing_barrier_shows() -> None:
    """Tiles that are multiplied before all threads have brought their part."""
    kernel = cuda.kernel(cuda.SMALL, 1, 2)
    broken = replace(kernel, defines=(*kernel.defines, ("__syncthreads()", "__syncwarp()")))
    device = ShimDevice()
    rng = np.random.default_rng(0)
    a, b = (device.upload(floats(rng, (64, 64))) for _ in range(2))
    words = Words((64, 64, 64, 0, 1, 64, 0, 1, 64, 0, 64, 1, 0, 1, 1, 1 << 30, 0, 1, 1), 19)
    found = []
    for made in (kernel, broken):
        out = device.empty((4096,), a.dtype)
        device.launch(made, (1,), (256,), out, a, b, words)
        found.append(device.download(out).tobytes())
    assert found[0] != found[1]
