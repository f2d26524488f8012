"""Sums and maxima of rows and columns on a device have the bits of the CPU twin."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.cuda import source
from identic.kernels.cuda.device import Kernel
from identic.kernels.reduce import cuda
from tests.cuda import nvrtc
from tests.cuda.operands import floats, same_bits
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.helpers.effort import examples

KINDS = tuple(np.dtype(kind) for kind in ("<f4", "<i4", "<i8"))

Dtype = np.dtype[Any]


def elements(dtype: Dtype, shape: tuple[int, ...], seed: int) -> Any:
    """Elements that are hard to add or to compare: few different ones for a maximum."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "f":
        return floats(rng, shape, endless=seed % 3)
    ends = np.iinfo(dtype)
    some = np.array([ends.min, ends.min + 1, -1, 0, 1, ends.max], dtype)
    return rng.choice(some, shape)


def check(device: ShimDevice, name: str, dtype: Dtype, sizes: tuple[int, int], seed: int) -> None:
    """One reduction of (rows, n), or of (n, inner), against the CPU twin."""
    x = elements(dtype, sizes, seed)
    made = np.dtype("<i8") if name == "argmax" else dtype
    want = np.empty(sizes[1] if name == "sum_first" else sizes[0], made)
    getattr(_native, name)(want, x, *sizes)
    out = device.empty(want.shape, made)
    launcher: Any = getattr(cuda, name)
    launcher(device, out, device.upload(x), *sizes)
    assert same_bits(device.download(out), want)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["sum_last", "amax", "argmax"])
def test_num_12__rows_of_any_length(name: str, dtype: Dtype) -> None:
    @settings(max_examples=examples(50), deadline=None)
    @given(
        rows=st.integers(0, 20),
        n=st.one_of(st.integers(1, 70), st.integers(71, 700)),
        order=st.sampled_from(ORDERS),
        seed=st.integers(0, 1000),
    )
    def run(rows: int, n: int, order: int, seed: int) -> None:
        check(ShimDevice(order), name, dtype, (rows, n), seed)

    run()
    if name == "sum_last":
        check(ShimDevice(), name, dtype, (3, 0), 0)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [4095, 4096, 4097, 9000, 70000])
def test_num_12__long_rows_in_blocks(n: int, dtype: Dtype) -> None:
    for name in ("sum_last", "amax", "argmax"):
        check(ShimDevice(), name, dtype, (2, n), seed=n)


def test_num_12__sums_of_blocks_of_sums() -> None:
    n = 4096 * 4096 + 5000
    device = ShimDevice()
    x = device.empty((n,), np.dtype(np.float32))
    x[:] = 0
    x[:: 1 << 16], x[1 :: 1 << 15] = 2.0**24, 1.0
    want, out = np.empty(1, x.dtype), device.empty((1,), x.dtype)
    _native.sum_last(want, x, 1, n)
    cuda.sum_last(device, out, x, 1, n)
    assert same_bits(device.download(out), want)
    assert len(device.launches) == 3


@pytest.mark.parametrize("dtype", KINDS)
def test_num_13__columns_of_any_length(dtype: Dtype) -> None:
    @settings(max_examples=examples(50), deadline=None)
    @given(
        n=st.one_of(st.integers(0, 40), st.integers(250, 1100)),
        inner=st.integers(0, 40),
        order=st.sampled_from(ORDERS),
        seed=st.integers(0, 1000),
    )
    def run(n: int, inner: int, order: int, seed: int) -> None:
        check(ShimDevice(order), "sum_first", dtype, (n, inner), seed)

    run()
    for n in (255, 256, 257, 3000):
        check(ShimDevice(), "sum_first", dtype, (n, 1), seed=n)


@pytest.mark.parametrize("name", ["sum_last", "sum_first", "amax", "argmax"])
def test_num_4__zeros_and_nans_alone(name: str) -> None:
    device = ShimDevice()
    for words in (
        [0x80000000] * 3,
        [0, 0x80000000],
        [0x80000000, 0],
        [0xFFC00001],
        [0xFF800000] * 70,
    ):
        x = np.array(words, np.uint32).view(np.float32)
        sizes = (x.size, 1) if name == "sum_first" else (1, x.size)
        want = np.empty(1, np.int64 if name == "argmax" else np.float32)
        getattr(_native, name)(want, x, *sizes)
        out = device.empty((1,), want.dtype)
        launcher: Any = getattr(cuda, name)
        launcher(device, out, device.upload(x), *sizes)
        assert same_bits(device.download(out), want)


@pytest.mark.parametrize(("threads", "processors"), [(32, 1), (64, 50), (256, 3)])
def test_launch_shapes_change_no_bit(
    threads: int, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "THREADS", threads)
    monkeypatch.setattr(cuda, "PIECE", 8 * threads)
    device = ShimDevice(multiprocessors=processors)
    for name in ("sum_last", "amax", "argmax", "sum_first"):
        for sizes in [(40, 30), (3, 5000), (700, 9)]:
            check(device, name, KINDS[0], sizes, seed=threads)


def test_elements_read_ahead_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = {
        key: Kernel(k.file, k.entry, (*k.defines, ("IDN_ABREAST", "2")))
        for key, k in cuda._KERNELS.items()
    }
    monkeypatch.setattr(cuda, "_KERNELS", kernels)
    for name in ("sum_last", "amax", "argmax", "sum_first"):
        check(ShimDevice(), name, KINDS[0], (9, 701), seed=1)


def test_num_13__few_columns_in_other_parts_have_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = ShimDevice(1)
    check(device, "sum_first", KINDS[0], (1111, 5), seed=1)
    assert [k.entry for k in device.launches] == ["sum_narrow_chunks", "fold_chunks"]
    whole = cuda._KERNELS["sum_narrow_chunks", KINDS[0]]
    small = (("IDN_NARROW_WARPS", "1"), ("IDN_STAGED", "8"))
    unguarded = (*small, ("__syncwarp()", ""))
    monkeypatch.setattr(cuda, "NARROW_THREADS", 32)
    for macros, right in ((small, True), (unguarded, False)):
        kernel = replace(whole, defines=(*whole.defines, *macros))
        monkeypatch.setitem(cuda._KERNELS, ("sum_narrow_chunks", KINDS[0]), kernel)
        if right:
            for inner in (2, 7, 16, 31):
                check(ShimDevice(2), "sum_first", KINDS[0], (1111, inner), seed=inner)
        else:
            with pytest.raises(AssertionError):
                check(device, "sum_first", KINDS[0], (1111, 5), seed=1)


def test_lanes_of_a_warp_exchange_at_one_place_in_the_code() -> None:
    # A choice that is the same for all threads may double the loop; it is taken out first.
    text = source.file_text("reduce/cuda.cu")
    assert "pieces == 1 ? number : " in text
    made = nvrtc.to_ptx(text.replace("pieces == 1 ? number : ", ""), 80, source.OPTIONS)
    entries = dict(re.findall(r"\.entry (\w+)\((.*?)\n\}\n", made, re.DOTALL))
    # Of a maximum's place the two halves of 64 bits pass one after the other.
    for entry, exchanges in {"sum_rows": 1, "largest_of_rows": 1, "first_of_largest": 3}.items():
        assert entries[entry].count("shfl.sync") == exchanges
