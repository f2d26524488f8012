"""The residual network of the examples in its smallest form: captured, checked, trained."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from identic.kernels import _native
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.capture import Captured, TrainingJob, capture, check_against_eager
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate

pytestmark = [pytest.mark.xdist_group("resnet example"), pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
WIDTH, STEPS = 2, 24


@pytest.fixture(scope="module")
def example() -> tuple[TrainingJob, Captured]:
    """The job and its capture."""
    job: TrainingJob = runpy.run_path(str(ROOT / "examples" / "resnet_digits.py"))["job"](WIDTH)
    return job, capture(job)


def after(captured: Captured, seed: int, steps: int, threads: int) -> list[Any]:
    """The state after some steps."""
    executor = Executor(unroll(captured.program), CpuBackend(threads))
    state: list[Any] = captured.state
    for step in range(steps):
        state = executor.step(state, captured.data, seed, step)
    return state


def test_the_resnet_example_agrees_with_torch_and_learns(
    example: tuple[TrainingJob, Captured],
) -> None:
    job, captured = example
    validate(captured.program, Limits())
    found = check_against_eager(captured, job)
    assert abs(found.loss - found.eager_loss) <= 1e-4 * found.eager_loss
    assert str(captured.summary).startswith("ResNet18")
    trained = after(captured, job.seed, STEPS, 1)
    assert float(trained[-1]) < 0.8 * found.loss


def test_a_step_of_the_resnet_example_has_the_same_bits_on_every_path(
    example: tuple[TrainingJob, Captured],
) -> None:
    job, captured = example
    want = [a.tobytes() for a in after(captured, job.seed, 1, 1)]
    assert [a.tobytes() for a in after(captured, job.seed, 1, 2)] == want
    try:
        for path in _native.paths():
            _native.set_path(path)
            assert [a.tobytes() for a in after(captured, job.seed, 1, 1)] == want, path
    finally:
        _native.set_path("auto")
