"""Generated kernels of chains give the bits of the native chains."""

from __future__ import annotations

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cuda import chain, source
from identic.kernels.cuda.chain import Chain
from identic.kernels.cuda.chain_text import Code
from tests.cuda import nvrtc, ptx
from tests.cuda.operands import floats, same_bits
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.kernels.native.test_chain import KINDS, Program, made

SHAPES = [(7,), (2, 33, 3), (3, 5, 70), (1, 200), (4, 1), (5, 2, 64), (2, 130), (0, 4)]


def outputs_of(program: Program) -> list[int]:
    """Some values of a chain, the last among them."""
    made_ = range(len(program.inputs), len(program.kinds))
    return sorted({*made_[-1:], *made_[:: max(1, len(made_) // 4)]})


def results(program: Program, wanted: list[int]) -> list[Array]:
    shapes = [program.shape[:-1] if program.rows[n] else program.shape for n in wanted]
    kinds = [KINDS[program.kinds[n]] for n in wanted]
    return [np.empty(s, k) for s, k in zip(shapes, kinds, strict=True)]


@pytest.mark.parametrize("seed", range(16))
def test_op_8__a_generated_kernel_has_the_bits_of_the_native_chain(seed: int) -> None:
    program = made(seed, SHAPES[seed % len(SHAPES)], 4 + seed)
    wanted = outputs_of(program)
    want = results(program, wanted)
    parts = (program.inputs, program.code, wanted)
    _native.Chain(*parts).run(want, program.arrays, program.shape, program.strides)
    for order in ORDERS:
        device = ShimDevice(order)
        got = [device.upload(np.zeros_like(x)) for x in want]
        made_ = Chain(device, *parts)
        for _ in range(2):
            made_.run(got, program.arrays, program.shape, program.strides)
        assert [x.tobytes() for x in got] == [x.tobytes() for x in want]


Parts = tuple[list[tuple[str, bool]], list[tuple[str, list[int]]], list[int]]

SOFTMAX: Parts = (
    [("float32", False)],
    [("amax", [0]), ("sub", [0, 1]), ("exp", [2]), ("sum_last", [3]), ("div", [3, 4])],
    [5],
)
"""The exponentials are needed by the sum and after it."""

NORM: Parts = (
    [("float32", False), ("float32", True), ("float32", False)],
    [
        *(("sum_last", [0]), ("mul", [3, 1]), ("sub", [0, 4]), ("mul", [5, 5]), ("sum_last", [6])),
        *(("mul", [7, 1]), ("rsqrt", [8]), ("mul", [5, 9]), ("mul", [10, 2])),
    ],
    [4, 9, 11],
)
"""Mean and scale of each row are results too; the last operand is one for all rows."""


def run(device: ShimDevice, parts: Parts, x: Array) -> None:
    """Run a chain of one input, whatever comes of it."""
    inputs, code, wanted = parts
    made_ = Code(inputs, code, wanted).values
    results = [np.empty(x.shape[:-1] if made_[n].of_rows else x.shape, "f4") for n in wanted]
    Chain(device, *parts).run(results, [x], x.shape, [(x.shape[1], 1)])


@pytest.mark.parametrize("width", [1, 31, 64, 97, 1000, 4096])
@pytest.mark.parametrize("order", ORDERS)
def test_num_12__rows_of_any_length_are_added_in_the_order_of_the_rule(
    order: int, width: int
) -> None:
    rng = np.random.default_rng(width)
    x, scale, each = (rng.standard_normal(s).astype("f4") for s in ((3, width), (3, 1), (width,)))
    x[1, width // 2] = np.nan
    arrays, strides = [x, scale, each], [(width, 1), (1, 0), (0, 1)]
    for parts, count in ((SOFTMAX, 1), (NORM, 3)):
        inputs = (arrays[:count], (3, width), strides[:count])
        shapes = [(3,)] * (len(parts[2]) - 1) + [(3, width)]
        want, got = ([np.zeros(s, "f4") for s in shapes] for _ in range(2))
        _native.Chain(*parts).run(want, *inputs)
        Chain(ShimDevice(order), *parts).run(got, *inputs)
        assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


def one_by_one(parts: Parts, arrays: list[Array], shape: tuple[int, int]) -> list[Array]:
    """Results of a chain by the native module's operators, one after the other."""
    inputs, code, wanted = parts
    program = Program(np.random.default_rng(0), shape)
    for (kind, of_rows), x in zip(inputs, arrays, strict=True):
        program.slot(kind, np.broadcast_to(x, shape), of_rows=of_rows)
    for name, operands in code:
        program.apply(name, list(operands), "float32")
    whole = [program.values[n] for n in wanted]
    rows = [program.rows[n] for n in wanted]
    return [x[..., 0] if r else x for x, r in zip(whole, rows, strict=True)]


LONG = [(4097, 0), (8192, 1), (12289, 2), (50257, 0)]
"""Lengths of rows of several blocks of the order, and an order of threads for each."""


@pytest.mark.parametrize(("width", "order"), LONG)
def test_num_12__rows_of_several_blocks_are_added_in_the_order_of_the_rule(
    width: int, order: int
) -> None:
    rng = np.random.default_rng(width)
    x = floats(rng, (3, width))
    x[0, :: width - 1] = np.nan, -0.0
    x[1] = np.where(rng.random(width) < 0.5, np.float32(-0.0), x[1])
    x[2, width // 2] = np.inf
    scale, each = floats(rng, (3, 1)), floats(rng, (width,))
    arrays, strides = [x, scale, each], [(width, 1), (1, 0), (0, 1)]
    for parts, count in ((SOFTMAX, 1), (NORM, 3)):
        want = one_by_one(parts, arrays[:count], (3, width))
        device = ShimDevice(order)
        got = [device.upload(np.zeros_like(w)) for w in want]
        Chain(device, *parts).run(got, arrays[:count], (3, width), strides[:count])
        assert all(same_bits(g, w) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("warps", [1, 3])
def test_num_12__how_many_warps_share_a_row_changes_no_bit(
    warps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "LONG_WARPS", warps)
    parts: Parts = ([("float32", False)], [("sum_last", [0]), ("mul", [0, 1])], [1, 2])
    shape = (5, 16385)
    x = floats(np.random.default_rng(warps), shape)
    want = one_by_one(parts, [x], shape)
    for order in ORDERS:
        device = ShimDevice(order, multiprocessors=1)
        got = [device.upload(np.zeros_like(w)) for w in want]
        Chain(device, *parts).run(got, [x], shape, [(16385, 1)])
        assert all(same_bits(g, w) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize(("block", "shared", "multiprocessors"), [(32, 0, 1), (1024, 1 << 20, 7)])
def test_launch_shapes_change_no_bit(
    block: int, shared: int, multiprocessors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(block)
    x = rng.standard_normal((37, 130)).astype("f4")
    flat = ([("float32", False)], [("exp", [0]), ("mul", [0, 1])], [1, 2])
    for parts in (SOFTMAX, flat):
        results = []
        for shaped in (False, True):
            if shaped:
                monkeypatch.setattr(chain, "BLOCK", block)
                monkeypatch.setattr(chain, "SHARED", shared)
            device = ShimDevice(multiprocessors=multiprocessors)
            got = [np.zeros_like(x) for _ in parts[2]]
            Chain(device, *parts).run(got, [x], x.shape, [(130, 1)])
            results.append([a.tobytes() for a in got])
        assert results[0] == results[1]


def test_what_is_costly_and_needed_twice_is_kept_in_shared_memory() -> None:
    device = ShimDevice()
    x = np.ones((2, 40), np.float32)
    Chain(device, *SOFTMAX).run([np.empty_like(x)], [x], x.shape, [(40, 1)])
    (kernel,) = device.launches
    assert kernel.body.count("of_exp(") == 1
    assert "kept[0 * width + j] = " in kernel.body


@pytest.mark.parametrize("width", [40, 4097])
def test_num_1__generated_kernels_round_to_nearest_whatever_the_options(width: int) -> None:
    device = ShimDevice()
    run(device, SOFTMAX, np.ones((2, width), np.float32))
    text = source.text(device.launches[0])
    loose = [o for o in source.OPTIONS if "fmad" not in o]
    strict, other = (nvrtc.to_ptx(text, 75, options) for options in (source.OPTIONS, loose))
    assert ptx.forbidden(strict) == {}
    assert ptx.without_comments(strict) == ptx.without_comments(other)
    # Where lanes exchange stands once in the code: of a sum, a maximum, and of those of pieces.
    assert strict.count("shfl.sync") == 11 * (2 if width > 4096 else 1)


def test_num_12__warps_of_a_block_wait_for_the_sums_of_all_pieces() -> None:
    parts: Parts = ([("float32", False)], [("sum_last", [0]), ("mul", [0, 1])], [1, 2])
    shape = (3, 4099)
    x = floats(np.random.default_rng(3), shape)
    want = one_by_one(parts, [x], shape)
    device = ShimDevice()
    run(device, parts, x)
    text = source.text(device.launches[0])
    body = text[text.index("void __launch_bounds__") :]
    # The second keeps the next row's sums from coming too early; here all threads read at once.
    assert body.count("__syncthreads();") == 2
    for changed in (text, text.replace(body, body.replace("__syncthreads();", "", 1))):
        right = set()
        for order in ORDERS:
            got = [np.zeros_like(w) for w in want]
            arguments = (*got, x, 3, shape[1])
            ShimDevice(order).run(changed, "chain", (1,), (64,), *arguments, shared=8)
            right.add(all(same_bits(g, w) for g, w in zip(got, want, strict=True)))
        assert (right == {True}) == (changed == text)


def test_a_row_of_too_many_blocks_of_the_order_is_refused() -> None:
    width = chain.MOST_PIECES * 4096 + 1
    x = np.ones((1, width), np.float32)
    with pytest.raises(ValueError, match=str(width)):
        run(ShimDevice(), SOFTMAX, x)


def test_long_rows_are_summed_in_chains_where_they_are_many() -> None:
    device = ShimDevice(multiprocessors=100)
    assert chain.sums_rows(device, 1, 4096)
    assert chain.sums_rows(device, 50, 50257)
    assert not chain.sums_rows(device, 49, 50257)
    assert not chain.sums_rows(device, 50, 1 << 20)
