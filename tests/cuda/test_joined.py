"""Chains that run as one launch over many buffers have the bits of the chains one by one."""

from __future__ import annotations

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda import chain_text, source
from identic.kernels.cuda.device import Kernel
from identic.kernels.cuda.joined_chain import JoinedChain
from identic.kernels.cuda_backend import CudaBackend
from identic.kernels.executor import Executor
from identic.node.execution.states import unpack_tensors
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll
from tests.cuda import nvrtc, ptx
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.helpers.programs import mlp, mlp_data, mlp_state

ADAMW = (
    [("float32", False)] * 4 + [("float32", True)] * 2,
    [
        *(("mul", [2, 4]), ("add", [6, 1])),
        *(("mul", [1, 1]), ("sub", [8, 3]), ("mul", [9, 5]), ("add", [3, 10])),
        *(("sqrt", [11]), ("div", [7, 12]), ("mul", [13, 4]), ("sub", [0, 14])),
    ],
    [7, 11, 15],
)
"""Like AdamW: a parameter, its gradient, two moments, and numbers for all elements."""
SCALARS = (False,) * 4 + (True,) * 2
SIZES = (1, 5, 300, 0, 2048, 2049, 5000)


def operands(rng: np.random.Generator, n: int) -> list[Array]:
    """A set of inputs with special values."""
    arrays = [rng.standard_normal(n).astype(np.float32) for _ in range(4)]
    special = np.array([0x80000000, 0x7F800001, 0x7F800000, 1], np.uint32).view(np.float32)
    for x in arrays:
        x[: n // 9] = rng.choice(special, n // 9)
    return [*arrays, np.array([0.9], np.float32), np.array([0.01], np.float32)]


@pytest.mark.parametrize("order", ORDERS)
def test_op_8__many_sets_have_the_bits_of_each(order: int) -> None:
    rng, device = np.random.default_rng(order), ShimDevice(order)
    sets = [operands(rng, n) for n in SIZES]
    strides = [(1,)] * 4 + [(0,)] * 2
    native = _native.Chain(*ADAMW)
    want = [[np.empty(n, np.float32) for _ in ADAMW[2]] for n in SIZES]
    for n, out, given in zip(SIZES, want, sets, strict=True):
        native.run(out, given, (n,), strides)
    got = [[device.empty((n,), np.dtype("<f4")) for _ in ADAMW[2]] for n in SIZES]
    held = [[device.upload(x) for x in given] for given in sets]
    JoinedChain(device, *ADAMW, SCALARS).run(got, held, SIZES)
    assert len(device.launches) == 1
    for a, b in zip(got, want, strict=True):
        assert [x.tobytes() for x in a] == [x.tobytes() for x in b]


def test_nothing_is_launched_for_no_elements() -> None:
    device = ShimDevice()
    JoinedChain(device, *ADAMW, SCALARS).run([], [], [])
    assert not device.launches


@pytest.mark.parametrize("code", [[("sum_last", [0])], [("neg", [1])]])
def test_chains_with_rows_are_not_joined(code: list[tuple[str, list[int]]]) -> None:
    inputs = [("float32", False), ("float32", True)]
    with pytest.raises(ValueError, match="rows"):
        JoinedChain(ShimDevice(), inputs, code, [2], (False, True))


def test_num_1__a_joined_kernel_rounds_to_nearest_whatever_the_options() -> None:
    body = chain_text.joined(chain_text.Code(*ADAMW), SCALARS)
    text = source.text(Kernel("elementwise/cuda_chain.h", "chain", body=body))
    loose = [o for o in source.OPTIONS if "fmad" not in o]
    strict, other = (nvrtc.to_ptx(text, 75, options) for options in (source.OPTIONS, loose))
    assert ptx.forbidden(strict) == {}
    assert ptx.without_comments(strict) == ptx.without_comments(other)


def steps(program: Program, backend: CpuBackend | CudaBackend) -> list[bytes]:
    """The state after two steps."""
    executor = Executor(unroll(program), backend)
    state = unpack_tensors(program.state, b"".join(mlp_state(program)))
    data = unpack_tensors(program.data, b"".join(mlp_data(program)))
    held = executor.hold(data)
    for step in range(2):
        state = executor.step(state, held, 3, step)
    return [x.tobytes() for x in state]


def test_an_optimizer_updates_all_tensors_by_one_launch() -> None:
    device, program = ShimDevice(), mlp()
    assert steps(program, CudaBackend(device)) == steps(program, CpuBackend())
    joined = [k for k in device.launches if "long long sets" in k.body]
    assert len(joined) == 2
