"""Programs: what validation refuses, the order of the plan, cost, context and digest."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels.arrays import from_bytes, words
from identic.kernels.executor import Executor
from identic.kernels.reference_backend import ReferenceBackend
from identic.protocol.arithmetic import f32
from identic.protocol.dtypes import DType
from identic.protocol.encoding import encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Count, Unsigned
from identic.protocol.job.terms import MAX_STEPS
from identic.protocol.ops.base import Cost
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load, program_digest
from identic.protocol.program.context import context, context_bytes
from identic.protocol.program.cost import cost, last_uses, peak_bytes
from identic.protocol.program.plan import Load, Part, Source
from identic.protocol.program.types import (
    CONTEXT_TYPE,
    LOSS_TYPE,
    Attribute,
    Program,
    Section,
    Variable,
)
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from identic.protocol.tensors import TensorType
from tests.helpers.effort import examples
from tests.helpers.programs import SectionBuilder, mlp
from tests.helpers.programs import f32 as floats

PROGRAM = mlp()


def refused(rule: str, program: Program, limits: Limits | None = None) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        validate(program, limits or Limits())
    assert caught.value.rule == rule
    return caught.value


def with_instruction(position: int, **changes: object) -> Program:
    section = PROGRAM.gradient
    changed = replace(section.instructions[position], **changes)  # type: ignore[arg-type]
    instructions = (
        *section.instructions[:position],
        changed,
        *section.instructions[position + 1 :],
    )
    return replace(PROGRAM, gradient=replace(section, instructions=instructions))


def test_the_hand_written_program_is_valid() -> None:
    validate(PROGRAM, Limits())


def test_prg_1__another_version_or_none_of_something_is_refused() -> None:
    refused("PRG-1", replace(PROGRAM, version=Count(2)))
    refused("PRG-1", replace(PROGRAM, shards=Count(0)))
    refused("PRG-1", replace(PROGRAM, examples=Count(0)))


@pytest.mark.parametrize(("shards", "examples"), [(1, 1 << 24), (4, 1 << 22), (1, 2**64 - 1)])
def test_prg_1__the_cursor_of_any_run_is_a_number(shards: int, examples: int) -> None:
    """A run whose header cannot be written down ends its honest solver."""
    refused("PRG-1", replace(PROGRAM, shards=Count(shards), examples=Count(examples)))
    validate(replace(PROGRAM, examples=Count((1 << 24) - 1)), Limits())
    assert Count(((1 << 24) - 1) * MAX_STEPS)


def test_prg_2__element_types_have_their_codes_and_sizes() -> None:
    table = [(d.label, int(d), d.size) for d in DType]
    assert table == [
        ("float32", 1, 4),
        ("int64", 2, 8),
        ("int32", 3, 4),
        ("uint8", 4, 1),
        ("bool", 5, 1),
        ("bfloat16", 6, 2),
    ]
    assert DType.FLOAT32.word(bytes.fromhex("0000803f")) == f32.ONE
    assert DType.INT32.signed(0xFFFFFFFF) == -1


def test_prg_2__a_bool_that_is_neither_0_nor_1_is_refused() -> None:
    kind = TensorType.of(DType.BOOL, (3,))
    assert words(from_bytes(kind, b"\x00\x01\x01")) == [0, 1, 1]
    assert words(from_bytes(TensorType.of(DType.BOOL, (0,)), b"")) == []
    with pytest.raises(ProtocolError) as caught:
        from_bytes(kind, b"\x00\x02\x01")
    assert caught.value.rule == "PRG-2"


@pytest.mark.parametrize(
    "shape", [(1,) * 9, (1 << 44, 2), (0, 1 << 63), (1 << 40, 0, 1 << 40), (1,) * (1 << 20)]
)
def test_prg_3__large_tensors_are_refused(shape: tuple[int, ...]) -> None:
    kind = TensorType(DType.FLOAT32, tuple(Unsigned(n) for n in shape))
    refused("PRG-3", replace(PROGRAM, data=(*PROGRAM.data, Variable("huge", kind))))


def test_prg_3__a_result_that_is_too_large_is_refused() -> None:
    with pytest.raises(ProtocolError) as caught:
        SectionBuilder([floats(1)]).op("expand", 0, shape=(1 << 45,))
    assert caught.value.rule == "PRG-3"


def test_prg_4__unknown_operators_are_refused() -> None:
    refused("PRG-4", with_instruction(3, op="pow"))


def test_prg_5__another_number_of_inputs_is_refused() -> None:
    refused("PRG-5", with_instruction(3, inputs=(Unsigned(0),)))
    with pytest.raises(ProtocolError) as caught:
        SectionBuilder([]).op("concat", axis=0)
    assert caught.value.rule == "PRG-5"


@pytest.mark.parametrize(
    "attributes",
    [
        (),
        (Attribute("bound", (12,)), Attribute("count", (4,))),
        (Attribute("count", (4,)), Attribute("bound", (12,)), Attribute("shards", (1,))),
        (Attribute("bound", (12, 1)), Attribute("count", (4,)), Attribute("shards", (1,))),
        (Attribute("bound", ()), Attribute("count", (4,)), Attribute("shards", (1,))),
        *[
            (
                Attribute("bound", (12,)),
                Attribute("count", (4,)),
                Attribute("shards", (1,)),
                Attribute("zeal", (1,)),
            )
        ],
    ],
)
def test_prg_6__other_attributes_are_refused(attributes: tuple[Attribute, ...]) -> None:
    assert PROGRAM.gradient.instructions[0].op == "shuffled_index"
    refused("PRG-6", with_instruction(0, attributes=attributes))


def test_prg_7__values_made_later_are_refused() -> None:
    own = len(PROGRAM.gradient.inputs) + 3
    refused("PRG-7", with_instruction(3, inputs=(Unsigned(own), Unsigned(0))))
    beyond = (*PROGRAM.gradient.outputs[:-1], Unsigned(1 << 40))
    refused("PRG-7", replace(PROGRAM, gradient=replace(PROGRAM.gradient, outputs=beyond)))


def test_prg_8__a_declared_type_must_be_the_inferred_one() -> None:
    refused("PRG-8", with_instruction(3, output=floats(4, 7)))


@pytest.mark.parametrize("name", ["__metadata__", "", "a b", "é", "x" * 201, "loss", "out.bias"])
def test_prg_9__empty_strange_and_repeated_names_are_refused(name: str) -> None:
    first = replace(PROGRAM.data[0], name=name)
    refused("PRG-9", replace(PROGRAM, data=(first, *PROGRAM.data[1:])))


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_prg_10__loads_are_state_then_data_then_contexts(shards: int) -> None:
    program = mlp(shards=shards)
    loads = unroll(program).loads
    states, data = len(program.state) - 1, len(program.data)
    assert [load.type for load in loads[:states]] == [v.type for v in program.state[:-1]]
    assert loads[states] == Load(Source.DATA, 0, program.data[0].type)
    contexts = [Load(Source.CONTEXT, i, CONTEXT_TYPE) for i in range(shards)]
    assert list(loads[states + data :]) == contexts


@pytest.mark.parametrize("shards", [1, 3])
def test_prg_11__the_gradient_section_runs_for_each_shard(shards: int) -> None:
    program = mlp(shards=shards)
    plan = unroll(program)
    length = len(program.gradient.instructions)
    calls = plan.calls[: length * shards]
    assert [(c.part, c.shard, c.position) for c in calls] == [
        (Part.GRADIENT, shard, position) for shard in range(shards) for position in range(length)
    ]
    first = [c for c in calls if c.position == 0]
    assert [c.inputs for c in first] == [(len(plan.loads) - shards + i,) for i in range(shards)]


@pytest.mark.parametrize(
    ("shards", "pairs"),
    [(2, [(0, 1)]), (3, [(0, 1), ("a", 2)]), (5, [(0, 1), (2, 3), ("a", "b"), ("c", 4)])],
)
def test_prg_12__num_19__shards_are_summed_as_a_tree(
    shards: int, pairs: list[tuple[object, object]]
) -> None:
    program = mlp(shards=shards)
    plan = unroll(program)
    calls = [c for c in plan.calls if c.part is Part.REDUCTION]
    assert calls[0].call.op.name == "full"
    base = len(plan.loads) + len(program.gradient.instructions) * shards
    length = len(program.gradient.instructions)
    loss = program.gradient.outputs[0] - len(program.gradient.inputs)
    names: dict[object, int] = {i: len(plan.loads) + i * length + loss for i in range(shards)}
    names |= {name: base + 1 + i for i, name in enumerate("abcd")}
    adds = calls[1 : 1 + len(pairs)]
    assert [c.call.op.name for c in adds] == ["add"] * len(pairs)
    assert [c.inputs for c in adds] == [(names[a], names[b]) for a, b in pairs]
    assert [c.position for c in calls] == list(range(len(calls)))


def test_prg_13__num_19__sums_are_scaled_by_one_rounded_quotient() -> None:
    plan = unroll(mlp(shards=3))
    calls = [c for c in plan.calls if c.part is Part.REDUCTION]
    assert calls[0].call.integer("word") == f32.div(f32.ONE, f32.from_int(3)) == 0x3EAAAAAB
    scale = len(plan.loads) + plan.calls.index(calls[0])
    assert (calls[3].call.op.name, calls[3].inputs) == ("mul", (scale + 2, scale))
    assert [c for c in unroll(mlp(shards=1)).calls if c.part is Part.REDUCTION] == []


def test_prg_13__a_buffer_of_integers_is_that_of_the_first_shard() -> None:
    program = with_buffer(shards=2)
    validate(program, Limits())
    plan = unroll(program)
    (made,) = (v for v in plan.outputs if plan.type(v).dtype is DType.INT64)
    planned = plan.call(made)
    assert planned is not None
    assert (planned.part, planned.shard) == (Part.GRADIENT, 0)


def with_buffer(shards: int) -> Program:
    """A program without parameters that counts its steps in an integer buffer."""
    counter = TensorType.of(DType.INT64, ())
    gradient = SectionBuilder([counter, CONTEXT_TYPE])
    one = gradient.op("full", dtype=DType.INT64, shape=(), word=1)
    loss = gradient.scalar(0.5)
    following = gradient.op("add", 0, one)
    return Program(
        version=Count(1),
        shards=Count(shards),
        examples=Count(1),
        parameters=(),
        trainable=(),
        buffers=(Variable("steps", counter),),
        optimizer=(),
        data=(),
        gradient=gradient.build(loss, following),
        update=Section((CONTEXT_TYPE,), (), ()),
    )


@pytest.mark.parametrize("shards", [1, 2])
def test_prg_14__the_update_section_ends_the_step(shards: int) -> None:
    program = mlp(shards=shards)
    plan = unroll(program)
    updates = plan.calls[-len(program.update.instructions) :]
    assert {c.part for c in updates} == {Part.UPDATE}
    context_of_shard_0 = len(plan.loads) - shards
    assert updates[0].inputs == (context_of_shard_0,)
    assert [plan.type(o) for o in plan.outputs] == [v.type for v in program.state]
    assert plan.type(plan.outputs[-1]) == LOSS_TYPE
    assert plan.trace_length == len(plan.loads) + len(plan.calls) + 1


@given(seed=st.integers(0, 2**64 - 1), step=st.integers(0, 2**62), shard=st.integers(0, 99))
def test_prg_15__keys_come_from_seed_and_step(seed: int, step: int, shard: int) -> None:
    numbers = context(seed, step, shard)
    job = tagged(Domain.RANDOM, struct.pack(">Q", seed))
    of_step = tagged(Domain.RANDOM, struct.pack(">QQ", seed, step))
    assert numbers == (
        *struct.unpack(">2I", job[:8]),
        *struct.unpack(">2I", of_step[:8]),
        step,
        shard,
    )
    assert context_bytes(seed, step, shard) == struct.pack("<6q", *numbers)


@pytest.mark.parametrize(
    "limits",
    [Limits(max_instructions=40), Limits(max_bytes=500), Limits(max_flops=1000)],
)
def test_prg_16__programs_beyond_the_limits_are_refused(limits: Limits) -> None:
    assert refused("PRG-16", PROGRAM, limits).code is Code.TOO_LARGE


def test_prg_16__many_shards_are_refused_before_the_plan_is_built() -> None:
    refused("PRG-16", replace(PROGRAM, shards=Count(2**63)))


def test_prg_16__references_are_counted_before_the_plan_is_built() -> None:
    """A few kilobytes of program must not unroll into a long list for each of many shards."""
    b = SectionBuilder(PROGRAM.gradient.inputs)
    wide = b.op("full", dtype=DType.FLOAT32, shape=(0,), word=0)
    b.op("concat", *[wide] * 1000, axis=0)
    section = replace(
        PROGRAM.gradient,
        instructions=(*PROGRAM.gradient.instructions, *b.instructions),
    )
    refused("PRG-16", replace(PROGRAM, gradient=section, shards=Count(1 << 13)))


def test_prg_16__many_inputs_of_many_shards_are_refused() -> None:
    wide = replace(PROGRAM.gradient, inputs=(floats(1),) * (1 << 16))
    refused("PRG-16", replace(PROGRAM, gradient=wide, shards=Count(1 << 10)))


def test_prg_16__peak_bytes_are_what_an_execution_holds() -> None:
    plan = unroll(mlp(shards=2))
    alive: set[int] = set(range(len(plan.loads)))
    most, last = 0, last_uses(plan)
    for number in range(len(plan.loads), plan.values):
        alive.add(number)
        most = max(most, sum(plan.type(v).nbytes for v in alive))
        alive -= {v for v in alive if v >= len(plan.loads) and last[v] == number}
    assert peak_bytes(plan) == most
    assert set(plan.outputs) - set(range(len(plan.loads))) <= alive


def test_prg_16__cost_is_the_sum_of_the_calls() -> None:
    b = SectionBuilder([floats(3, 5), floats(5, 2)])
    b.op("matmul", 0, 1)
    call = unroll(PROGRAM).calls[3].call
    assert call.op.name == "matmul"
    assert call.op.cost(call) == Cost(flops=2 * 4 * 5 * 6, bytes=4 * (20 + 30 + 24))
    assert cost(unroll(mlp(shards=2))).flops > 2 * call.op.cost(call).flops


def test_prg_17__trainable_parameters_are_ascending_and_float32() -> None:
    for numbers in ((1, 0), (0, 0), (0, 4)):
        refused("PRG-17", replace(PROGRAM, trainable=tuple(Unsigned(n) for n in numbers)))
    whole = Variable("count", TensorType.of(DType.INT64, ()))
    refused("PRG-17", replace(PROGRAM, parameters=(whole, *PROGRAM.parameters[1:])))


Change = Callable[[Program], Program]


@pytest.mark.parametrize(
    "change",
    [
        lambda p: replace(p, gradient=replace(p.gradient, outputs=p.gradient.outputs[:-1])),
        lambda p: replace(p, gradient=replace(p.gradient, outputs=p.gradient.outputs[::-1])),
        lambda p: replace(p, update=replace(p.update, outputs=p.update.outputs[1:])),
        lambda p: replace(p, trainable=p.trainable[:-1]),
        lambda p: replace(p, data=p.data[:-1]),
        lambda p: replace(p, optimizer=p.optimizer[:-1]),
    ],
)
def test_prg_18__sections_fit_the_step(change: Change) -> None:
    refused("PRG-18", change(PROGRAM))


def test_prg_19__a_program_is_loaded_from_its_encoding_only() -> None:
    data = encode(PROGRAM)
    assert load(data, Limits()) == PROGRAM
    assert program_digest(PROGRAM) == tagged(Domain.PROGRAM, data)
    with pytest.raises(ProtocolError) as caught:
        load(bytes(MAX_PROGRAM_BYTES + 1), Limits())
    assert (caught.value.rule, caught.value.code) == ("PRG-19", Code.TOO_LARGE)


@settings(max_examples=examples(120), deadline=None)
@given(at=st.integers(0, 10**6), to=st.integers(0, 255))
def test_prg_19__a_changed_byte_is_refused_or_another_valid_program(at: int, to: int) -> None:
    data = bytearray(encode(PROGRAM))
    at %= len(data)
    data[at] = to
    try:
        program = load(bytes(data), Limits())
    except ProtocolError:
        return
    assert encode(program) == data
    assert (program == PROGRAM) == (data == encode(PROGRAM))


def test_the_counting_program_counts() -> None:
    program = with_buffer(shards=2)
    state = [from_bytes(v.type, bytes(v.type.nbytes)) for v in program.state]
    executor = Executor(unroll(program), ReferenceBackend())
    for step in range(3):
        state = executor.step(state, [], 1, step)
    assert [words(a) for a in state] == [[3], [0x3F000000]]
