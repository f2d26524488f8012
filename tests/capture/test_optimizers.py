"""Ten steps of captured jobs beside torch's own training loop: optimizers, schedules, averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler as rates
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.capture import (
    SGD,
    AdamW,
    Average,
    CaptureError,
    TrainingJob,
    WarmupCosine,
    capture,
    check_against_eager,
)
from identic.protocol.program.context import context
from identic.protocol.program.unroll import unroll
from tests.capture.models import CASES, MLP

STEPS = 10
Params = Iterable[Any]
Make = Callable[[nn.Module], torch.optim.Optimizer]

pytestmark = pytest.mark.long


def trained(job: TrainingJob) -> dict[str, Any]:
    """The state after all steps, by name; the first step has been compared with torch's."""
    captured = capture(job)
    assert check_against_eager(captured, job).difference < 1e-5
    executor = Executor(unroll(captured.program), CpuBackend())
    state: list[Any] = captured.state
    for step in range(job.steps):
        state = executor.step(state, captured.data, job.seed, step)
    return {v.name: a for v, a in zip(captured.program.state, state, strict=True)}


@dataclass
class Loop:
    """A training loop as a user writes it."""

    job: TrainingJob
    optimizer: torch.optim.Optimizer
    schedulers: tuple[rates.LRScheduler, ...] = ()
    after_step: Callable[[], object] = lambda: None

    def run(self) -> dict[str, Tensor]:
        """Parameters after all steps, by name."""
        job = self.job
        base = [float(g["lr"]) for g in self.optimizer.param_groups]
        for step in range(job.steps):
            self.optimizer.zero_grad()
            if not self.schedulers:
                for group, lr in zip(self.optimizer.param_groups, base, strict=True):
                    group["lr"] = lr * job.factor(step)
            for shard in range(job.shards):
                batch = job.data.batch_of(context(job.seed, step, shard), job.shards)
                loss = job.loss(job.model, *(torch.from_numpy(a) for a in batch)) / job.shards
                loss.backward()
            if job.clip_value is not None:
                nn.utils.clip_grad_value_(job.model.parameters(), job.clip_value)
            if job.clip is not None:
                nn.utils.clip_grad_norm_(job.model.parameters(), job.clip)
            self.optimizer.step()
            self.after_step()
            if (step + 1) % job.schedule_every == 0:
                for scheduler in self.schedulers:
                    scheduler.step()
        return {n: p.detach() for n, p in job.model.named_parameters()}


def mlp(**changed: Any) -> TrainingJob:
    """The job of all tests here, with a model of its own."""
    return CASES["mlp"].job(steps=STEPS, **changed)


def agree(ours: dict[str, Any], theirs: dict[str, Tensor], prefix: str = "") -> None:
    """Compare every parameter."""
    assert theirs
    for name, value in theirs.items():
        assert np.allclose(ours[prefix + name], value.numpy(), rtol=1e-4, atol=2e-6), name


# ---- our own optimizers ---------------------------------------------------------------------


def twin_of(o: AdamW | SGD, model: nn.Module) -> torch.optim.Optimizer:
    """Torch's optimizer with the numbers of ours."""
    if isinstance(o, AdamW):
        return torch.optim.AdamW(
            model.parameters(), lr=o.lr, betas=o.betas, eps=o.eps, weight_decay=o.weight_decay
        )
    return torch.optim.SGD(
        model.parameters(), lr=o.lr, momentum=o.momentum, weight_decay=o.weight_decay
    )


@pytest.mark.parametrize(
    ("optimizer", "changed"),
    [
        (AdamW(lr=1e-2, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.5), {}),
        (AdamW(lr=1e-2, eps=1e-4), {"clip": 0.05, "shards": 2}),
        (SGD(lr=0.5), {"shards": 4}),
        (SGD(lr=0.5, momentum=0.9, weight_decay=0.1), {"clip": 0.05}),
        (SGD(lr=0.5), {"clip_value": 0.01}),
        (SGD(lr=0.5), {"clip_value": 0.02, "clip": 0.05}),
    ],
)
def test_cap_11__cap_12__cap_13__ten_steps_are_those_of_torchs_optimizers(
    optimizer: AdamW | SGD, changed: dict[str, Any]
) -> None:
    settings = {"optimizer": optimizer, "schedule": WarmupCosine(3, 0.1), **changed}
    loop = mlp(**settings)
    agree(trained(mlp(**settings)), Loop(loop, twin_of(optimizer, loop.model)).run())


# ---- torch's optimizers ---------------------------------------------------------------------


def two(model: nn.Module) -> list[dict[str, Any]]:
    """Matrices in one group, vectors in another with settings of their own."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices}, {"params": vectors, "weight_decay": 0.0, "lr": 0.02}]


def sgd(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    """SGD over two groups."""
    return torch.optim.SGD(two(model), **{"lr": 0.1, "weight_decay": 0.1, **options})


def adam(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    """Adam over two groups."""
    settings = {"lr": 0.01, "weight_decay": 0.1, "eps": 1e-4, **options}
    return torch.optim.Adam(two(model), **settings)


TORCHS: dict[str, Make] = {
    "sgd": sgd,
    "sgd_momentum": lambda m: sgd(m, momentum=0.9),
    "sgd_dampening": lambda m: sgd(m, momentum=0.9, dampening=0.3),
    "sgd_nesterov": lambda m: sgd(m, momentum=0.9, nesterov=True),
    "sgd_maximize": lambda m: sgd(m, momentum=0.9, maximize=True, lr=0.01),
    "adam": adam,
    "adam_betas": lambda m: adam(m, betas=(0.7, 0.8)),
    "adam_maximize": lambda m: adam(m, maximize=True),
    "adam_decoupled": lambda m: adam(m, decoupled_weight_decay=True),
    "adamw": lambda m: torch.optim.AdamW(two(m), lr=0.01, weight_decay=0.5, eps=1e-4),
    "adamw_foreach": lambda m: torch.optim.AdamW(m.parameters(), lr=0.01, eps=1e-4, foreach=True),
    "adamw_fused": lambda m: torch.optim.AdamW(m.parameters(), lr=0.01, eps=1e-4, fused=True),
    "lr_tensor": lambda m: torch.optim.Adam(m.parameters(), lr=torch.tensor(0.01), eps=1e-4),
    "some": lambda m: torch.optim.SGD(list(m.parameters())[2:3], lr=0.1),
}


@pytest.mark.parametrize("name", TORCHS)
def test_cap_11__cap_12__torchs_optimizers_are_translated(name: str) -> None:
    # Torch's norm is over all gradients, ours over those that are applied.
    clip = None if name in ("some", "sgd_maximize") else 0.1
    ours, theirs = MLP(), MLP()
    job, loop = (mlp(model=m, optimizer=TORCHS[name](m), clip=clip) for m in (ours, theirs))
    theirs.load_state_dict(ours.state_dict())
    optimizer = loop.optimizer
    assert isinstance(optimizer, torch.optim.Optimizer)
    agree(trained(job), Loop(loop, optimizer).run())


def test_cap_11__an_optimizer_that_has_taken_steps_goes_on() -> None:
    for name in ("sgd_dampening", "adam", "adamw"):
        model = MLP()
        first = mlp(model=model, optimizer=TORCHS[name](model))
        assert isinstance(first.optimizer, torch.optim.Optimizer)
        Loop(first, first.optimizer).run()
        ours = trained(mlp(model=model, optimizer=first.optimizer, seed=12))
        again = Loop(mlp(model=model, optimizer=first.optimizer, seed=12), first.optimizer).run()
        agree(ours, again)


SCHEDULES: dict[str, tuple[Make, Callable[[Any], Any], int]] = {
    "lambda": (adam, lambda o: rates.LambdaLR(o, [lambda t: 0.9**t, lambda t: 1 / (1 + t)]), 1),
    "cosine": (sgd, lambda o: rates.CosineAnnealingLR(o, T_max=5, eta_min=0.01), 1),
    "epochs": (sgd, lambda o: rates.StepLR(o, step_size=2, gamma=0.1), 3),
    "warm_restarts": (adam, lambda o: rates.CosineAnnealingWarmRestarts(o, T_0=3), 1),
    "one_cycle_sgd": (
        lambda m: sgd(m, momentum=0.9),
        lambda o: rates.OneCycleLR(o, max_lr=[0.1, 0.2], total_steps=STEPS),
        1,
    ),
    "one_cycle_adam": (adam, lambda o: rates.OneCycleLR(o, max_lr=0.02, total_steps=STEPS), 1),
    "sequential": (
        adam,
        lambda o: rates.SequentialLR(
            o, [rates.LinearLR(o, 0.1, total_iters=3), rates.ExponentialLR(o, 0.9)], [3]
        ),
        1,
    ),
    "chained": (
        sgd,
        lambda o: rates.ChainedScheduler(
            [rates.LinearLR(o, 0.5, total_iters=4), rates.ExponentialLR(o, 0.9)]
        ),
        1,
    ),
    "several": (
        sgd,
        lambda o: [rates.LinearLR(o, 0.5, total_iters=4), rates.ExponentialLR(o, 0.9)],
        1,
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_cap_12__torchs_schedulers_become_the_table(name: str) -> None:
    make, schedule, every = SCHEDULES[name]
    made = []
    for _ in range(2):
        torch.manual_seed(3)
        model = MLP()
        optimizer = make(model)
        scheduler = schedule(optimizer)
        made.append(mlp(model=model, optimizer=optimizer, schedule=scheduler, schedule_every=every))
    job, loop = made
    assert isinstance(job.optimizer, torch.optim.Optimizer)
    assert isinstance(loop.optimizer, torch.optim.Optimizer)
    groups = [dict(g) for g in job.optimizer.param_groups]
    ours = trained(job)
    # The scheduler and the optimizer stand where they stood.
    assert [dict(g) for g in job.optimizer.param_groups] == groups
    given: Any = loop.schedule
    schedulers = tuple(given) if isinstance(given, list) else (given,)
    agree(ours, Loop(loop, loop.optimizer, schedulers).run())


def test_cap_12__the_schedule_is_a_table_of_float32_numbers() -> None:
    job = CASES["mlp"].job(
        optimizer=AdamW(lr=0.1, weight_decay=0.5), schedule=lambda t: 1 / (t + 1)
    )
    captured = capture(job)
    (table,) = [
        a for v, a in zip(captured.program.data, captured.data, strict=True) if v.name == "schedule"
    ]
    assert table.shape == (4, 3)
    t = np.arange(1, 5)
    want = np.stack([1 - 0.05 / t, -0.1 / t / (1 - 0.9**t), np.sqrt(1 - 0.999**t)], axis=1)
    assert np.allclose(table, want.astype(np.float32), rtol=1e-6, atol=0)


def test_warmup_cosine_rises_to_one_and_falls_to_its_floor() -> None:
    schedule = WarmupCosine(warmup=4, floor=0.25)
    factors = [schedule.factor(t, 20) for t in range(20)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4:] == sorted(factors[4:], reverse=True)
    assert factors[-1] == pytest.approx(0.25)


# ---- averages -------------------------------------------------------------------------------


@pytest.mark.parametrize("model_file", [True, False])
@pytest.mark.parametrize("decay", [0.8, lambda t: 0.0 if t == 0 else 0.8])
def test_cap_15__averages_are_kept_beside_the_weights(model_file: bool, decay: Any) -> None:
    average = Average(decay, model_file=model_file)
    job, loop = (mlp(optimizer=SGD(lr=0.5), average=average) for _ in range(2))
    averaged = AveragedModel(loop.model, multi_avg_fn=get_ema_multi_avg_fn(0.8))  # type: ignore[no-untyped-call]
    if not callable(decay):
        averaged.update_parameters(loop.model)  # torch's begins with the weights after a step
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.5)
    weights = Loop(loop, optimizer, after_step=lambda: averaged.update_parameters(loop.model)).run()
    means = {n: p.detach() for n, p in averaged.module.named_parameters()}
    ours = trained(job)
    agree(ours, weights, "trained." if model_file else "")
    agree(ours, means, "" if model_file else "average.")
    assert ("trained.l1.weight" in ours) == model_file
    assert {n for n, _ in job.model.named_parameters()} <= set(ours)


# ---- refusals -------------------------------------------------------------------------------


class Own(torch.optim.SGD):
    """An optimizer with a step of its own."""


def _hooked(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = sgd(model)
    optimizer.register_step_post_hook(lambda *_: None)
    return optimizer


def _uneven(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    next(iter(model.parameters())).grad = torch.zeros(16, 12)
    optimizer.step()
    return optimizer


@pytest.mark.parametrize(
    ("make", "rule", "word"),
    [
        (lambda m: adam(m, amsgrad=True), "CAP-11", "amsgrad"),
        (lambda m: sgd(m, differentiable=True), "CAP-11", "differentiable"),
        (lambda m: torch.optim.RMSprop(m.parameters()), "CAP-11", "RMSprop"),
        (lambda m: Own(m.parameters()), "CAP-11", "Own"),
        (_hooked, "CAP-2", "hook"),
        (_uneven, "CAP-12", "[0, 1] steps"),
        (lambda _: torch.optim.SGD(MLP().parameters()), "CAP-1", "not the model's"),
    ],
)
def test_cap_11__options_without_a_rule_are_refused_by_name(
    make: Make, rule: str, word: str
) -> None:
    model = MLP()
    with pytest.raises(CaptureError) as caught:
        capture(mlp(model=model, optimizer=make(model)))
    assert caught.value.rule == rule
    assert word in caught.value.problem
    assert caught.value.advice


@pytest.mark.parametrize(
    ("schedule", "word"),
    [
        (rates.ReduceLROnPlateau, "metric"),
        (lambda o: rates.OneCycleLR(o, max_lr=1.0, total_steps=STEPS - 2), "cannot be stepped"),
        (lambda _: rates.ExponentialLR(sgd(MLP()), 0.9), "another optimizer"),
    ],
)
def test_cap_12__schedules_that_are_no_function_of_the_step_are_refused(
    schedule: Any, word: str
) -> None:
    model = MLP()
    optimizer = sgd(model)
    job = mlp(model=model, optimizer=optimizer, schedule=schedule(optimizer))
    with pytest.raises(CaptureError) as caught:
        capture(job)
    assert caught.value.rule == "CAP-12"
    assert word in caught.value.problem
