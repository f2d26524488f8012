"""Writes at indexed places on a device leave what the CPU twin leaves, in any order of threads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from identic.kernels.index import cuda as index_cuda
from identic.kernels.scatter import cuda
from tests.cuda.operands import same_as_cpu
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.cuda.test_index import CASES, KINDS, indices, words

same = partial(same_as_cpu, cuda)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_op_32__set_rows(order: int, *, wide: bool) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(1)
    for kind in KINDS:
        for rows, inner, count in [(9, 3, 40), (4, 70, 3), (1, 1, 300), (3, 2, 0), (0, 2, 3)]:
            init, src = words(kind, rng, (rows, inner)), words(kind, rng, (count, inner))
            index = indices(rng, (count,), rows, wide=wide)
            same(device, "set_rows", np.empty_like(init), init, index, src, rows, inner)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_op_32__scatter(order: int, *, wide: bool) -> None:
    device, rng = ShimDevice(order), np.random.default_rng(2)
    for kind in KINDS:
        for shape, places, axis in CASES:
            x, src = words(kind, rng, shape), words(kind, rng, places)
            index = indices(rng, places, shape[axis], wide=wide)
            same(device, "scatter", np.empty_like(x), x, index, src, axis)


@pytest.mark.parametrize("short", [0, 1000])
def test_op_32__launch_shapes_change_no_word(short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    monkeypatch.setattr(cuda, "SHORT_LINE", short)
    x, src = words(KINDS[2], rng, (30, 4)), words(KINDS[2], rng, (200, 3))
    index = indices(rng, (200, 3), 30, wide=True)
    for block, processors in [(32, 1), (64, 40), (512, 3)]:
        monkeypatch.setattr(cuda, "BLOCK", block)
        monkeypatch.setattr(index_cuda, "BLOCK", block)
        device = ShimDevice(multiprocessors=processors)
        same(device, "scatter", np.empty_like(x), x, index, src, 0)


def test_op_32__claims_made_in_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    device, rng = ShimDevice(), np.random.default_rng(4)
    monkeypatch.setattr(cuda, "CLAIMS", 70)
    few = (("CLAIMS", "70ll"),)
    for name in ("_CLAIM", "_WRITE_ROWS", "_WRITE_CLAIMED"):
        monkeypatch.setattr(cuda, name, replace(getattr(cuda, name), defines=few))
    x, src = words(KINDS[2], rng, (30, 4)), words(KINDS[2], rng, (200, 3))
    index = indices(rng, (200, 3), 30, wide=True)
    same(device, "scatter", np.empty_like(x), x, index, src, 0)
    rows = words(KINDS[2], rng, (600, 4))
    same(device, "set_rows", np.empty_like(x), x, index.reshape(-1), rows, 30, 4)
