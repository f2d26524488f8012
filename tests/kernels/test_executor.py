"""The executor: a step with an observer, without one, and its new state."""

from __future__ import annotations

import numpy as np
import pytest

from identic.kernels.arrays import Array, from_bytes, to_bytes
from identic.kernels.executor import Executor
from identic.kernels.reference_backend import ReferenceBackend
from identic.protocol.program.unroll import unroll
from tests.helpers.programs import mlp, mlp_data, mlp_state


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


def test_a_state_of_another_shape_is_refused() -> None:
    executor, state, data = arrays(1)
    with pytest.raises(ValueError, match="where the program has"):
        executor.step([state[1], *state[1:]], data, 5, 0)
