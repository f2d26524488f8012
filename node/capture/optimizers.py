"""The update section: clipping and the optimizer, built as instructions (CAP-11, CAP-12).

Everything that varies by the step is a row of the schedule table, a data tensor computed
once on the client in binary64 and rounded to float32; nodes never evaluate a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from identic.node.capture.job import AdamW, TrainingJob
from identic.protocol.dtypes import DType
from identic.protocol.graph import Place
from identic.protocol.lowering import Builder
from identic.protocol.lowering.reductions import total
from identic.protocol.program.types import Variable

CLIP_EPSILON = 1e-6
"""Added to the norm before the division, as torch.nn.utils.clip_grad_norm_ does."""


def schedule_table(job: TrainingJob) -> NDArray[np.float32]:
    """What varies by the step, shape (steps, columns).

    AdamW: ``1 - lr * weight_decay``, ``-lr / (1 - beta1**t)``, ``sqrt(1 - beta2**t)`` with t
    counted from 1. SGD: ``-lr``.
    """
    rows: list[list[float]] = []
    first = second = 1.0
    for step in range(job.steps):
        lr = job.optimizer.lr * job.factor(step)
        if isinstance(job.optimizer, AdamW):
            first *= job.optimizer.betas[0]
            second *= job.optimizer.betas[1]
            decay = 1 - lr * job.optimizer.weight_decay
            rows.append([decay, -lr / (1 - first), math.sqrt(1 - second)])
        else:
            rows.append([-lr])
    return np.array(rows, dtype=np.float64).astype(np.float32)


def state_variables(job: TrainingJob, trained: Sequence[Variable]) -> tuple[Variable, ...]:
    """What the optimizer keeps, all zero before the first step."""
    if isinstance(job.optimizer, AdamW):
        return tuple(
            Variable(f"{kind}.{v.name}", v.type) for kind in ("mean", "square") for v in trained
        )
    if job.optimizer.momentum:
        return tuple(Variable(f"momentum.{v.name}", v.type) for v in trained)
    return ()


@dataclass(frozen=True)
class Updated:
    """Values after the update."""

    parameters: list[int]
    """Of the trained parameters, in their order."""
    optimizer: list[int]


def build_update(
    builder: Builder,
    job: TrainingJob,
    names: Sequence[str],
    parameters: Sequence[int],
    gradients: Sequence[int],
    optimizer: Sequence[int],
    schedule: int,
    context: int,
) -> Updated:
    """Append the update of the trained parameters.

    Args:
        builder: the update section.
        job: optimizer and clipping.
        names: of the trained parameters.
        parameters: their values.
        gradients: their gradients.
        optimizer: state, in the order of ``state_variables``.
        schedule: the schedule table.
        context: the context of shard 0.
    """
    builder.place = Place(module="schedule")
    columns = _columns(builder, schedule, context)
    grads = list(gradients)
    if job.clip is not None:
        builder.place = Place(module="clip")
        factor = _clip_factor(builder, grads, job.clip)
        grads = [builder.emit("mul", g, factor) for g in grads]
    updated = Updated([], [])
    count = len(names)
    squares: list[int] = []
    for i, name in enumerate(names):
        builder.place = Place(module=f"optimizer.{name}")
        if isinstance(job.optimizer, AdamW):
            state = (optimizer[i], optimizer[count + i])
            new, m, v = _adamw(builder, job.optimizer, parameters[i], grads[i], state, columns)
            updated.optimizer.append(m)
            squares.append(v)
        else:
            velocity = optimizer[i] if optimizer else None
            new, velocity = _sgd(builder, job, parameters[i], grads[i], velocity, columns[0])
            if velocity is not None:
                updated.optimizer.append(velocity)
        updated.parameters.append(new)
    updated.optimizer.extend(squares)
    return updated


def _columns(b: Builder, schedule: int, context: int) -> list[int]:
    """The scalars of this step's row of the schedule."""
    # CAP-12: the row is that of the step in the context.
    step = b.slice(context, 0, 4, 5)
    row = b.emit("take_rows", schedule, step)
    return [b.reshape(b.slice(row, 1, i, i + 1), ()) for i in range(b.shape(schedule)[1])]


def _clip_factor(b: Builder, gradients: Sequence[int], limit: float) -> int:
    """min(limit / (norm + 1e-6), 1) with the norm of all gradients as one vector."""
    # CAP-13: squares are summed over the last axis, then over what is left, then over tensors.
    sums = []
    for gradient in gradients:
        squares = b.emit("mul", gradient, gradient)
        shape = b.shape(squares)
        if len(shape) > 1:
            squares = total(b, squares, [len(shape) - 1])
        rest = len(b.shape(squares))
        sums.append(b.reshape(total(b, squares, list(range(rest))) if rest else squares, (1,)))
    norm = b.emit("sqrt", b.emit("sum_last", b.concat(sums, 0)))
    room = b.emit("add", norm, b.full(DType.FLOAT32, CLIP_EPSILON))
    ratio = b.emit("div", b.full(DType.FLOAT32, limit), room)
    return b.emit("minimum", ratio, b.full(DType.FLOAT32, 1.0))


def _adamw(
    b: Builder, o: AdamW, p: int, g: int, state: tuple[int, int], columns: Sequence[int]
) -> tuple[int, int, int]:
    """Parameter, mean and square after one step of AdamW."""
    # CAP-11: p*decay; m + (g-m)*(1-b1); v*b2 + ((1-b2)*g)*g; p + (rate*m) / (sqrt(v)/root + eps).
    decay, rate, root = columns
    m, v = state
    one, two = o.betas
    m = b.emit("add", m, b.emit("mul", b.emit("sub", g, m), b.full(DType.FLOAT32, 1 - one)))
    fresh = b.emit("mul", b.emit("mul", b.full(DType.FLOAT32, 1 - two), g), g)
    v = b.emit("add", b.emit("mul", v, b.full(DType.FLOAT32, two)), fresh)
    size = b.emit("add", b.emit("div", b.emit("sqrt", v), root), b.full(DType.FLOAT32, o.eps))
    move = b.emit("div", b.emit("mul", rate, m), size)
    return b.emit("add", b.emit("mul", p, decay), move), m, v


def _sgd(
    b: Builder, job: TrainingJob, p: int, g: int, velocity: int | None, rate: int
) -> tuple[int, int | None]:
    """Parameter and running gradient after one step of gradient descent."""
    # CAP-11: g + decay*p; momentum*buffer + g; p + rate*buffer.
    if job.optimizer.weight_decay:
        g = b.emit("add", g, b.emit("mul", b.full(DType.FLOAT32, job.optimizer.weight_decay), p))
    if velocity is not None and not isinstance(job.optimizer, AdamW):
        velocity = b.emit(
            "add", b.emit("mul", b.full(DType.FLOAT32, job.optimizer.momentum), velocity), g
        )
        g = velocity
    return b.emit("add", p, b.emit("mul", rate, g)), velocity
