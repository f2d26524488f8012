"""What each group of parameters is trained with, in each step (CAP-11, CAP-12).

The job's optimizer, one of ours or one of torch's, becomes groups of parameters with numbers
for every step: torch's schedulers are stepped through the whole run here, on the submitter's
machine, and put back where they stood.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from identic.node.capture.job import SGD, AdamW, TrainingJob
from identic.protocol.lowering import CaptureError

Array = NDArray[Any]
Values = tuple[float, ...]
"""A setting in every step of the job."""


class Kind(Enum):
    """How a parameter is updated."""

    SGD = "SGD"
    ADAM = "Adam"


SETTINGS = {
    Kind.SGD: ("lr", "weight_decay", "momentum", "dampening"),
    Kind.ADAM: ("lr", "weight_decay", "beta1", "beta2", "eps"),
}
"""Numbers of a group, by the names that torch gives them."""

KEPT = {
    Kind.SGD: {"momentum": "momentum_buffer"},
    Kind.ADAM: {"mean": "exp_avg", "square": "exp_avg_sq"},
}
"""What an optimizer keeps for a parameter: our word, and torch's."""


@dataclass(frozen=True)
class Group:
    """Parameters that are updated in the same way.

    Attributes:
        kind: SGD or Adam.
        names: of its trained parameters.
        numbers: each setting of ``SETTINGS[kind]`` in every step.
        decoupled: whether weight decay is taken off the parameter, not added to its gradient.
        nesterov: whether SGD looks ahead along its momentum.
        maximize: whether the loss is to grow.
        taken: steps that the optimizer had taken before the job.
    """

    kind: Kind
    names: tuple[str, ...]
    numbers: Mapping[str, Values]
    decoupled: bool = False
    nesterov: bool = False
    maximize: bool = False
    taken: int = 0


def label(job: TrainingJob) -> str:
    """The optimizer in words, such as ``AdamW, 2 groups``."""
    name = type(job.optimizer).__name__
    count = len(getattr(job.optimizer, "param_groups", [None]))
    return name if count == 1 else f"{name}, {count} groups"


def kind_of(job: TrainingJob) -> Kind:
    """How the job's optimizer updates parameters."""
    if isinstance(job.optimizer, AdamW | SGD):
        return Kind.ADAM if isinstance(job.optimizer, AdamW) else Kind.SGD
    return _kind(job.optimizer)


def optimized(job: TrainingJob, parameters: Mapping[str, torch.Tensor]) -> frozenset[str]:
    """Names of the parameters that the job's optimizer updates.

    Raises:
        CaptureError: the optimizer has another model's parameters (CAP-1).
    """
    if isinstance(job.optimizer, AdamW | SGD):
        return frozenset(parameters)
    known = {id(p): n for n, p in parameters.items()}
    for number, group in enumerate(job.optimizer.param_groups):
        for p in group["params"]:
            # CAP-1: a torch optimizer holds parameters of the model it trains.
            if id(p) not in known:
                raise _refused(
                    job,
                    f"group {number} has a parameter of shape {list(p.shape)} that is not the "
                    "model's.",
                    "make the optimizer from model.parameters() of the job's own model.",
                )
    return frozenset(known[id(p)] for g in job.optimizer.param_groups for p in g["params"])


def groups(job: TrainingJob, trained: Mapping[str, torch.Tensor], taken: int = 0) -> list[Group]:
    """The groups of the job's trained parameters.

    Args:
        job: the job.
        trained: parameters by name, in the model's order.
        taken: steps taken before the job, for an optimizer that does not know.

    Raises:
        CaptureError: the optimizer or a scheduler has an option without a rule (CAP-11, CAP-12).
    """
    if isinstance(job.optimizer, AdamW | SGD):
        return [_own(job, job.optimizer, tuple(trained), taken)]
    _check_optimizer(job, job.optimizer)
    rows = _by_step(job, job.optimizer)
    names = {id(p): n for n, p in trained.items()}
    found = []
    for number, group in enumerate(job.optimizer.param_groups):
        chosen = tuple(names[id(p)] for p in group["params"] if id(p) in names)
        if chosen:
            steps = [row[number] for row in rows]
            found.append(_torchs(job, job.optimizer, number, chosen, steps, taken))
    return found


def kept_state(job: TrainingJob, trained: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    """What a torch optimizer that has taken steps keeps, as ``mean.NAME`` and so on."""
    found: dict[str, Array] = {}
    if isinstance(job.optimizer, AdamW | SGD):
        return found
    for word, theirs in KEPT[_kind(job.optimizer)].items():
        for name, p in trained.items():
            value = job.optimizer.state.get(p, {}).get(theirs)
            if value is not None:
                found[f"{word}.{name}"] = np.array(value.detach().cpu().numpy(), np.float32)
    return found


# ---- our own optimizers ---------------------------------------------------------------------


def _own(job: TrainingJob, o: AdamW | SGD, names: tuple[str, ...], taken: int) -> Group:
    rates = tuple(o.lr * job.factor(step) for step in range(job.steps))

    def constant(value: float) -> Values:
        return (value,) * job.steps

    numbers = {"lr": rates, "weight_decay": constant(o.weight_decay)}
    if isinstance(job.schedule, LRScheduler | Sequence):
        raise CaptureError(
            "CAP-12",
            f"schedulers of torch cannot drive identic.{type(o).__name__}.",
            advice="give the torch.optim optimizer that the scheduler was made with.",
        )
    if isinstance(o, AdamW):
        numbers |= {"beta1": constant(o.betas[0]), "beta2": constant(o.betas[1])}
        numbers |= {"eps": constant(o.eps)}
        return Group(Kind.ADAM, names, numbers, decoupled=True, taken=taken)
    numbers |= {"momentum": constant(o.momentum), "dampening": constant(0.0)}
    return Group(Kind.SGD, names, numbers, taken=taken)


# ---- torch's optimizers ---------------------------------------------------------------------

_REFUSED = {
    "amsgrad": "leave amsgrad out: the largest second mean so far has no rule.",
    "differentiable": "leave differentiable out: no gradient goes through the update.",
}


def _kind(optimizer: torch.optim.Optimizer) -> Kind:
    return Kind.SGD if type(optimizer) is torch.optim.SGD else Kind.ADAM


def _refused(job: TrainingJob, problem: str, advice: str, rule: str = "CAP-1") -> CaptureError:
    name = type(job.optimizer).__name__
    return CaptureError(rule, f"torch.optim.{name}: {problem}", advice=advice)


def _check_optimizer(job: TrainingJob, o: torch.optim.Optimizer) -> None:
    """Refuse optimizers and options without a sequence of operations."""
    # CAP-11: the optimizer is one whose update has a fixed sequence, without subclasses.
    if type(o) not in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        raise CaptureError(
            "CAP-11",
            f"the update of {type(o).__module__}.{type(o).__name__} has no rule.",
            advice="use SGD, Adam or AdamW of torch.optim.",
        )
    hooks = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    # CAP-2: nothing outside the sequence changes an update.
    if any(getattr(o, name, None) for name in hooks):
        raise _refused(
            job, "a step hook is registered.", "a program would not run it; leave it out.", "CAP-2"
        )
    for number, group in enumerate(o.param_groups):
        for option, advice in _REFUSED.items():
            # CAP-11: an option without a rule is refused by name.
            if group.get(option):
                raise _refused(job, f"{option} is set in group {number}.", advice, "CAP-11")


def _torchs(
    job: TrainingJob,
    optimizer: torch.optim.Optimizer,
    number: int,
    names: tuple[str, ...],
    steps: Sequence[Mapping[str, float]],
    taken: int,
) -> Group:
    kind, group = _kind(optimizer), optimizer.param_groups[number]
    numbers = {name: tuple(row[name] for row in steps) for name in SETTINGS[kind]}
    decoupled = type(optimizer) is torch.optim.AdamW or group.get("decoupled_weight_decay", False)
    return Group(
        kind,
        names,
        numbers,
        decoupled=bool(decoupled) and kind is Kind.ADAM,
        nesterov=bool(group.get("nesterov", False)),
        maximize=bool(group["maximize"]),
        taken=_taken(job, optimizer, number, names) or taken,
    )


def _taken(
    job: TrainingJob, optimizer: torch.optim.Optimizer, number: int, names: tuple[str, ...]
) -> int:
    """Steps that an optimizer has taken with the trained parameters of a group."""
    group = optimizer.param_groups[number]
    states = [optimizer.state.get(p, {}) for p in group["params"] if p.requires_grad]
    if _kind(optimizer) is Kind.SGD:
        return int(any(s.get("momentum_buffer") is not None for s in states))
    counts = {int(s["step"]) if "step" in s else 0 for s in states}
    # CAP-12: the parameters of a group have taken the same number of steps.
    if len(counts) > 1:
        raise _refused(
            job,
            f"parameters of group {number} have taken {sorted(counts)} steps.",
            f"put {names[0]} and those that began with it into a group of their own.",
            "CAP-12",
        )
    return counts.pop() if counts else 0


def _settings(kind: Kind, group: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a group as they stand."""
    flat = dict(group)
    if kind is Kind.ADAM:
        flat["beta1"], flat["beta2"] = group["betas"]
    return {name: float(flat[name]) for name in SETTINGS[kind]}


def _by_step(job: TrainingJob, optimizer: torch.optim.Optimizer) -> list[list[dict[str, float]]]:
    """The numbers of every group in every step."""
    kind, schedulers = _kind(optimizer), _schedulers(job, optimizer)
    rows = []
    with _restored(optimizer, schedulers), warnings.catch_warnings():
        # Schedulers warn when they move without the optimizer, and about their own arguments.
        warnings.simplefilter("ignore")
        for step in range(job.steps):
            if step and step % job.schedule_every == 0:
                _advance(schedulers)
            row = [_settings(kind, group) for group in optimizer.param_groups]
            rows.append([{**s, "lr": s["lr"] * job.factor(step)} for s in row])
    return rows


def _schedulers(job: TrainingJob, optimizer: torch.optim.Optimizer) -> list[LRScheduler]:
    if not isinstance(job.schedule, LRScheduler | Sequence):
        return []
    found = [job.schedule] if isinstance(job.schedule, LRScheduler) else list(job.schedule)
    for scheduler in found:
        name = type(scheduler).__name__
        # CAP-12: a schedule is a function of the step alone.
        if any(isinstance(s, ReduceLROnPlateau) for s in (scheduler, *_inner(scheduler))):
            raise CaptureError(
                "CAP-12",
                f"{name} follows a metric of the run.",
                advice="choose a schedule of the step, such as CosineAnnealingLR or OneCycleLR.",
            )
        if getattr(scheduler, "optimizer", None) is not optimizer:
            raise CaptureError(
                "CAP-12",
                f"{name} drives another optimizer than the job's.",
                advice="give the optimizer that the scheduler was made with.",
            )
    return found


def _inner(scheduler: LRScheduler) -> Iterator[LRScheduler]:
    """The schedulers that a scheduler is made of."""
    for inner in getattr(scheduler, "_schedulers", ()):
        yield inner
        yield from _inner(inner)


def _advance(schedulers: Sequence[LRScheduler]) -> None:
    for scheduler in schedulers:
        try:
            scheduler.step()
        except (TypeError, ValueError) as error:
            # CAP-12: a schedule needs nothing but the step, and lasts for the whole job.
            raise CaptureError(
                "CAP-12",
                f"{type(scheduler).__name__} cannot be stepped: {error}",
                advice="choose a scheduler whose step() needs nothing, for as many steps.",
            ) from error


@contextmanager
def _restored(
    optimizer: torch.optim.Optimizer, schedulers: Sequence[LRScheduler]
) -> Iterator[None]:
    """Put an optimizer's groups and its schedulers back at the end."""
    every = [s for scheduler in schedulers for s in (scheduler, *_inner(scheduler))]
    before = [dict(s.__dict__) for s in every]
    groups = [{k: _copied(v) for k, v in g.items() if k != "params"} for g in _groups(optimizer)]
    try:
        yield
    finally:
        for scheduler, values in zip(every, before, strict=True):
            scheduler.__dict__.clear()
            scheduler.__dict__.update(values)
        for group, values in zip(_groups(optimizer), groups, strict=True):
            for name, value in values.items():
                if isinstance(group[name], torch.Tensor) and isinstance(value, torch.Tensor):
                    group[name].copy_(value)
                else:
                    group[name] = value


def _groups(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    return optimizer.param_groups


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
