"""One step of a captured program beside the same step in torch (CAP-14).

The comparison is made on the submitter's machine before a job is posted. It shows that the
program is the user's step, not that any machine computes it; what it establishes:

1. on the same batch and the same random numbers, loss and gradients of every shard agree;
2. buffers after the step agree;
3. given these gradients, the parameters after the step, and what the optimizer keeps, are
   those of torch's optimizer.

Agreement means float32 rounding: the sums of the two sides run in different orders. A step may
make much of little, as where a rectifier's operand is almost zero and rounding decides its sign;
then torch itself says how much, by what a change of the parameters' last places does to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import TorchDispatchMode

from identic.kernels.backend import Backend
from identic.kernels.executor import Executor
from identic.node.capture.attributes import restored
from identic.node.capture.checked import CheckedJob
from identic.node.capture.job import SGD, AdamW, TrainingJob
from identic.node.capture.program import Captured
from identic.node.capture.randomness import Randomness
from identic.node.capture.settings import KEPT, Kind, kind_of
from identic.node.capture.tracing import math_attention, uncompiled
from identic.protocol.lowering import CaptureError
from identic.protocol.program.context import context
from identic.protocol.program.plan import Part, StepPlan
from identic.protocol.program.unroll import unroll

Array = NDArray[Any]

WITHIN_TENSOR = 1e-3
"""Largest difference allowed, as a share of the largest number of the tensor."""
WITHIN_ALL = 1e-5
"""Added: a share of the largest number of all gradients, for tensors that are rounding alone."""
UNSTEADY = 4.0
"""Or this many times the share that last places of the parameters change in torch."""
NUDGES = 8
"""Most steps of torch with last places changed."""
LAST_PLACES = 4
"""By so many units of the last place a parameter's numbers are changed, up or down."""
WITHIN_PARAMETER = 1e-6
"""Added for parameters after the step: a share of the largest parameter."""


@dataclass(frozen=True)
class Comparison:
    """What the two sides computed."""

    loss: float
    """Of the program, the mean over the shards."""
    eager_loss: float
    difference: float
    """Largest difference between any two numbers of loss, gradients, buffers and parameters."""
    at: str
    """Where that is, such as ``gradient of blocks.0.norm1.bias``."""

    def __str__(self) -> str:
        return (
            f"one step against torch eager: loss {self.loss:.4f} = {self.eager_loss:.4f}, "
            f"largest difference {self.difference:.1e} (float32 rounding)"
        )


def check_against_eager(
    captured: Captured, job: TrainingJob, backend: Backend | None = None
) -> Comparison:
    """Run the first step of the program and of torch, and compare them.

    Args:
        captured: what ``capture(job)`` gave.
        job: the job.
        backend: what runs the program; this machine's CPU when it is left out.

    Raises:
        CaptureError: the two differ by more than rounding (CAP-14).
    """
    if backend is None:
        from identic.kernels.cpu_backend import CpuBackend  # noqa: PLC0415 - needs compiled code

        backend = CpuBackend()
    checked = captured.checked
    plan = unroll(captured.program)
    seen = _Watch(captured, plan)
    after = Executor(plan, backend).step(captured.state, captured.data, job.seed, 0, seen)
    tally = _Tally()
    eager = [_eager_shard(captured, checked, shard) for shard in range(job.shards)]
    scale = max((float(g.abs().max()) for e in eager for g in e.gradients if g.numel()), default=0)
    for shard, torchs in enumerate(eager):
        program, unsteady = seen.shard(shard), _Unsteady(captured, checked, shard, torchs)
        tally.compare("loss", program[0], torchs.loss, scale)
        for name, ours, theirs in zip(checked.trained, program[1:], torchs.gradients, strict=False):
            tally.compare(f"gradient of {name}", ours, theirs, scale, unsteady)
    if job.shards == 1:
        _compare_buffers(tally, captured, after, eager[0].buffers)
    _compare_update(tally, captured, checked, seen.reduced(), after)
    mean = sum(float(e.loss) for e in eager) / job.shards
    return Comparison(float(after[-1]), mean, tally.largest, tally.at)


class _Watch:
    """Keeps the values of loss and gradients while the executor runs."""

    def __init__(self, captured: Captured, plan: StepPlan) -> None:
        program = captured.program
        section = program.gradient
        inputs, count = len(section.inputs), len(section.instructions)
        self._numbers = [
            [len(plan.loads) + shard * count + int(o) - inputs for o in section.outputs]
            for shard in range(program.shards)
        ]
        products = [
            len(plan.loads) + i
            for i, c in enumerate(plan.calls)
            if c.part is Part.REDUCTION and c.call.op.name == "mul"
        ]
        self._reduced = (products if program.shards > 1 else self._numbers[0])[
            1 : 1 + len(program.trainable)
        ]
        self._wanted = {n for shard in self._numbers for n in shard} | set(self._reduced)
        self._arrays: dict[int, Array] = {}

    def __call__(self, value: int, array: Array) -> Array:
        """Called by the executor for every value."""
        if value in self._wanted:
            self._arrays[value] = np.array(array)
        return array

    def shard(self, shard: int) -> list[Array]:
        """Loss and gradients of one shard."""
        return [self._arrays[n] for n in self._numbers[shard] if n in self._arrays]

    def reduced(self) -> list[Array]:
        """Gradients over all shards."""
        return [self._arrays[n] for n in self._reduced]


@dataclass(frozen=True)
class _Eager:
    """One shard's step in torch."""

    loss: torch.Tensor
    gradients: list[torch.Tensor]
    buffers: dict[str, torch.Tensor]


class StepRandomness(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Random operations of torch draw the step's numbers, in the order of tracing."""

    def __init__(self, context: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._randomness = Randomness()
        self._table = self._randomness.table()
        self._context = context
        self._run = ExitStack()

    def __enter__(self) -> Self:
        """Begin the step."""
        self._run.enter_context(self._randomness.run(self._context))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        """End the step."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._run.close()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Replace random operations and let the others pass."""
        del types
        chosen: Callable[..., Any] = self._table.get(func, func)
        return chosen(*args, **(kwargs or {}))


def _eager_shard(
    captured: Captured, checked: CheckedJob, shard: int, nudge: int | None = None
) -> _Eager:
    """Loss, gradients and buffers of one shard, by torch; with ``nudge`` from other last places."""
    job = checked.job
    words = context(job.seed, 0, shard)
    seeds = torch.tensor(words, dtype=torch.int64)
    program = captured.program
    arrays = dict(zip((v.name for v in program.data), captured.data, strict=True))
    for i, v in enumerate(program.buffers, start=len(program.parameters)):
        arrays[f"buffer.{v.name}"] = captured.state[i]
    given = [*captured.state[: len(checked.parameters)]]
    if nudge is not None:
        given = [_nudged(a, nudge, i) for i, a in enumerate(given)]
    given += [arrays[f"buffer.{n}"] for n in checked.buffers]
    given += job.data.batch_of(words, job.shards)
    tensors = [torch.from_numpy(np.array(a)) for a in given]
    step = checked.step()
    with restored(checked.model), uncompiled(), math_attention():
        if captured.random:
            with StepRandomness(seeds):
                loss, *rest = step(seeds, *tensors)
        else:
            loss, *rest = step(seeds, *tensors)
    split = len(checked.trained)
    buffers = dict(zip(checked.buffers, rest[split:], strict=True))
    return _Eager(loss, list(rest[:split]), buffers)


def _nudged(array: Array, nudge: int, number: int) -> Array:
    """Float32 numbers with their last places changed, up or down at random."""
    places = np.random.default_rng((nudge, number)).choice([-LAST_PLACES, LAST_PLACES], array.shape)
    return np.asarray(array + places * np.spacing(np.abs(array)), array.dtype)


class _Unsteady:
    """What the last places of the parameters decide in torch, as a share of a gradient's size."""

    def __init__(self, captured: Captured, checked: CheckedJob, shard: int, eager: _Eager) -> None:
        self._run = (captured, checked, shard)
        self._eager = eager
        self._runs = 0
        self._share = 0.0

    def share(self, wanted: float) -> float:
        """The largest share found, after as many steps as it takes to find ``wanted``."""
        while self._share < wanted and self._runs < NUDGES:
            other = _eager_shard(*self._run, nudge=self._runs)
            self._runs += 1
            for one, moved in zip(self._eager.gradients, other.gradients, strict=True):
                size = float(one.abs().max()) if one.numel() else 0.0
                if size > 0:
                    self._share = max(self._share, float((moved - one).abs().max()) / size)
        return self._share


class _Tally:
    """The largest difference so far."""

    def __init__(self) -> None:
        self.largest = 0.0
        self.at = "nothing"

    def compare(
        self,
        name: str,
        ours: Array,
        theirs: torch.Tensor,
        scale: float,
        unsteady: _Unsteady | None = None,
    ) -> None:
        """Compare tensors whose numbers are sums of numbers of size ``scale``."""
        size = float(theirs.abs().max()) if theirs.numel() else 0.0
        limit = WITHIN_TENSOR * size + WITHIN_ALL * scale
        difference = _difference(ours, theirs)
        if unsteady is not None and size > 0 and limit < difference < np.inf:
            limit = max(limit, UNSTEADY * size * unsteady.share(difference / (UNSTEADY * size)))
        self.within(name, ours, theirs, limit)

    def step(self, name: str, ours: Array, theirs: torch.Tensor, before: torch.Tensor) -> None:
        """Compare tensors that a step moved away from ``before``."""
        if before.numel():
            share = WITHIN_TENSOR * float((theirs - before).abs().max())
            limit = WITHIN_PARAMETER * float(before.abs().max()) + share
            self.within(name, ours, theirs, limit)

    def within(self, name: str, ours: Array, theirs: torch.Tensor, limit: float) -> None:
        """Refuse two tensors with numbers further apart than ``limit``."""
        if not ours.size:
            return
        difference = _difference(ours, theirs)
        # CAP-14: program and torch agree within rounding.
        if not difference <= limit:
            raise CaptureError(
                "CAP-14",
                f"{name}: the program and torch differ by {difference:.2g}, "
                f"more than rounding explains ({limit:.2g}).",
                advice="the step may depend on something outside the batch; please report the job.",
            )
        if difference >= self.largest:
            self.largest, self.at = difference, name


def _difference(ours: Array, theirs: torch.Tensor) -> float:
    """Largest difference between two numbers of the same place; NaN is like NaN."""
    one = np.asarray(ours, dtype=np.float64)
    other = theirs.detach().double().numpy()
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    return float(np.max(np.where(alike, 0.0, np.abs(one - other)), initial=0.0))


def _compare_buffers(
    tally: _Tally, captured: Captured, after: Sequence[Array], buffers: Mapping[str, torch.Tensor]
) -> None:
    """Buffers that the step writes."""
    first = len(captured.program.parameters)
    for i, variable in enumerate(captured.program.buffers):
        tally.compare(f"buffer {variable.name}", after[first + i], buffers[variable.name], 0.0)


def _compare_update(
    tally: _Tally,
    captured: Captured,
    checked: CheckedJob,
    gradients: Sequence[Array],
    after: Sequence[Array],
) -> None:
    """The state after the step, beside torch's optimizer given the program's gradients."""
    job, program = checked.job, captured.program
    names = list(checked.parameters)
    old = {n: torch.from_numpy(np.array(a)) for n, a in zip(names, captured.state, strict=False)}
    new = {n: old[n].clone().requires_grad_() for n in checked.trained}
    for parameter, gradient in zip(new.values(), gradients, strict=True):
        parameter.grad = torch.from_numpy(np.array(gradient))
    if job.clip_value is not None:
        torch.nn.utils.clip_grad_value_(new.values(), job.clip_value)
    if job.clip is not None:
        torch.nn.utils.clip_grad_norm_(new.values(), job.clip)
    optimizer = twin(captured, new)
    optimizer.step()
    for name, ours in zip(names, after, strict=False):
        if name in new:
            tally.step(f"parameter {name}", ours, new[name].detach(), old[name])
    kept = {v.name: a for v, a in zip(program.state, after, strict=True)}
    for name, p in new.items():
        for word, theirs in KEPT[kind_of(job)].items():
            if f"{word}.{name}" in kept:
                value = optimizer.state[p][theirs]
                tally.compare(f"{word} of {name}", kept[f"{word}.{name}"], value, 0.0)
    _compare_averages(tally, captured, after, old, new)


def _compare_averages(
    tally: _Tally,
    captured: Captured,
    after: Sequence[Array],
    old: Mapping[str, torch.Tensor],
    new: Mapping[str, torch.Tensor],
) -> None:
    """Running averages after the step."""
    average = captured.checked.job.average
    if average is None:
        return
    kept = {v.name: a for v, a in zip(captured.program.state, after, strict=True)}
    for name, p in new.items():
        want = old[name].lerp(p.detach(), 1 - average.at(0))
        ours = kept[name if average.model_file else f"average.{name}"]
        tally.step(f"average of {name}", ours, want, old[name])


def twin(captured: Captured, parameters: Mapping[str, torch.Tensor]) -> torch.optim.Optimizer:
    """Torch's optimizer of the job over other tensors, as it stands before the first step."""
    checked = captured.checked
    optimizer = _optimizer(checked, parameters)
    kept = {v.name: a for v, a in zip(captured.program.state, captured.state, strict=True)}
    for group in checked.groups():
        for name in group.names if group.taken else ():
            state = {
                theirs: torch.from_numpy(np.array(kept[f"{word}.{name}"]))
                for word, theirs in KEPT[group.kind].items()
                if f"{word}.{name}" in kept
            }
            if group.kind is Kind.ADAM:
                state["step"] = torch.tensor(float(group.taken))
            optimizer.state[parameters[name]] = state
    return optimizer


def _optimizer(
    checked: CheckedJob, parameters: Mapping[str, torch.Tensor]
) -> torch.optim.Optimizer:
    """Torch's optimizer of the job over other tensors, with the numbers of the first step."""
    job, o = checked.job, checked.job.optimizer
    factor = job.factor(0)
    if isinstance(o, AdamW):
        return torch.optim.AdamW(
            parameters.values(),
            lr=o.lr * factor,
            betas=o.betas,
            eps=o.eps,
            weight_decay=o.weight_decay,
        )
    if isinstance(o, SGD):
        return torch.optim.SGD(
            parameters.values(),
            lr=o.lr * factor,
            momentum=o.momentum,
            weight_decay=o.weight_decay,
        )
    mine = {id(checked.parameters[n]): p for n, p in parameters.items()}
    groups = [
        {
            **{k: v for k, v in group.items() if k != "params"},
            "lr": float(group["lr"]) * factor,
            "params": [mine[id(p)] for p in group["params"] if id(p) in mine],
        }
        for group in o.param_groups
    ]
    kind: Any = type(o)
    made: torch.optim.Optimizer = kind(groups)
    return made
