"""Convolutional models: what they capture as, and what they compute, beside torch."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.capture import Captured, TrainingJob, capture, check_against_eager
from identic.protocol.program.context import context
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from tests.capture.conftest import Exact
from tests.capture.convnets import CASES
from tests.capture.interpreter import TorchBackend, run_plan

_MADE: dict[str, tuple[TrainingJob, Captured]] = {}
"""The captures, each made once a run."""


def made(name: str) -> tuple[TrainingJob, Captured]:
    """The named job and its capture."""
    if name not in _MADE:
        job = CASES[name].job()
        _MADE[name] = job, capture(job)
    return _MADE[name]


AT_LENGTH = pytest.mark.long
MEMBERS = [pytest.param(n, marks=AT_LENGTH) if "resnet" in n else n for n in sorted(CASES)]


@pytest.fixture(params=MEMBERS)
def case(request: pytest.FixtureRequest, exact: Exact) -> tuple[TrainingJob, Captured]:
    """A job and its capture; ``exact`` remembers the numbers behind its constants."""
    del exact
    return made(request.param)


def batch(job: TrainingJob, step: int, shard: int, dtype: torch.dtype) -> list[Tensor]:
    """A shard's examples, numbers in another element type."""
    tensors = map(torch.from_numpy, job.data.batch_of(context(job.seed, step, shard), job.shards))
    return [t.to(dtype) if t.is_floating_point() else t for t in tensors]


def test_cap_20__cap_21__cap_22__gradients_are_autograds_in_float64(
    case: tuple[TrainingJob, Captured], exact: Exact
) -> None:
    job, captured = case
    plan, program = unroll(captured.program), captured.program
    backend = TorchBackend(torch.float64, exact.numbers)
    values = run_plan(plan, backend, captured.state, captured.data, job.seed, 0)
    section = program.gradient
    for shard in range(job.shards):
        first = len(plan.loads) + shard * len(section.instructions) - len(section.inputs)
        outputs = [values[first + int(o)] for o in section.outputs]
        model = copy.deepcopy(job.model).double()
        loss = job.loss(model, *batch(job, 0, shard, torch.float64))
        wanted = [loss, *torch.autograd.grad(loss, list(model.parameters()))]
        wanted += [model.get_buffer(v.name) for v in program.buffers]
        assert len(outputs) == len(wanted)
        scale = max(float(g.abs().max()) for g in wanted[1 : 1 + len(program.trainable)])
        for ours, theirs in zip(outputs, wanted, strict=True):
            size = max(scale, float(theirs.detach().abs().max()))
            assert float((ours - theirs.detach()).abs().max()) <= 1e-12 * size


def test_cap_14__a_float32_step_is_torchs_within_rounding(
    case: tuple[TrainingJob, Captured],
) -> None:
    job, captured = case
    validate(captured.program, Limits())
    found = check_against_eager(captured, job)
    assert abs(found.loss - found.eager_loss) <= 1e-5 * abs(found.eager_loss)
    assert 0 <= found.difference < 1e-5


def eager_steps(job: TrainingJob) -> nn.Module:
    """The model after all steps of torch's own optimizer."""
    model: nn.Module = copy.deepcopy(job.model)
    o: Any = job.optimizer
    optimizer = torch.optim.SGD(model.parameters(), lr=o.lr, momentum=o.momentum)
    for step in range(job.steps):
        optimizer.zero_grad()
        job.loss(model, *batch(job, step, 0, torch.float32)).backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("name", ["lenet", pytest.param("resnet", marks=AT_LENGTH), "evaluated"])
@pytest.mark.usefixtures("exact")
def test_cap_22__three_steps_end_where_torch_ends(name: str) -> None:
    job, captured = made(name)
    state: list[Any] = captured.state
    executor = Executor(unroll(captured.program), CpuBackend())
    for step in range(job.steps):
        state = executor.step(state, captured.data, job.seed, step)
    model = eager_steps(job)
    theirs = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    compared = 0
    for variable, ours in zip(captured.program.state, state, strict=True):
        if variable.name in theirs:
            want = theirs[variable.name].detach().numpy()
            assert np.allclose(ours, want, rtol=2e-3, atol=2e-4), variable.name
            compared += 1
    assert compared == len(captured.program.parameters) + len(captured.program.buffers)
    norms = sum(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in model.modules())
    kept = {"lenet": 0, "resnet": 3 * norms, "evaluated": 3}[name]
    assert len(captured.program.buffers) == kept


@pytest.mark.usefixtures("exact")
def test_cap_20__cap_21__a_resnet_is_made_of_convolutions_and_pools() -> None:
    _, captured = made("resnet")
    found = Counter(i.op for i in captured.program.gradient.instructions)
    convolutions = 1 + 4 * 2 + 3
    assert found["conv"] == found["conv_dw"] == convolutions
    assert found["conv_dx"] == convolutions - 1
    assert found["max_pool"] == found["max_pool_indices"] == found["max_pool_dx"] == 1
    places = [n.module for n in captured.notes.gradient if n.file == "convnets.py"]
    assert "layers.1.around.0" in places
