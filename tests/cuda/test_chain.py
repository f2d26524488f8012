"""Generated kernels of chains give the bits of the native chains."""

from __future__ import annotations

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cuda import chain, source
from identic.kernels.cuda.chain import Chain
from tests.cuda import nvrtc, ptx
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


SOFTMAX = (
    [("float32", False)],
    [("amax", [0]), ("sub", [0, 1]), ("exp", [2]), ("sum_last", [3]), ("div", [3, 4])],
    [5],
)
"""The exponentials are needed by the sum and after it."""

NORM = (
    [("float32", False), ("float32", True), ("float32", False)],
    [
        *(("sum_last", [0]), ("mul", [3, 1]), ("sub", [0, 4]), ("mul", [5, 5]), ("sum_last", [6])),
        *(("mul", [7, 1]), ("rsqrt", [8]), ("mul", [5, 9]), ("mul", [10, 2])),
    ],
    [4, 9, 11],
)
"""Mean and scale of each row are results too; the last operand is one for all rows."""


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


def test_num_1__generated_kernels_round_to_nearest_whatever_the_options() -> None:
    device = ShimDevice()
    x = np.ones((2, 40), np.float32)
    Chain(device, *SOFTMAX).run([np.empty_like(x)], [x], x.shape, [(40, 1)])
    text = source.text(device.launches[0])
    loose = [o for o in source.OPTIONS if "fmad" not in o]
    strict, other = (nvrtc.to_ptx(text, 75, options) for options in (source.OPTIONS, loose))
    assert ptx.forbidden(strict) == {}
    assert ptx.without_comments(strict) == ptx.without_comments(other)


def test_a_row_longer_than_a_block_of_the_order_is_refused() -> None:
    x = np.ones((1, 4097), np.float32)
    with pytest.raises(ValueError, match="4097"):
        Chain(ShimDevice(), *SOFTMAX).run([x.copy()], [x], x.shape, [(4097, 1)])
