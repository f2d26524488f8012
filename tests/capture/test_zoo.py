"""Models of all kinds capture, compute what torch computes, and go on doing so for three steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.capture import Captured, TrainingJob, capture, check_against_eager
from identic.node.capture.check import StepRandomness, twin
from identic.node.capture.randomness import Randomness
from identic.node.capture.tracing import math_attention
from identic.protocol.program.context import context
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from tests.capture.conftest import Exact
from tests.capture.interpreter import TorchBackend, run_plan
from tests.capture.zoo import ZOO

QUICK = {"moe"}
"""What stands for the others in a short run."""

MEMBERS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in ZOO]


class Wide(TorchFunctionMode):
    """A model's own conversions to float32 give float64."""

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function with the wider type."""
        del types

        def wide(value: Any) -> Any:
            return torch.float64 if value is torch.float32 else value

        if func is Tensor.float:
            func = Tensor.double
        named = {name: wide(value) for name, value in (kwargs or {}).items()}
        return func(*map(wide, args), **named)


@contextmanager
def wide_draws() -> Iterator[None]:
    """The step's uniform numbers in float64, and with them all that is made from them."""
    draw = Randomness.draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Randomness, "draw", lambda self, shape: draw(self, shape).double())
        yield


def eager_losses(captured: Captured, steps: int) -> list[float]:
    """Losses of torch's own loop, with the step's batches and random numbers."""
    job, checked = captured.checked.job, captured.checked
    model = copy.deepcopy(job.model)
    named = dict(model.named_parameters())
    optimizer = twin(captured, {n: named[n] for n in checked.trained})
    losses = []
    for step in range(steps):
        words = context(job.seed, step, 0)
        batch = [torch.from_numpy(a) for a in job.data.batch_of(words, 1)]
        optimizer.zero_grad()
        with math_attention(), StepRandomness(torch.tensor(words)):
            loss = job.loss(model, *job.data.arrange(batch))
            loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def our_losses(captured: Captured, steps: int) -> list[float]:
    """Losses of the program."""
    executor = Executor(unroll(captured.program), CpuBackend())
    state: list[Any] = captured.state
    losses = []
    for step in range(steps):
        state = executor.step(state, captured.data, captured.checked.job.seed, step)
        losses.append(float(state[-1]))
    return losses


def exact_step(captured: Captured, exact: Exact) -> tuple[list[Tensor], list[Tensor]]:
    """Loss and gradients of the first step in float64: the program's, and autograd's."""
    job, section = captured.checked.job, captured.program.gradient
    plan = unroll(captured.program)
    backend = TorchBackend(torch.float64, exact.numbers)
    values = run_plan(plan, backend, captured.state, captured.data, job.seed, 0)
    first = len(plan.loads) - len(section.inputs)
    count = 1 + len(captured.checked.trained)
    ours = [values[first + int(o)] for o in section.outputs[:count]]
    model = copy.deepcopy(job.model).double()
    words = context(job.seed, 0, 0)
    given = [torch.from_numpy(np.array(a)) for a in job.data.batch_of(words, 1)]
    batch = [t.double() if t.is_floating_point() else t for t in given]
    with math_attention(), Wide(), wide_draws(), StepRandomness(torch.tensor(words)):
        loss = job.loss(model, *job.data.arrange(batch))
        named = dict(model.named_parameters())
        trained = [named[n] for n in captured.checked.trained]
        return ours, [loss.detach(), *torch.autograd.grad(loss, trained)]


def check_as_torch_trains(job: TrainingJob, exact: Exact) -> None:
    """One step in float32, its gradients in float64, and three steps, beside torch's own.

    Args:
        job: of a few steps.
        exact: what constants stand for.
    """
    captured = capture(job)
    validate(captured.program, Limits())
    found = check_against_eager(captured, job)
    assert abs(found.loss - found.eager_loss) <= 1e-5 * abs(found.eager_loss)
    assert found.difference < 1e-5
    ours, theirs = exact_step(captured, exact)
    scale = max(float(g.abs().max()) for g in theirs[1:])
    assert abs(float(ours[0] - theirs[0])) <= 1e-12 * abs(float(theirs[0]))
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        assert float((one - other).abs().max()) <= 1e-12 * scale
    want = eager_losses(captured, job.steps)
    assert np.allclose(our_losses(captured, job.steps), want, rtol=2e-4, atol=0)


@pytest.mark.parametrize("name", MEMBERS)
def test_cap_9__a_model_trains_as_torch_trains_it(name: str, exact: Exact) -> None:
    check_as_torch_trains(ZOO[name].job(), exact)
