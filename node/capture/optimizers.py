"""The update section: clipping, the optimizer, the running average, as instructions.

Spec: docs/spec/capture.md (CAP-11 to CAP-13, CAP-15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from identic.node.capture.job import TrainingJob
from identic.node.capture.schedule import Adam, Descent, Number, Schedule
from identic.node.capture.settings import Group
from identic.protocol.dtypes import DType
from identic.protocol.graph import Place
from identic.protocol.lowering import Builder
from identic.protocol.lowering.reductions import total
from identic.protocol.program.types import Variable

CLIP_EPSILON = 1e-6
"""Added to the norm before the division, as torch.nn.utils.clip_grad_norm_ does."""

SLOTS = {Adam: ("mean", "square"), Descent: ("momentum",)}
"""What is kept for each parameter."""


@dataclass
class Updated:
    """Values after the update, by name."""

    parameters: dict[str, int] = field(default_factory=dict)
    """Of the trained parameters."""
    optimizer: dict[str, int] = field(default_factory=dict)
    """Of the optimizer's variables, and of the averages under ``average.NAME``."""


@dataclass(frozen=True)
class Inputs:
    """Values before the update, by name.

    Attributes:
        parameters: trained parameters.
        gradients: theirs.
        optimizer: what the optimizer keeps; running averages under ``average.NAME``.
        schedule: the schedule table.
        context: the context of shard 0.
    """

    parameters: Mapping[str, int]
    gradients: Mapping[str, int]
    optimizer: Mapping[str, int]
    schedule: int
    context: int


class Update:
    """The update of a job's trained parameters."""

    def __init__(self, job: TrainingJob, groups: Sequence[Group]) -> None:
        self._job = job
        self._schedule = Schedule(job, groups)

    @property
    def table(self) -> NDArray[np.float32]:
        """The schedule: what varies by the step, shape (steps, columns)."""
        return self._schedule.table

    def variables(self, trained: Sequence[Variable]) -> tuple[Variable, ...]:
        """What the optimizer keeps, running averages aside."""
        rules = self._schedule.rules
        return tuple(
            Variable(f"{slot}.{v.name}", v.type)
            for slot in ("mean", "square", "momentum")
            for v in trained
            if slot in _slots(rules[v.name])
        )

    def build(self, builder: Builder, given: Inputs) -> Updated:
        """Append the update of the trained parameters."""
        builder.place = Place(module="schedule")
        writer = _Writer(builder, _columns(builder, given))
        grads = self._clipped(builder, given.gradients)
        updated = Updated()
        for name, p in given.parameters.items():
            builder.place = Place(module=f"optimizer.{name}")
            rule = self._schedule.rules[name]
            state = {s: given.optimizer[f"{s}.{name}"] for s in _slots(rule)}
            if isinstance(rule, Adam):
                updated.parameters[name] = writer.adam(rule, p, grads[name], state)
            else:
                updated.parameters[name] = writer.descent(rule, p, grads[name], state)
            updated.optimizer |= {f"{s}.{name}": value for s, value in state.items()}
        if self._schedule.average is not None:
            for name, p in updated.parameters.items():
                builder.place = Place(module=f"average.{name}")
                old = given.optimizer[f"average.{name}"]
                updated.optimizer[f"average.{name}"] = writer.average(
                    self._schedule.average, old, p
                )
        return updated

    def _clipped(self, b: Builder, gradients: Mapping[str, int]) -> dict[str, int]:
        """The gradients within the job's limits."""
        grads = dict(gradients)
        b.place = Place(module="clip")
        if self._job.clip_value is not None:
            # CAP-13: each element is kept between -limit and limit.
            low, high = (b.full(DType.FLOAT32, s * self._job.clip_value) for s in (-1.0, 1.0))
            grads = {
                n: b.emit("minimum", b.emit("maximum", g, low), high) for n, g in grads.items()
            }
        if self._job.clip is not None:
            factor = _clip_factor(b, list(grads.values()), self._job.clip)
            grads = {n: b.emit("mul", g, factor) for n, g in grads.items()}
        return grads


def _slots(rule: Adam | Descent) -> tuple[str, ...]:
    if isinstance(rule, Descent) and rule.momentum is None:
        return ()
    return SLOTS[type(rule)]


def _columns(b: Builder, given: Inputs) -> list[int]:
    """The scalars of this step's row of the schedule."""
    # CAP-12: the row is that of the step in the context.
    step = b.slice(given.context, 0, 4, 5)
    row = b.emit("take_rows", given.schedule, step)
    return [b.reshape(b.slice(row, 1, i, i + 1), ()) for i in range(b.shape(given.schedule)[1])]


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


class _Writer:
    """Writes one parameter's update; what the optimizer keeps is replaced in ``state``."""

    def __init__(self, builder: Builder, columns: Sequence[int]) -> None:
        self._b = builder
        self._columns = columns

    def _value(self, number: Number) -> int:
        if number.column is None:
            return self._b.full(DType.FLOAT32, number.value)
        return self._columns[number.column]

    def _product(self, number: Number, value: int) -> int:
        return self._b.emit("mul", self._value(number), value)

    def _gradient(self, rule: Adam | Descent, p: int, g: int) -> int:
        """The gradient, upwards where the loss is to grow, with the weight decay added to it."""
        b = self._b
        # CAP-11: -g; g + weight_decay*p.
        if rule.maximize:
            g = b.emit("neg", g)
        if rule.weight_decay is not None:
            g = b.emit("add", g, self._product(rule.weight_decay, p))
        return g

    def adam(self, rule: Adam, p: int, g: int, state: dict[str, int]) -> int:
        """The parameter after one step of Adam or AdamW."""
        # CAP-11: m + (g-m)*(1-b1); v*b2 + ((1-b2)*g)*g; p*decay + (rate*m)/(sqrt(v)/root + eps).
        b = self._b
        g = self._gradient(rule, p, g)
        m, v = state["mean"], state["square"]
        state["mean"] = m = b.emit(
            "add", m, b.emit("mul", b.emit("sub", g, m), self._value(rule.fresh1))
        )
        fresh = b.emit("mul", self._product(rule.fresh2, g), g)
        state["square"] = v = b.emit("add", b.emit("mul", v, self._value(rule.kept2)), fresh)
        root = b.emit("div", b.emit("sqrt", v), self._value(rule.root))
        size = b.emit("add", root, self._value(rule.eps))
        move = b.emit("div", self._product(rule.rate, m), size)
        kept = p if rule.decay is None else b.emit("mul", p, self._value(rule.decay))
        return b.emit("add", kept, move)

    def descent(self, rule: Descent, p: int, g: int, state: dict[str, int]) -> int:
        """The parameter after one step of gradient descent."""
        # CAP-11: momentum*buffer + fresh*g; g + momentum*buffer or buffer; p + rate*g.
        b = self._b
        g = self._gradient(rule, p, g)
        if rule.momentum is not None:
            new = g if rule.fresh is None else self._product(rule.fresh, g)
            buffer = b.emit("add", self._product(rule.momentum, state["momentum"]), new)
            state["momentum"] = buffer
            g = b.emit("add", g, self._product(rule.momentum, buffer)) if rule.nesterov else buffer
        return b.emit("add", p, self._product(rule.rate, g))

    def average(self, share: Number, old: int, p: int) -> int:
        """The running average after one step."""
        # CAP-15: average + (p - average) * (1 - decay).
        b = self._b
        return b.emit("add", old, b.emit("mul", b.emit("sub", p, old), self._value(share)))
