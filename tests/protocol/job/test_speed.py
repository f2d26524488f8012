"""The solver's speed, as its commitments show it; it prices what a dispute asks of both sides."""

import pytest

from tests.protocol.job.world import World


@pytest.mark.parametrize(("train_ms", "step_ms"), [(0, 0), (1, 1), (4_000, 1_000), (4_001, 1_001)])
def test_job_17__the_speed_is_the_time_from_acceptance_to_the_last_commitment(
    train_ms: int, step_ms: int
) -> None:
    world = World().accept()
    assert world.job.step_ms == 0
    world.now += train_ms
    world.commit(upto=3)
    assert world.job.step_ms == step_ms
    # What passes afterwards says nothing about the speed.
    world.now += 9_000
    assert world.job.step_ms == step_ms
