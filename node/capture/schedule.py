"""The schedule table, and the numbers of every update as constants or columns of it (CAP-12).

Everything that varies by the step is a column of one data tensor, computed on the submitter's
machine in binary64 and rounded to float32; nodes never evaluate a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from identic.node.capture.job import TrainingJob
from identic.node.capture.settings import Group, Kind, Values


@dataclass(frozen=True)
class Number:
    """A number of the update: the same in every step, or a column of the schedule."""

    value: float
    column: int | None = None


@dataclass(frozen=True)
class Descent:
    """Numbers of SGD (CAP-11); None leaves an operation out."""

    rate: Number
    momentum: Number | None
    fresh: Number | None
    """Share of the gradient that enters the momentum."""
    weight_decay: Number | None
    nesterov: bool
    maximize: bool


@dataclass(frozen=True)
class Adam:
    """Numbers of Adam and AdamW (CAP-11); None leaves an operation out."""

    decay: Number | None
    """Factor on the parameter: decoupled weight decay."""
    rate: Number
    root: Number
    fresh1: Number
    """Share of the gradient that enters the mean."""
    kept2: Number
    fresh2: Number
    eps: Number
    weight_decay: Number | None
    """Added to the gradient."""
    maximize: bool


class Schedule:
    """The table under construction, and what reads it.

    Attributes:
        rules: update of each trained parameter, by its name.
        average: share of the weights that enters their running average, if one is kept.
    """

    def __init__(self, job: TrainingJob, groups: Sequence[Group]) -> None:
        self._columns: list[Values] = []
        self._steps = job.steps
        self.rules: dict[str, Descent | Adam] = {}
        for group in groups:
            rule = self._descent(group) if group.kind is Kind.SGD else self._adam(group)
            self.rules.update(dict.fromkeys(group.names, rule))
        self.average: Number | None = None
        if job.average is not None:
            decays = [job.average.at(step) for step in range(job.steps)]
            self.average = self._number([1 - d for d in decays])

    @property
    def table(self) -> NDArray[np.float32]:
        """What varies by the step, shape (steps, columns)."""
        rows = np.array(self._columns, dtype=np.float64).reshape(-1, self._steps).T
        return np.ascontiguousarray(rows.astype(np.float32))

    def _column(self, values: Sequence[float]) -> Number:
        """A number that is always a column."""
        self._columns.append(tuple(values))
        return Number(values[0], len(self._columns) - 1)

    def _number(self, values: Sequence[float]) -> Number:
        """A constant if the number is the same in every step, else a column."""
        return Number(values[0]) if len(set(values)) == 1 else self._column(values)

    def _optional(self, values: Sequence[float]) -> Number | None:
        """A number, or None if it is always 0."""
        return self._number(values) if any(values) else None

    def _descent(self, group: Group) -> Descent:
        n = group.numbers
        # CAP-12: the column of SGD is -lr.
        rate = self._column([-lr for lr in n["lr"]])
        momentum, fresh = self._optional(n["momentum"]), None
        if momentum is not None and any(n["dampening"]):
            # CAP-12: the first gradient enters the momentum whole.
            shares = [1 - d for d in n["dampening"]]
            fresh = self._number(shares if group.taken else [1.0, *shares[1:]])
        decay = self._optional(n["weight_decay"])
        return Descent(rate, momentum, fresh, decay, group.nesterov, group.maximize)

    def _adam(self, group: Group) -> Adam:
        n = group.numbers
        first, second = _corrections(n["beta1"], group.taken), _corrections(n["beta2"], group.taken)
        decay = None
        # CAP-12: the columns of AdamW are 1 - lr*weight_decay, -lr/(1-b1^t), sqrt(1-b2^t).
        if group.decoupled:
            pairs = zip(n["lr"], n["weight_decay"], strict=True)
            decay = self._column([1 - lr * wd for lr, wd in pairs])
        rate = self._column([-lr / c for lr, c in zip(n["lr"], first, strict=True)])
        root = self._column([math.sqrt(c) for c in second])
        return Adam(
            decay,
            rate,
            root,
            self._number([1 - b for b in n["beta1"]]),
            self._number(n["beta2"]),
            self._number([1 - b for b in n["beta2"]]),
            self._number(n["eps"]),
            None if group.decoupled else self._optional(n["weight_decay"]),
            group.maximize,
        )


def _corrections(betas: Values, taken: int) -> list[float]:
    """``1 - beta**t`` for each step, t counted from 1, after ``taken`` earlier steps."""
    if len(set(betas)) > 1:
        return [1 - _power(beta, taken + t) for t, beta in enumerate(betas, start=1)]
    power, found = 1.0, []
    for t in range(1, taken + len(betas) + 1):
        power *= betas[0]
        if t > taken:
            found.append(1 - power)
    return found


def _power(base: float, exponent: int) -> float:
    """``base**exponent`` by squaring: products alone, so that every machine rounds alike."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base, exponent = base * base, exponent >> 1
    return result
