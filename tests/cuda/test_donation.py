"""A state that is given to a step: new tensors lie where old ones lay, with the CPU's bits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from identic.kernels.arrays import Array, from_bytes, from_words, to_bytes
from identic.kernels.compiled import Prepared
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda import chain_text, source
from identic.kernels.cuda.engine import CudaEngine
from identic.kernels.cuda.measuring import GRAIN, MeasuringDevice
from identic.kernels.cuda_backend import ASIDE, CudaBackend, need_bytes
from identic.kernels.executor import Executor
from identic.kernels.step import _shared
from identic.protocol.errors import LocalError
from identic.protocol.ids import Count
from identic.protocol.program.types import CONTEXT_TYPE, Program, Section, Variable
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from tests.cuda import nvrtc, ptx
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.helpers.calls import Maker
from tests.helpers.programs import SectionBuilder, f32, mlp, mlp_data, mlp_state
from tests.helpers.random_programs import random_program

STEPS = 3

Build = Callable[[SectionBuilder], Sequence[int]]


def program(shapes: Sequence[tuple[int, ...]], build: Build) -> Program:
    """A step from buffers to buffers: values 0, 1, ... are the old ones, those built the new."""
    kinds = [f32(*shape) for shape in shapes]
    b = SectionBuilder([*kinds, CONTEXT_TYPE])
    loss = b.scalar(0.0)
    made = Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=(),
        trainable=(),
        buffers=tuple(Variable(f"b{i}", kind) for i, kind in enumerate(kinds)),
        optimizer=(),
        data=(),
        gradient=b.build(loss, *build(b)),
        update=Section((CONTEXT_TYPE,), (), ()),
    )
    validate(made, Limits())
    return made


def tensors(made: Program) -> tuple[list[Array], list[Array]]:
    """An initial state, and data."""
    if made.data:
        state = zip(made.state, mlp_state(made), strict=True)
        data = zip(made.data, mlp_data(made), strict=True)
        return [from_bytes(v.type, b) for v, b in state], [from_bytes(v.type, b) for v, b in data]
    make = Maker(7)
    return [from_words(v.type, make.words(v.type)) for v in made.state], []


def over(made: Program) -> set[int]:
    """Places in the state whose new tensor may lie where the old one lay."""
    prepared = Prepared(unroll(made), CudaEngine(MeasuringDevice()))
    assert set(prepared.over.values()) <= set(range(len(made.state) - 1))
    return set(prepared.over.values())


def compared(made: Program, device: ShimDevice) -> list[set[int]]:
    """Run on the CPU and on a device that is given each state; all bits are the same.

    Returns:
        At each step after the first, the places whose tensor lies where it lay before.
    """
    cpu, card = (Executor(unroll(made), b) for b in (CpuBackend(), CudaBackend(device)))
    want, data = tensors(made)
    state: list[Array] = list(want)
    held, stayed = card.hold(data), []
    for step in range(STEPS):
        old = {i: a.ctypes.data for i, a in enumerate(state) if device.holds(a)}
        before = [to_bytes(a) for a in want]
        new, given = cpu.step(want, data, 5, step), state
        state = card.consume(given, held, 5, step)
        # The host's arrays are not written, and nobody has the device's any more.
        assert [to_bytes(a) for a in want] == before
        assert given == []
        assert [to_bytes(a) for a in state] == [to_bytes(a) for a in new]
        want = new
        stayed.append({i for i in old if state[i].ctypes.data == old[i]})
    return stayed[1:]


def adamw(b: SectionBuilder) -> Sequence[int]:
    """Two parameters with their moments, and a counter on which the bias correction depends."""
    count = b.op("add", 6, b.scalar(1.0))
    gradients = [b.op("matmul", 0, 1), b.op("matmul", b.op("permute", 1, axes=(1, 0)), 0)]
    out: list[list[int]] = [[], [], []]
    for which, gradient in enumerate(gradients):
        parameter, first, second = which, 2 + which, 4 + which
        m = b.op("add", b.op("mul", first, b.scalar(0.9)), b.op("mul", gradient, b.scalar(0.1)))
        square = b.op("mul", b.op("mul", gradient, gradient), b.scalar(0.05))
        v = b.op("add", b.op("mul", second, b.scalar(0.95)), square)
        update = b.op("div", b.op("div", m, count), b.op("add", b.op("sqrt", v), b.scalar(1e-8)))
        out[0].append(b.op("sub", parameter, b.op("mul", update, b.scalar(0.01))))
        out[1].append(m)
        out[2].append(v)
    return [*out[0], *out[1], *out[2], count]


ADAMW = program([(8, 8)] * 6 + [()], adamw)


@pytest.mark.parametrize("order", ORDERS)
def test_op_8__adamw_writes_its_state_over_the_old_one(order: int) -> None:
    stayed = compared(ADAMW, ShimDevice(order))
    assert all(set(range(6)) <= places for places in stayed)


@pytest.mark.parametrize("shards", [1, 2])
def test_op_8__sgd_with_momentum_writes_its_state_over_the_old_one(shards: int) -> None:
    stayed = compared(mlp(shards=shards), ShimDevice(1))
    assert all(set(range(8)) <= places for places in stayed)


@pytest.mark.parametrize("seed", range(8))
def test_op_8__random_programs_whose_states_are_given(seed: int) -> None:
    compared(random_program(seed, 12), ShimDevice(seed % 3))


def square(b: SectionBuilder, x: int) -> int:
    return b.op("mul", b.op("tanh", x), x)


def read_again(b: SectionBuilder) -> Sequence[int]:
    """The old tensor is an operand of a matrix product that needs the new one."""
    new = square(b, 0)
    return [new, b.op("matmul", 0, new)]


def read_beside(b: SectionBuilder) -> Sequence[int]:
    """Two chains of one code, which are one launch; one also reads what the other makes anew."""
    low = b.op("add", b.op("mul", 0, 1), 0)
    return [low, b.op("add", b.op("mul", 1, 0), 1)]


def shared(b: SectionBuilder) -> Sequence[int]:
    """Both new tensors are one array: from the second step on both old ones are."""
    new = b.op("add", b.op("mul", 0, 1), 0)
    return [new, new]


def frozen(b: SectionBuilder) -> Sequence[int]:
    """One is returned as it is, and read where the other is made."""
    return [0, b.op("add", b.op("mul", 0, 1), 1)]


def moved(b: SectionBuilder) -> Sequence[int]:
    """One takes the other's place as it is, and is the only operand of what takes its own."""
    return [square(b, 0), 0]


def swapped(b: SectionBuilder) -> Sequence[int]:
    """Each takes the other's place."""
    del b
    return [1, 0]


def swapped_and_updated(b: SectionBuilder) -> Sequence[int]:
    """Each is made of the other alone."""
    return [square(b, 1), square(b, 0)]


def turned(b: SectionBuilder) -> Sequence[int]:
    """The chain reads the old tensor twice, once across."""
    return [b.op("add", b.op("mul", 0, b.op("permute", 0, axes=(1, 0))), 0), square(b, 1)]


def of_rows(b: SectionBuilder) -> Sequence[int]:
    """The chain sums the rows of the old tensor, and reads its elements again after that."""
    total = b.op("reshape", b.op("sum_last", b.op("mul", 0, 0)), shape=(6, 1))
    return [b.op("div", b.op("mul", 0, 1), total), square(b, 1)]


def first_rows(b: SectionBuilder) -> Sequence[int]:
    """The chain reads the old tensor as it lies, and its first row for every other."""
    row = b.op("slice", 0, start=(0, 0), stop=(1, 6), step=(1, 1))
    return [b.op("add", b.op("mul", 0, row), 0), square(b, 1)]


def part_read_later(b: SectionBuilder) -> Sequence[int]:
    """A view of the old tensor is copied after the chain that reads it."""
    new = square(b, 0)
    top = b.op("slice", new, start=(0, 0), stop=(1, 6), step=(1, 1))
    rest = b.op("slice", 0, start=(1, 0), stop=(6, 6), step=(1, 1))
    return [new, b.op("concat", top, rest, axis=0)]


def part_read_before(b: SectionBuilder) -> Sequence[int]:
    """The same view, copied before that chain."""
    new = square(b, 0)
    top = b.op("slice", new, start=(0, 0), stop=(1, 6), step=(1, 1))
    rest = b.op("slice", 0, start=(1, 0), stop=(6, 6), step=(1, 1))
    return [new, b.op("concat", rest, top, axis=0)]


@pytest.mark.parametrize(
    ("build", "places"),
    [
        (read_again, set()),
        (read_beside, set()),
        (shared, {0}),
        (frozen, {1}),
        (moved, set()),
        (swapped, set()),
        (swapped_and_updated, set()),
        (turned, {1}),
        (of_rows, {1}),
        (first_rows, {1}),
        (part_read_later, set()),
        (part_read_before, {0}),
    ],
)
def test_op_8__what_is_still_read_is_not_written_over(build: Build, places: set[int]) -> None:
    made = program([(6, 6)] * 2, build)
    assert over(made) == places
    for order in ORDERS:
        for stayed in compared(made, ShimDevice(order)):
            # Two loads that are one array are seen when the step runs.
            assert 0 not in stayed if build is shared else places <= stayed


def test_op_8__chains_that_were_joined_read_before_others_write() -> None:
    """The first and the last chain become one launch, before the one between that reads too."""

    def build(b: SectionBuilder) -> Sequence[int]:
        first = b.op("add", b.op("mul", 0, 3), 0)
        between = b.op("sub", b.op("mul", 1, 2), 1)
        return [first, between, b.op("add", b.op("mul", 2, 3), 2), 3]

    made = program([(6, 6)] * 4, build)
    assert over(made) == {0, 1}
    compared(made, ShimDevice(1))


def test_loads_that_share_memory_are_found() -> None:
    spans = [range(50, 60), range(100), range(0), range(55, 58), range(100, 110), range(200, 210)]
    assert _shared(spans) == {0, 1, 3}
    assert _shared([range(5), range(5)]) == {0, 1}


def test_a_state_that_is_not_given_is_not_written() -> None:
    device, made = ShimDevice(), ADAMW
    executor = Executor(unroll(made), CudaBackend(device))
    state, data = tensors(made)
    held = [device.upload(a) for a in state]
    first = executor.step(held, data, 5, 0)
    assert [to_bytes(a) for a in held] == [to_bytes(a) for a in state]
    # Nor are arrays of the caller that lie elsewhere, in part, among those that are given.
    lent = [*first[:2], first[0], *first[3:]]
    before = to_bytes(first[0])
    executor.consume(lent, data, 5, 1)
    assert to_bytes(first[0]) == before


# ---- memory ---------------------------------------------------------------------------------


def test_exe_24__a_step_that_is_given_its_state_needs_no_room_for_another() -> None:
    state = sum(-(-v.type.nbytes // GRAIN) * GRAIN for v in ADAMW.state[:-1])
    given, kept = (need_bytes(unroll(ADAMW), given=g) for g in (True, False))
    assert kept - given == state


class Peak(ShimDevice):
    """A device that notes the most that was taken, in what pools hand out."""

    def __init__(self, room: int) -> None:
        super().__init__(capacity=room + ASIDE)
        self.most = 0

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        made = super().empty(shape, dtype)
        self.free()
        sizes = (end - first for _, first, end in self._rooms.values())
        self.most = max(self.most, sum(-(-size // GRAIN) * GRAIN for size in sizes))
        return made


def test_exe_24__the_room_that_a_step_names_is_what_it_takes() -> None:
    plan, device = unroll(ADAMW), ShimDevice()
    need = need_bytes(plan, device.multiprocessors, device.compute_capability) - ASIDE
    device = Peak(need)
    executor = Executor(plan, CudaBackend(device))
    state, data = tensors(ADAMW)
    for step in range(STEPS):
        state = executor.consume(state, data, 5, step)
        executor.chunk_roots(state)
    assert device.most == need


def test_an_old_tensor_is_let_go_after_its_last_use() -> None:
    """A matrix product is written over nothing, but the next one may lie where its operand lay."""
    n = 1 << 10

    def build(b: SectionBuilder) -> Sequence[int]:
        new = b.op("matmul", 0, 0)
        return [new, b.op("matmul", new, b.op("matmul", 1, new))]

    plan = unroll(program([(n, n)] * 2, build))
    given, kept = (need_bytes(plan, given=g) for g in (True, False))
    assert kept - given >= 4 * n * n


def test_exe_24__a_state_that_lies_on_the_device_is_not_counted_again() -> None:
    plan, probe = unroll(ADAMW), ShimDevice()
    sizes = probe.multiprocessors, probe.compute_capability
    state, data = tensors(ADAMW)
    lying = sum(-(-a.nbytes // GRAIN) * GRAIN for a in state[:-1])
    device = ShimDevice(capacity=need_bytes(plan, *sizes) - lying + sum(a.nbytes for a in state))
    held = [device.upload(a) for a in state]
    assert device.free() == need_bytes(plan, *sizes) - lying
    backend = CudaBackend(device)
    backend.check_room(plan, [*data, *held])
    for loads in ([], held[:-2], [*held[:-2], *held[:2]]):
        with pytest.raises(LocalError, match=r"a step needs 128\.0 MiB on shim"):
            backend.check_room(plan, loads)
    # A state that stays beside the new one needs more.
    with pytest.raises(LocalError, match="free"):
        Executor(plan, backend).step(held, data, 5, 0)
    assert not device.launches
    Executor(plan, backend).consume(held, data, 5, 0)
    assert device.launches


# ---- text -----------------------------------------------------------------------------------


def kernels(made: Program) -> list[str]:
    """Texts of the chains that a program is run by where its states are given."""
    device = ShimDevice()
    compared(made, device)
    return sorted({source.text(k) for k in device.launches if k.body})


@pytest.mark.parametrize("made", [ADAMW, mlp()], ids=["adamw", "sgd"])
def test_num_1__kernels_that_write_over_inputs_round_to_nearest(made: Program) -> None:
    loose = [o for o in source.OPTIONS if "fmad" not in o]
    for text in kernels(made):
        strict, other = (nvrtc.to_ptx(text, 75, options) for options in (source.OPTIONS, loose))
        assert ptx.forbidden(strict) == {}
        assert ptx.without_comments(strict) == ptx.without_comments(other)


INPUTS = [("float32", False), ("float32", False), ("float32", True)]
CODE = [("mul", [0, 1]), ("add", [1, 2])]


def test_the_compiler_is_not_told_that_results_and_inputs_are_apart() -> None:
    made = chain_text.Code(INPUTS, CODE, [3, 4], [(0, 1)])
    apart = re.compile(r"float\* __restrict__ (\w+)")
    alone = chain_text.flat(made, [chain_text.Reading("i", "")] * 3, 0)
    assert apart.findall(alone) == ["in0", "in2"]
    assert apart.findall(chain_text.joined(made, [False, False, True])) == ["out1", "in0", "in2"]


@pytest.mark.parametrize(
    ("code", "over"),
    [
        ([("mul", [0, 1]), ("sum_last", [3])], (0, 0)),
        ([("mul", [0, 1]), ("add", [2, 2])], (1, 0)),
        ([("mul", [0, 1]), ("add", [3, 2])], (0, 2)),
    ],
)
def test_nothing_with_rows_is_written_over_or_writes_over(
    code: list[tuple[str, list[int]]], over: tuple[int, int]
) -> None:
    chain_text.Code(INPUTS, code, [3, 4])
    with pytest.raises(ValueError, match="rows"):
        chain_text.Code(INPUTS, code, [3, 4], [over])
