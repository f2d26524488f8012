"""How a user describes a training job. Plain values; nothing here trains or traces.

def job():
    return identic.TrainingJob(
        model=GPT(),
        loss=lambda model, x, y: cross_entropy(model(x), y),
        optimizer=identic.AdamW(lr=1e-3, weight_decay=0.1),
        data=identic.Windows(tokens, length=128, batch=16),
        steps=2000,
        schedule=identic.WarmupCosine(warmup=100, floor=0.1),
        clip=1.0,
    )
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from identic.node.capture.data import Rows, Windows
from identic.node.capture.start import Start
from identic.protocol.lowering import CaptureError


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay (CAP-11).

    Attributes:
        lr: learning rate, before the schedule's factor.
        betas: decay of the two running means.
        eps: added to the root of the second mean.
        weight_decay: ``lr * weight_decay`` of each parameter is taken off before its update.
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01


@dataclass(frozen=True)
class SGD:
    """Gradient descent, with momentum and weight decay as torch.optim.SGD has them (CAP-11).

    Attributes:
        lr: learning rate, before the schedule's factor.
        momentum: decay of the running gradient; 0 keeps none.
        weight_decay: this times the parameter is added to its gradient.
    """

    lr: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0


@dataclass(frozen=True)
class WarmupCosine:
    """A factor that rises in equal steps to 1, then falls along half a cosine to ``floor``.

    Attributes:
        warmup: steps of the rise; step ``warmup - 1`` is the first with factor 1.
        floor: factor at the last step, from 0 to 1.
    """

    warmup: int
    floor: float = 0.0

    def factor(self, step: int, steps: int) -> float:
        """Factor of step ``step`` of ``steps``, counted from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        progress = (step - self.warmup + 1) / max(1, steps - self.warmup)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class Average:
    """A running average of the weights, kept beside them from the first step on (CAP-15).

    Attributes:
        decay: share of the average that stays in each step, from 0 to 1; or a function of
            the step, counted from 0.
        model_file: whether the averages have the parameters' names in the model file, and the
            trained weights are ``trained.NAME``; else the file has the trained weights alone,
            and the state has the averages under ``average.NAME``.
    """

    decay: float | Callable[[int], float] = 0.999
    model_file: bool = True

    def at(self, step: int) -> float:
        """Decay in step ``step``, counted from 0."""
        return float(self.decay(step)) if callable(self.decay) else float(self.decay)


Optimizer = AdamW | SGD | torch.optim.Optimizer
Schedule = WarmupCosine | Callable[[int], float] | LRScheduler | Sequence[LRScheduler]
"""A factor on the learning rate, by the step counted from 0; or torch's schedulers."""


@dataclass(frozen=True)
class TrainingJob:
    """Everything that decides the bits of a trained model.

    Attributes:
        model: a ``torch.nn.Module`` in float32, in the mode (train or eval) it is to train in.
        loss: ``loss(model, *batch)``, a float32 scalar, the mean over the batch.
        optimizer: ``AdamW`` or ``SGD``, or torch's own SGD, Adam or AdamW over the model's
            parameters, with its groups.
        data: ``Windows`` or ``Rows``.
        steps: training steps.
        schedule: factor on the learning rate for each step, or ``torch.optim.lr_scheduler``
            objects of the optimizer; ``None`` is 1 throughout.
        schedule_every: steps between two calls of the schedulers' ``step()``.
        clip: gradients longer than this, all taken as one vector, are scaled to it.
        clip_value: elements of gradients are kept between this and its negative.
        shards: equal pieces each batch falls into, whose gradients are averaged; part of the
            result, not of the speed.
        average: a running average of the weights to keep.
        start: where to begin instead of the model's own weights: the folder of a finished job,
            a safetensors file, or a ``Start``.
        seed: of every random number of the job, from 0 to 2**64 - 1.
    """

    model: Any
    loss: Callable[..., Any]
    optimizer: Optimizer
    data: Windows | Rows
    steps: int
    schedule: Schedule | None = None
    schedule_every: int = 1
    clip: float | None = None
    clip_value: float | None = None
    shards: int = 1
    average: Average | None = None
    start: Start | str | Path | None = None
    seed: int = 0

    def factor(self, step: int) -> float:
        """Factor on the learning rate in step ``step``, counted from 0; 1 under schedulers."""
        schedule = self.schedule
        if isinstance(schedule, WarmupCosine):
            return schedule.factor(step, self.steps)
        if schedule is None or isinstance(schedule, LRScheduler | Sequence):
            return 1.0
        return float(schedule(step))

    def check(self) -> None:
        """Refuse a job that cannot be run (CAP-1)."""
        # CAP-1: steps, shards and batch are positive, the batch is shared equally.
        if not isinstance(self.optimizer, Optimizer):
            raise _wrong(
                f"the optimizer is a {type(self.optimizer).__name__}.",
                "use identic.AdamW or identic.SGD, or SGD, Adam or AdamW of torch.optim.",
            )
        if not isinstance(self.data, Windows | Rows):
            raise _wrong(
                f"the data is a {type(self.data).__name__}.", "use identic.Windows or identic.Rows."
            )
        if self.steps < 1:
            raise _wrong(f"the job has {self.steps} steps.", "give a whole number of at least 1.")
        if self.schedule_every < 1:
            raise _wrong(
                f"the schedule moves every {self.schedule_every} steps.",
                "give a whole number of at least 1.",
            )
        if self.shards < 1 or self.data.batch % self.shards:
            raise _wrong(
                f"a batch of {self.data.batch} does not fall into {self.shards} equal shards.",
                "choose a batch that the number of shards divides.",
            )
        if not 0 <= self.seed < 1 << 64:
            raise _wrong(f"the seed is {self.seed}.", "choose one from 0 to 2**64 - 1.")
        for limit in (self.clip, self.clip_value):
            if limit is not None and not limit > 0:
                raise _wrong(
                    f"gradients are clipped to {limit}.", "clip to a positive number, or to None."
                )
        if self.average is not None and not 0 <= self.average.at(0) <= 1:
            raise _wrong(
                f"the average keeps {self.average.at(0)} of itself.", "choose a share from 0 to 1."
            )


def _wrong(problem: str, advice: str) -> CaptureError:
    return CaptureError("CAP-1", problem, advice=advice)
