"""One step of a captured program beside the same step in torch (CAP-14).

The comparison is made on the submitter's machine before a job is posted. It shows that the
program is the user's step, not that any machine computes it; what it establishes:

1. on the same batch and the same random numbers, loss and gradients of every shard agree;
2. buffers after the step agree;
3. given these gradients, the parameters after the step are those of torch's optimizer.

Agreement means float32 rounding: the sums of the two sides run in different orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import TorchDispatchMode

from identic.kernels.backend import Backend
from identic.kernels.executor import Executor
from identic.node.capture.job import AdamW, TrainingJob
from identic.node.capture.program import Captured, Job
from identic.node.capture.randomness import Randomness
from identic.node.capture.tracing import math_attention
from identic.protocol.lowering import CaptureError
from identic.protocol.program.context import context
from identic.protocol.program.plan import Part, StepPlan
from identic.protocol.program.unroll import unroll

Array = NDArray[Any]

WITHIN_TENSOR = 1e-3
"""Largest difference allowed, as a share of the largest number of the tensor."""
WITHIN_ALL = 1e-5
"""Added: a share of the largest number of all gradients, for tensors that are rounding alone."""
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
    checked = Job(job)
    plan = unroll(captured.program)
    seen = _Watch(captured, plan)
    after = Executor(plan, backend).step(captured.state, captured.data, job.seed, 0, seen)
    tally = _Tally()
    eager = [_eager_shard(captured, checked, shard) for shard in range(job.shards)]
    scale = max((float(g.abs().max()) for e in eager for g in e.gradients if g.numel()), default=0)
    for shard, torchs in enumerate(eager):
        program = seen.shard(shard)
        tally.compare("loss", program[0], torchs.loss, scale)
        for name, ours, theirs in zip(checked.trained, program[1:], torchs.gradients, strict=False):
            tally.compare(f"gradient of {name}", ours, theirs, scale)
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


class _StepRandomness(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Random operations of torch draw the step's numbers, in the order of tracing."""

    def __init__(self, randomness: Randomness) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._table = randomness.table()

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


def _eager_shard(captured: Captured, checked: Job, shard: int) -> _Eager:
    """Loss, gradients and buffers of one shard, by torch."""
    job = checked.job
    words = context(job.seed, 0, shard)
    randomness = Randomness()
    seeds = torch.tensor(words, dtype=torch.int64)
    randomness.start(seeds)
    tensors = [p.detach().cpu().clone() for p in checked.parameters.values()]
    tensors += [b.detach().cpu().clone() for b in checked.buffers.values()]
    batch = [torch.from_numpy(np.array(a)) for a in job.data.batch_of(words, job.shards)]
    step = checked.step()
    with math_attention():
        if captured.random:
            with _StepRandomness(randomness):
                loss, *rest = step(seeds, *tensors, *batch)
        else:
            loss, *rest = step(seeds, *tensors, *batch)
    split = len(checked.trained)
    buffers = dict(zip(checked.buffers, rest[split:], strict=True))
    return _Eager(loss, list(rest[:split]), buffers)


class _Tally:
    """The largest difference so far."""

    def __init__(self) -> None:
        self.largest = 0.0
        self.at = "nothing"

    def compare(self, name: str, ours: Array, theirs: torch.Tensor, scale: float) -> None:
        """Compare tensors whose numbers are sums of numbers of size ``scale``."""
        size = float(theirs.abs().max()) if theirs.numel() else 0.0
        self.within(name, ours, theirs, WITHIN_TENSOR * size + WITHIN_ALL * scale)

    def within(self, name: str, ours: Array, theirs: torch.Tensor, limit: float) -> None:
        """Refuse two tensors with numbers further apart than ``limit``."""
        one = np.asarray(ours, dtype=np.float64)
        other = theirs.detach().double().numpy()
        if one.size == 0:
            return
        alike = (one == other) | (np.isnan(one) & np.isnan(other))
        difference = float(np.max(np.where(alike, 0.0, np.abs(one - other))))
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
    checked: Job,
    gradients: Sequence[Array],
    after: Sequence[Array],
) -> None:
    """Parameters after the step, beside torch's optimizer given the program's gradients."""
    job = checked.job
    before = [torch.from_numpy(np.array(a)) for a in captured.state[: len(checked.parameters)]]
    new = dict(zip(checked.parameters, before, strict=True))
    trained = [new[n].clone().requires_grad_() for n in checked.trained]
    for parameter, gradient in zip(trained, gradients, strict=True):
        parameter.grad = torch.from_numpy(np.array(gradient))
    if job.clip is not None:
        torch.nn.utils.clip_grad_norm_(trained, job.clip)
    _optimizer(job, trained).step()
    for name, ours in zip(checked.parameters, after, strict=False):
        if name in checked.trained:
            theirs = trained[checked.trained.index(name)].detach()
            share = WITHIN_TENSOR * float((theirs - new[name]).abs().max())
            limit = WITHIN_PARAMETER * float(new[name].abs().max()) + share
            tally.within(f"parameter {name}", ours, theirs, limit)


def _optimizer(job: TrainingJob, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
    """Torch's optimizer with the job's numbers for the first step."""
    o, lr = job.optimizer, job.optimizer.lr * job.factor(0)
    if isinstance(o, AdamW):
        return torch.optim.AdamW(
            parameters, lr=lr, betas=o.betas, eps=o.eps, weight_decay=o.weight_decay, foreach=False
        )
    return torch.optim.SGD(
        parameters, lr=lr, momentum=o.momentum, weight_decay=o.weight_decay, foreach=False
    )
