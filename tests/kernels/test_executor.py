"""The executor: a step with an observer, without one, and its new state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels.arrays import Array, from_bytes, from_words, to_bytes, words
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.kernels.reference_backend import ReferenceBackend
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from tests.helpers.calls import Maker
from tests.helpers.effort import examples
from tests.helpers.programs import mlp, mlp_data, mlp_state
from tests.helpers.random_programs import random_program


def arrays(shards: int, batch: int = 4) -> tuple[Executor, list[Array], list[Array]]:
    program = mlp(shards=shards, batch=batch)
    state = [from_bytes(v.type, b) for v, b in zip(program.state, mlp_state(program), strict=True)]
    data = [from_bytes(v.type, b) for v, b in zip(program.data, mlp_data(program), strict=True)]
    return Executor(unroll(program), ReferenceBackend()), state, data


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_prg_10__an_observer_sees_every_value_in_order(shards: int) -> None:
    executor, state, data = arrays(shards)
    seen: list[int] = []

    def observer(value: int, array: Array) -> Array:
        assert array.flags.c_contiguous
        assert array.shape == executor.plan.type(value).shape
        seen.append(value)
        return array

    observed = executor.step(state, data, 5, 0, observer)
    assert seen == list(range(executor.plan.values))
    plain = executor.step(state, data, 5, 0)
    assert [to_bytes(a) for a in observed] == [to_bytes(a) for a in plain]


def test_training_lowers_the_loss() -> None:
    executor, state, data = arrays(1, batch=12)
    losses = []
    for step in range(8):
        state = executor.step(state, data, 5, step)
        losses.append(float(state[-1]))
    assert losses[-1] < losses[0]


def test_an_observer_may_replace_a_value() -> None:
    executor, state, data = arrays(1)
    honest = executor.step(state, data, 5, 0)
    lie_at = executor.plan.values - 1

    def observer(value: int, array: Array) -> Array:
        return array + np.float32(1) if value == lie_at else array

    lied = executor.step(state, data, 5, 0, observer)
    differing = [i for i, (a, b) in enumerate(zip(honest, lied, strict=True)) if (a != b).any()]
    assert differing == [i for i, o in enumerate(executor.plan.outputs) if o == lie_at]


@settings(max_examples=examples(150), deadline=None)
@given(seed=st.integers(0, 2**32), operators=st.integers(1, 40))
def test_a_prepared_step_gives_the_bits_of_the_operators_one_by_one(
    seed: int, operators: int
) -> None:
    program = random_program(seed, operators)
    validate(program, Limits())
    make = Maker(seed)
    state = [from_words(v.type, make.words(v.type)) for v in program.state]
    executor = Executor(unroll(program), CpuBackend(2))
    for step in range(2):
        want = executor.step(state, [], 1, step, lambda _, array: array)
        got = executor.step(state, [], 1, step)
        assert [words(a) for a in got] == [words(a) for a in want]
        state = got


def test_results_outlive_the_next_step() -> None:
    _, state, data = arrays(2)
    executor = Executor(unroll(mlp(shards=2)), CpuBackend())
    first = executor.step(state, data, 5, 0)
    kept = [to_bytes(a) for a in first]
    executor.step(first, data, 5, 1)
    assert [to_bytes(a) for a in first] == kept


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_cpu_and_reference_train_to_the_same_bits(shards: int) -> None:
    reference, state, data = arrays(shards)
    cpu = Executor(reference.plan, CpuBackend())
    other = state
    for step in range(3):
        state = reference.step(state, data, 5, step)
        other = cpu.step(other, data, 5, step)
        assert [to_bytes(a) for a in state] == [to_bytes(a) for a in other]


def test_a_state_of_another_shape_is_refused() -> None:
    executor, state, data = arrays(1)
    with pytest.raises(ValueError, match="where the program has"):
        executor.step([state[1], *state[1:]], data, 5, 0)
