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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from identic.node.capture.data import Rows, Windows
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


Schedule = WarmupCosine | Callable[[int], float]
"""A factor on the learning rate, by the step counted from 0."""


@dataclass(frozen=True)
class TrainingJob:
    """Everything that decides the bits of a trained model.

    Attributes:
        model: a ``torch.nn.Module`` in float32, in the mode (train or eval) it is to train in.
        loss: ``loss(model, *batch)``, a float32 scalar, the mean over the batch.
        optimizer: ``AdamW`` or ``SGD``.
        data: ``Windows`` or ``Rows``.
        steps: training steps.
        schedule: factor on the learning rate for each step; ``None`` is 1 throughout.
        clip: gradients longer than this, all taken as one vector, are scaled to it.
        shards: equal pieces each batch falls into; part of the result, not of the speed.
        seed: of every random number of the job, from 0 to 2**64 - 1.
    """

    model: Any
    loss: Callable[..., Any]
    optimizer: AdamW | SGD
    data: Windows | Rows
    steps: int
    schedule: Schedule | None = None
    clip: float | None = None
    shards: int = 1
    seed: int = 0

    def factor(self, step: int) -> float:
        """Factor on the learning rate in step ``step``, counted from 0."""
        if self.schedule is None:
            return 1.0
        if isinstance(self.schedule, WarmupCosine):
            return self.schedule.factor(step, self.steps)
        return float(self.schedule(step))

    def check(self) -> None:
        """Refuse a job that cannot be run (CAP-1)."""
        # CAP-1: steps, shards and batch are positive, the batch is shared equally.
        if not isinstance(self.optimizer, AdamW | SGD):
            raise _wrong(
                f"the optimizer is a {type(self.optimizer).__name__}.",
                "use identic.AdamW or identic.SGD.",
            )
        if not isinstance(self.data, Windows | Rows):
            raise _wrong(
                f"the data is a {type(self.data).__name__}.", "use identic.Windows or identic.Rows."
            )
        if self.steps < 1:
            raise _wrong(f"the job has {self.steps} steps.", "give a whole number of at least 1.")
        if self.shards < 1 or self.data.batch % self.shards:
            raise _wrong(
                f"a batch of {self.data.batch} does not fall into {self.shards} equal shards.",
                "choose a batch that the number of shards divides.",
            )
        if not 0 <= self.seed < 1 << 64:
            raise _wrong(f"the seed is {self.seed}.", "choose one from 0 to 2**64 - 1.")
        if self.clip is not None and not self.clip > 0:
            raise _wrong(
                f"gradients are clipped to {self.clip}.", "clip to a positive length, or to None."
            )


def _wrong(problem: str, advice: str) -> CaptureError:
    return CaptureError("CAP-1", problem, advice=advice)
