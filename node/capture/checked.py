"""A training job that has been checked, with its tensors in a fixed order (CAP-1 to CAP-3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from identic.node.capture.data import Rows, Windows
from identic.node.capture.job import TrainingJob
from identic.node.capture.places import Places, follow_backward
from identic.node.capture.settings import KEPT, Group, groups, kind_of, optimized
from identic.node.capture.start import Begun, Start, begin
from identic.node.capture.tracing import DTYPES
from identic.protocol.lowering import CaptureError


class _Step(nn.Module):
    """The user's model, loss and backward pass as one module, so that tensors can be replaced.

    The backward pass belongs to it: activation checkpointing calls the model there again.
    """

    def __init__(
        self, model: nn.Module, loss: Callable[..., torch.Tensor], data: Rows | Windows
    ) -> None:
        super().__init__()
        self.model = model
        self.training = model.training
        self._loss = loss
        self._data = data

    def forward(self, *batch: torch.Tensor) -> torch.Tensor:
        """The loss of a batch; gradients are where ``backward`` puts them."""
        names = {id(m): n or type(m).__name__ for n, m in self.model.named_modules()}
        with Places(names):
            loss = self._loss(self.model, *self._data.arrange(batch))
        _check_loss(loss)
        follow_backward(loss)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


def plain_model(model: object) -> nn.Module:
    """The module inside wrappers that compile or distribute it.

    Raises:
        CaptureError: it is no module, or one without Python code (CAP-1).
    """
    found = model
    while isinstance(found, nn.Module):
        inner = getattr(found, "_orig_mod", None)
        if isinstance(found, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inner = found.module
        if not isinstance(inner, nn.Module):
            break
        found = inner
    # CAP-1: the model is the module itself.
    if not isinstance(found, nn.Module) or isinstance(found, torch.jit.ScriptModule):
        raise CaptureError(
            "CAP-1",
            f"the model is a {type(found).__name__}.",
            advice="give the torch.nn.Module that it was made from.",
        )
    return found


class CheckedJob:
    """A job that passed the checks before tracing.

    Attributes:
        job: the job.
        model: its module, without wrappers.
        parameters: by name, each tensor once.
        buffers: by name, each tensor once.
        begun: what the job begins with instead of the model's own tensors.
        trained: names of the parameters that the step trains, in order; shorter after tracing
            if the loss does not depend on one.
        sources: the data tensors.
    """

    def __init__(self, job: TrainingJob) -> None:
        job.check()
        _check_surroundings()
        self.job = job
        self.model = plain_model(job.model)
        self.module = _Step(self.model, job.loss, job.data)
        self.parameters = dict(self.model.named_parameters())
        self.buffers = dict(self.model.named_buffers())
        held = optimized(job, self.parameters)
        self.trained = [n for n, p in self.parameters.items() if p.requires_grad and n in held]
        self.left_out = [n for n, p in self.parameters.items() if p.requires_grad and n not in held]
        self.unused: list[str] = []
        self.begun: Begun | None = None if job.start is None else begin(job.start)
        self.sources = job.data.tensors()
        self._check()

    def _check(self) -> None:
        for name, tensor in [*self.parameters.items(), *self.buffers.items()]:
            # CAP-3: a model's tensors have the element types of programs.
            plain = tensor.dtype in DTYPES and tensor.dtype != torch.bfloat16
            if not plain or (name in self.parameters and tensor.dtype != torch.float32):
                raise CaptureError(
                    "CAP-3",
                    f"{name} has elements of type {tensor.dtype}.",
                    advice="call model.float() before capture: parameters are float32.",
                )
            # CAP-2: nothing outside the loss function changes a gradient.
            if name in self.parameters and _hooked(tensor):
                raise CaptureError(
                    "CAP-2",
                    f"parameter {name} has a gradient hook, which a program would not run.",
                    advice="move what the hook does into the loss function.",
                )
        _check_storage({**self.parameters, **self.buffers})
        if not self.trained:
            raise CaptureError(
                "CAP-1",
                "no parameter of the model is trained.",
                advice="set requires_grad, and give the optimizer the model's parameters.",
            )

    def drop_unused(self) -> None:
        """Train the parameters alone that the loss depends on, as torch's optimizers do."""
        self.trained = [n for n in self.trained if n not in self.unused]

    def groups(self) -> list[Group]:
        """The groups of the trained parameters."""
        return groups(self.job, {n: self.parameters[n] for n in self.trained}, self._taken())

    def _taken(self) -> int:
        """Steps that the start's optimizer had taken, if it kept what this one keeps."""
        begun, start = self.begun, self.job.start
        if begun is None:
            return 0
        explicit = isinstance(start, Start) and start.taken is not None
        kept = (f"{w}.{n}" for w in KEPT[kind_of(self.job)] for n in self.trained)
        return begun.taken if explicit or any(n in begun.tensors for n in kept) else 0

    def aliases(self, name: str) -> list[str]:
        """All names of a parameter or buffer, its own first."""
        tensor = {**self.parameters, **self.buffers}[name]
        named = [
            *self.model.named_parameters(remove_duplicate=False),
            *self.model.named_buffers(remove_duplicate=False),
        ]
        return [name, *(n for n, t in named if t is tensor and n != name)]

    def example(self) -> list[torch.Tensor]:
        """Tensors of the types of one shard's batch."""
        context = (0, 0, 0, 0, 0, 0)
        return [torch.from_numpy(a) for a in self.job.data.batch_of(context, self.job.shards)]

    def step(self) -> Callable[..., Sequence[torch.Tensor]]:
        """(context, parameters, buffers, batch) -> (loss, gradients, buffers)."""
        split = (len(self.parameters), len(self.parameters) + len(self.buffers))
        trained = list(self.trained)

        def run(_: torch.Tensor, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
            given = zip(self.parameters, tensors[: split[0]], strict=True)
            parameters = {
                n: t.detach().requires_grad_(self.parameters[n].requires_grad) for n, t in given
            }
            buffers = {
                n: t.clone()
                for n, t in zip(self.buffers, tensors[split[0] : split[1]], strict=True)
            }
            batch = tensors[split[1] :]
            replaced = {f"model.{n}": t for n, t in {**parameters, **buffers}.items()}
            loss = torch.func.functional_call(self.module, replaced, batch)
            found = {n: parameters[n].grad for n in trained}
            self.unused = [n for n, g in found.items() if g is None]
            gradients = [
                torch.zeros_like(parameters[n]) if g is None else g for n, g in found.items()
            ]
            # A buffer that the model replaced by assignment is found where the call left it.
            return [loss, *gradients, *(replaced[f"model.{n}"] for n in buffers)]

        return run


def _hooked(parameter: torch.Tensor) -> bool:
    """Whether something runs when the parameter gets its gradient."""
    hooks = ("_backward_hooks", "_post_accumulate_grad_hooks")
    return any(getattr(parameter, name, None) for name in hooks)


def _check_surroundings() -> None:
    """Refuse settings of torch under which a model computes something else."""
    if torch.get_default_dtype() != torch.float32:
        # CAP-3: what a step makes without a type is float32.
        raise CaptureError(
            "CAP-3",
            f"torch's default element type is {torch.get_default_dtype()}.",
            advice="leave out torch.set_default_dtype: programs compute in float32.",
        )


def _check_storage(tensors: Mapping[str, torch.Tensor]) -> None:
    """Refuse tensors of a model that lie over each other without being the same."""
    spans = sorted(
        (t.untyped_storage().data_ptr(), *_span(t), n)
        for n, t in tensors.items()
        if t.device.type != "meta" and t.numel()
    )
    for (storage, _, end, one), (other_storage, start, _, other) in pairwise(spans):
        # CAP-2: no tensor changes because another one does.
        if storage == other_storage and start < end:
            raise CaptureError(
                "CAP-2",
                f"{one} and {other} share memory, so that a step which writes one changes both.",
                advice=f"give one of them its own memory: {other}.clone().",
            )


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """First byte, and byte after the last, within the storage."""
    lengths = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((int(n) - 1) * int(stride) for n, stride in lengths)
    start = int(tensor.storage_offset()) * tensor.element_size()
    return start, start + (last + 1) * tensor.element_size()


def _check_loss(loss: Any) -> None:
    # CAP-1: the loss is a float32 scalar that depends on a trained parameter.
    if not isinstance(loss, torch.Tensor) or loss.dim() != 0 or loss.dtype != torch.float32:
        found = (
            f"{loss.dtype}{list(loss.shape)}"
            if isinstance(loss, torch.Tensor)
            else type(loss).__name__
        )
        raise CaptureError(
            "CAP-1",
            f"the loss is {found}, not a float32 scalar.",
            advice="return the mean over the batch, such as cross_entropy gives by default.",
        )
    if loss.grad_fn is None:
        raise CaptureError(
            "CAP-1",
            "the loss does not depend on any trained parameter.",
            advice="compute it from the model's output, without detach or no_grad.",
        )


def dropped_randomness(model: nn.Module) -> Iterator[str]:
    """Modules that are switched off because the model is in evaluation mode."""
    for name, module in model.named_modules():
        rate = getattr(module, "p", 0.0)
        if isinstance(module, nn.modules.dropout._DropoutNd) and not module.training and rate:  # noqa: SLF001
            yield name
