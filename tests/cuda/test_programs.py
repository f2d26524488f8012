"""Prepared steps on a device come to the CPU's states, and know what they need."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from identic.kernels.arrays import NUMPY, Array, from_bytes, from_words, to_bytes
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda import source
from identic.kernels.cuda_backend import ASIDE, CudaBackend, need_bytes
from identic.kernels.executor import Executor
from identic.node.execution import sample
from identic.protocol.errors import LocalError
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll
from tests.cuda import nvrtc, ptx
from tests.cuda.operands import floats, same_bits
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.cuda.test_donation import program
from tests.helpers.calls import Maker
from tests.helpers.programs import SectionBuilder, mlp, mlp_data, mlp_state
from tests.helpers.random_programs import random_program


@pytest.mark.parametrize("order", ORDERS)
def test_exe_22__a_small_program_comes_to_the_cpus_root(order: int) -> None:
    assert sample.root(CudaBackend(ShimDevice(order))) == sample.root(CpuBackend())


def tensors(program: Program) -> tuple[list[Array], list[Array]]:
    state = zip(program.state, mlp_state(program), strict=True)
    data = zip(program.data, mlp_data(program), strict=True)
    return [from_bytes(v.type, b) for v, b in state], [from_bytes(v.type, b) for v, b in data]


def run(backend: CpuBackend | CudaBackend, program: Program, steps: int = 3) -> list[bytes]:
    executor = Executor(unroll(program), backend)
    state, data = tensors(program)
    for step in range(steps):
        state = executor.step(state, data, 5, step)
    return [to_bytes(a) for a in state]


@pytest.mark.parametrize("shards", [1, 3])
def test_prg_10__a_run_of_a_perceptron(shards: int) -> None:
    program = mlp(shards=shards, batch=4)
    assert run(CudaBackend(ShimDevice(2)), program) == run(CpuBackend(), program)


@pytest.mark.parametrize("seed", range(6))
def test_op_8__random_programs(seed: int) -> None:
    program = random_program(seed, 12)
    make = Maker(seed)
    state = [from_words(v.type, make.words(v.type)) for v in program.state]
    results = []
    for backend in (CpuBackend(), CudaBackend(ShimDevice(seed % 3))):
        executor = Executor(unroll(program), backend)
        results.append([to_bytes(a) for a in executor.step(state, [], 5, 0)])
    assert results[0] == results[1]


@pytest.mark.parametrize(("width", "launches"), [(4096, 1), (4097, 1), (530_000, 6)])
def test_num_12__a_softmax_is_one_launch_up_to_a_length(width: int, launches: int) -> None:
    def softmax(b: SectionBuilder) -> list[int]:
        shifted = b.op("sub", 0, b.op("reshape", b.op("amax", 0), shape=(2, 1)))
        powers = b.op("exp", shifted)
        return [b.op("div", powers, b.op("reshape", b.op("sum_last", powers), shape=(2, 1)))]

    made = program([(2, width)], softmax)
    state = [floats(np.random.default_rng(width), v.type.shape) for v in made.state]
    device = ShimDevice(multiprocessors=4)
    want, got = (
        Executor(unroll(made), backend).step(state, [], 5, 0)[0]
        for backend in (CpuBackend(), CudaBackend(device))
    )
    assert same_bits(got, want)
    assert len([k for k in device.launches if "full" not in k.entry]) == launches


def test_what_is_as_large_as_its_reader_joins_it_and_smaller_values_are_made_before() -> None:
    def masked(b: SectionBuilder) -> list[int]:
        small = b.op("reshape", b.op("add", b.op("mul", 0, 0), 0), shape=(6, 1))
        return [0, b.op("where", b.op("lt", 1, b.op("neg", 1)), small, 1)]

    made = program([(6,), (6, 5)], masked)
    state = [floats(np.random.default_rng(1), v.type.shape) for v in made.state]
    device = ShimDevice()
    want, got = (
        Executor(unroll(made), backend).step(state, [], 5, 0)[1]
        for backend in (CpuBackend(), CudaBackend(device))
    )
    assert same_bits(got, want)
    assert [k.entry for k in device.launches if "full" not in k.entry] == ["chain", "chain"]


def test_an_observer_sees_what_the_cpu_computes() -> None:
    program = mlp(shards=1, batch=4)
    state, data = tensors(program)
    seen: list[list[bytes]] = []
    for backend in (CpuBackend(), CudaBackend(ShimDevice())):
        values: list[bytes] = []

        def observer(value: int, array: Array, values: list[bytes] = values) -> Array:
            assert value == len(values)
            values.append(to_bytes(array))
            return array

        Executor(unroll(program), backend).step(state, data, 5, 0, observer)
        seen.append(values)
    assert seen[0] == seen[1]


def test_num_1__generated_kernels_of_a_program_round_to_nearest() -> None:
    device = ShimDevice()
    sample.root(CudaBackend(device))
    made = {source.text(k) for k in device.launches if k.body}
    assert len(made) > 3
    loose = [o for o in source.OPTIONS if "fmad" not in o]
    for text in made:
        strict, other = (nvrtc.to_ptx(text, 80, options) for options in (source.OPTIONS, loose))
        assert ptx.forbidden(strict) == {}
        assert ptx.without_comments(strict) == ptx.without_comments(other)


# ---- memory ---------------------------------------------------------------------------------


def test_exe_24__a_step_without_room_is_refused_before_anything_runs() -> None:
    device = ShimDevice(capacity=ASIDE + 1000)
    backend, plan = CudaBackend(device), unroll(mlp(shards=1, batch=4))
    with pytest.raises(LocalError, match=r"128\.\d MiB on shim, which has 128\.0 MiB free"):
        backend.compile(plan)
    assert not device.launches


def test_exe_24__with_the_room_it_names_a_step_runs_and_gives_the_old_state_back() -> None:
    program = mlp(shards=1, batch=4)
    plan = unroll(program)
    shim = ShimDevice()
    need = need_bytes(plan, shim.multiprocessors, shim.compute_capability) - ASIDE
    device = ShimDevice(capacity=need + ASIDE)
    backend = CudaBackend(device)
    executor = Executor(plan, backend)
    state, data = tensors(program)
    least = []
    for step in range(4):
        state = executor.step(state, data, 5, step)
        gc.collect()
        least.append(device.free())
        assert all(device.holds(a) for a in state)
    assert len(set(least[1:])) == 1
    assert device.capacity - device.free() <= need


def test_nothing_is_waited_for_or_copied_back_during_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = ShimDevice()
    executor = Executor(unroll(sample.program()), CudaBackend(device))
    program = sample.program()
    state = [np.zeros(v.type.shape, NUMPY[v.type.dtype]) for v in program.state]
    data = [np.zeros(v.type.shape, NUMPY[v.type.dtype]) for v in program.data]
    state = executor.step(state, data, 5, 0)
    monkeypatch.setattr(device, "download", None)
    monkeypatch.setattr(device, "synchronize", None)
    executor.step(state, data, 5, 1)
