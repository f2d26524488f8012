"""Elementwise operators and movement on a device, over any strides and launch shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cuda import device as devices
from identic.kernels.cuda import source
from identic.kernels.cuda.places import Places, multiplier
from identic.kernels.elementwise import cuda as elementwise
from identic.kernels.layout import cuda as layout
from identic.kernels.operators import element_strides, over
from tests.cuda.shim.device import ORDERS, ShimDevice

TYPES = ["<f4", "<i8", "<i4", "u1", "?", "<u2"]
RNG = np.random.default_rng(3)


def some(dtype: str, shape: tuple[int, ...]) -> Array:
    """Any bits of a type, few of them often so that pairs are equal."""
    if dtype == "?":
        return RNG.random(shape) < 0.5
    size = np.dtype(dtype).itemsize
    count = int(np.prod(shape))
    any_bits = RNG.integers(0, 256, (count, size), np.uint8).view(dtype).reshape(shape)
    special = np.array([0, 1, -1, 2**30, -(2**30)]).astype(dtype)
    if dtype == "<f4":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, 2**31, 2**63, 300], "<f4")
    return np.where(RNG.random(shape) < 0.4, RNG.choice(special, shape), any_bits)


@pytest.fixture(params=[(32, 1), (96, 3), (1024, 2)], ids=str)
def shaped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ShimDevice:
    """A device with a number of multiprocessors, and blocks of some size."""
    block, multiprocessors = request.param
    for module in (elementwise, layout):
        monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(layout, "TURN_ROWS", block // 32)
    monkeypatch.setattr(devices, "WAVES", 1)
    return ShimDevice(multiprocessors % 3, multiprocessors=multiprocessors)


def operands(dtype: str) -> tuple[tuple[int, ...], Array, Array]:
    """A shape and two operands that broadcast to it, one of them with its axes turned."""
    shape = (3, 5, 33)
    return shape, some(dtype, (33, 5, 3)).T, some(dtype, (5, 1))


@pytest.mark.parametrize("dtype", [*TYPES[:3], "?"])
def test_op_2__binary_over_any_strides_and_launches(dtype: str, shaped: ShimDevice) -> None:
    shape, a, b = operands(dtype)
    names = ["add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"]
    if dtype == "?":
        names = ["eq", "ne", "and", "or"]
    for name in [*names, *(["div"] if dtype == "<f4" else [])]:
        kind = dtype if name in {"add", "sub", "mul", "maximum", "minimum", "div"} else "?"
        want, got = (np.zeros(shape, kind) for _ in range(2))
        _native.binary(name, want, a, b, shape, over(shape, a), over(shape, b))
        elementwise.binary(shaped, name, got, a, b, shape, over(shape, a), over(shape, b))
        assert got.tobytes() == want.tobytes(), name


@pytest.mark.parametrize("dtype", TYPES)
def test_num_2__where_moves_bits(dtype: str, shaped: ShimDevice) -> None:
    shape, a, b = operands(dtype)
    condition = some("?", (3, 1, 33))
    want, got = (np.zeros(shape, dtype) for _ in range(2))
    steps = [over(shape, x) for x in (condition, a, b)]
    _native.where(want, condition, a, b, shape, *steps)
    elementwise.where(shaped, got, condition, a, b, shape, *steps)
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("to", TYPES)
def test_num_5__casts_of_any_bits(to: str, shaped: ShimDevice) -> None:
    for dtype in TYPES:
        x = some(dtype, (3000,))
        want, got = (np.zeros(x.shape, to) for _ in range(2))
        _native.cast(want, x)
        elementwise.cast(shaped, got, x)
        assert got.tobytes() == want.tobytes(), dtype


@pytest.mark.parametrize(
    "call",
    [
        lambda d, x: elementwise.unary(d, "exp", x, x.astype("<i4")),
        lambda d, x: elementwise.unary(d, "not", x, x),
        lambda d, x: elementwise.binary(d, "and", x, x, x),
        lambda d, x: elementwise.binary(d, "add", x, x, x.astype("<i4")),
        lambda d, x: elementwise.binary(d, "add", x, x, x, (5,)),
        lambda d, x: elementwise.where(d, x, x, x, x),
        lambda d, x: elementwise.cast(d, x[:2], x),
        lambda d, x: layout.iota(d, x, 0, 1),
        lambda d, x: layout.copy_strided(d, x, 0, (1,), x.astype("<i8"), 0, (1,), (4,)),
    ],
)
def test_what_an_operator_is_not_defined_on_is_refused(call: Any) -> None:
    device = ShimDevice()
    with pytest.raises(ValueError, match=r".+"):
        call(device, np.zeros(4, "<f4"))
    assert not device.launches


# ---- movement -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "<u2", "<f4", "<i8"])
def test_num_2__copies_between_any_strides(dtype: str, shaped: ShimDevice) -> None:
    base = some(dtype, (4, 9, 40, 3))
    views = [base, base.T, base.transpose(1, 2, 0, 3), base[1:, ::2, 5:37:3], base[:, :, :1, :1]]
    for x in [*views, np.broadcast_to(base[:1], (2, 9, 40, 3)), base[:0]]:
        room = np.zeros((x.shape[0], *(n + 1 for n in x.shape[1:])), dtype)
        for out in (np.zeros(x.shape, dtype), room[tuple(slice(0, n) for n in x.shape)]):
            steps = element_strides(x)
            layout.copy_strided(shaped, out, 0, element_strides(out), x, 0, steps, x.shape)
            assert np.array(out).tobytes() == np.array(x).tobytes()


def test_a_copy_begins_where_it_is_told(shaped: ShimDevice) -> None:
    x, out = np.arange(20, dtype="<i4"), np.zeros(20, "<i4")
    layout.copy_strided(shaped, out, 7, (3,), x, 5, (2,), (4,))
    assert out.tolist() == [0] * 7 + [5, 0, 0, 7, 0, 0, 9, 0, 0, 11] + [0] * 3


def test_num_9__iota_wraps_and_full_keeps_any_pattern(shaped: ShimDevice) -> None:
    for dtype, start, step in (("<i8", 2**63 - 3, 2**62), ("<i4", -5, 2**31 - 1)):
        want, got = (np.zeros(1000, dtype) for _ in range(2))
        _native.iota(want, start, step)
        layout.iota(shaped, got, start, step)
        assert (got == want).all()
    for dtype in ("u1", "<u2", "<f4", "<i8"):
        pattern = (1 << 8 * np.dtype(dtype).itemsize) - 2
        out = np.zeros(50, dtype)
        layout.full(shaped, out, pattern)
        assert out.tobytes() == pattern.to_bytes(out.itemsize, "little") * 50


def test_turned_copies_go_through_tiles_and_a_missing_barrier_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = some("<f4", (70, 40))

    def turned(order: int) -> bytes:
        device, out = ShimDevice(order), np.zeros((40, 70), "<f4")
        layout.copy_strided(device, out, 0, (70, 1), x, 0, (1, 40), (40, 70))
        assert [k.entry for k in device.launches] == ["turn_4"]
        return out.tobytes()

    assert {turned(order) for order in ORDERS} == {x.T.tobytes()}
    whole = source.text(layout._TURN[4])
    monkeypatch.setattr(source, "text", lambda _: whole.replace("__syncthreads();", ";"))
    assert {turned(order) for order in ORDERS} != {x.T.tobytes()}


# ---- places ---------------------------------------------------------------------------------


def test_a_quotient_by_a_product_is_exact() -> None:
    lengths = [2, 3, 5, 7, 31, 32, 33, 641, 65535, 65537, 10**6 + 3, 2**30, 2**31 - 1]
    for d in [*lengths, *RNG.integers(2, 2**31, 200).tolist()]:
        power = (d - 1).bit_length()
        numbers = {0, 1, d - 1, d, d + 1, 2 * d - 1, 2**31 - 1, 2**31 - d}
        near = {x // d * d + e for x in RNG.integers(0, 2**31, 50).tolist() for e in (-1, 0)}
        for x in numbers | near:
            if 0 <= x < 2**31:
                high = x * multiplier(d) >> 32
                assert high + x < 2**32
                assert (high + x) >> power == x // d


def test_a_kernel_divides_numbers_past_2_to_the_31(shaped: ShimDevice) -> None:
    body = """
    extern "C" __global__ void divide(long long* out, const long long* x, long long n,
                                      long long length, long long multiplier) {
      for (long long i = idn_thread(); i < n; i += idn_threads()) {
        out[i] = idn_quotient(x[i], length, multiplier);
      }
    }"""
    kernel = devices.Kernel("common/cuda_places.h", "divide", body=body)
    near = [2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**40 + 7, 2**62]
    x = np.array([0, 1, *near, *RNG.integers(0, 2**40, 300)], np.int64)
    for length in (1, 2, 3, 1000, 2**31 - 1, 2**31, 2**33 + 5):
        out = np.zeros_like(x)
        shaped.launch(kernel, (2,), (64,), out, x, x.size, length, multiplier(length))
        assert (out == x // length).all()


def test_places_merge_axes_that_step_evenly() -> None:
    places = Places.of((2, 1, 3, 4), (12, 99, 4, 1), (0, 5, 4, 1))
    assert (places.lengths, places.steps) == ((2, 12), ((12, 1), (0, 1)))
    assert Places.of((), ()).lengths == (1,)
    assert multiplier(1) == multiplier(2**31) == -1
