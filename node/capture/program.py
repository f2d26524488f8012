"""From a training job to a program with its initial state and data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from identic.node.capture.data import dtype_of
from identic.node.capture.job import TrainingJob
from identic.node.capture.optimizers import build_update, schedule_table, state_variables
from identic.node.capture.places import Places, follow_backward, place_of_error
from identic.node.capture.refusals import explain
from identic.node.capture.tracing import DTYPES, Traced, as_array, trace
from identic.protocol.graph import Graph, Place, Ref
from identic.protocol.ids import Count, Unsigned
from identic.protocol.lowering import Builder, CaptureError, lower
from identic.protocol.program.types import CONTEXT_TYPE, LOSS_TYPE, Program, Section, Variable
from identic.protocol.tensors import TensorType

Array = NDArray[Any]


@dataclass(frozen=True)
class Notes:
    """Where each instruction comes from, section by section; for people only."""

    gradient: tuple[Place, ...]
    update: tuple[Place, ...]


@dataclass(frozen=True)
class Summary:
    """A captured job in numbers, for screens."""

    model: str
    parameters: int
    """Numbers in all parameters."""
    tensors: int
    """Parameter tensors."""
    gradient: int
    """Instructions of the gradient section."""
    update: int
    """Instructions of the update section."""
    optimizer: str
    """Name of its kind."""
    steps: int
    batch: str
    """A step's examples, such as ``16 x 128 tokens``."""

    def __str__(self) -> str:
        count = self.parameters
        size = f"{count / 1e6:.2f} M" if count >= 100_000 else f"{count:,}"
        return (
            f"{self.model}, {size} parameters in {self.tensors} tensors, {self.optimizer}, "
            f"{self.steps:,} steps of {self.batch}"
        )


@dataclass(frozen=True, eq=False)
class Captured:
    """A job as nodes run it."""

    program: Program
    state: list[Array]
    """Initial state in the program's order, the loss last."""
    data: list[Array]
    notes: Notes
    summary: Summary
    random: bool
    """Whether the model draws random numbers (dropout and its kin)."""


class _Model(torch.nn.Module):
    """The user's model and loss as one module, so that its tensors can be replaced."""

    def __init__(self, job: TrainingJob) -> None:
        super().__init__()
        self.model = job.model
        self._loss = job.loss

    def forward(self, *batch: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        return self._loss(self.model, *batch)  # type: ignore[no-any-return]


def _check_model(model: object) -> None:
    """Refuse what is not the plain model."""
    # CAP-1: the model is the module itself, not a wrapper that runs it elsewhere or compiled.
    if not isinstance(model, torch.nn.Module):
        raise CaptureError(
            "CAP-1", f"the model is a {type(model).__name__}.", advice="give a torch.nn.Module."
        )
    wrappers = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    if isinstance(model, wrappers) or hasattr(model, "_orig_mod"):
        raise CaptureError(
            "CAP-1",
            f"the model is wrapped in {type(model).__name__}.",
            advice="give the module inside it: a program needs no compiling or distributing.",
        )


class Job:
    """A checked job and its tensors, in a fixed order."""

    def __init__(self, job: TrainingJob) -> None:
        job.check()
        _check_model(job.model)
        self.job = job
        self.module = _Model(job)
        self.module.training = job.model.training
        self.parameters = dict(job.model.named_parameters())
        self.buffers = dict(job.model.named_buffers())
        self.trained = [n for n, p in self.parameters.items() if p.requires_grad]
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
            if name in self.parameters and tensor._backward_hooks:  # noqa: SLF001 - torch has no other way
                raise CaptureError(
                    "CAP-2",
                    f"parameter {name} has a gradient hook, which a program would not run.",
                    advice="move what the hook does into the loss function.",
                )
        if not self.trained:
            raise CaptureError(
                "CAP-1", "no parameter of the model is trained.", advice="set requires_grad."
            )

    def example(self) -> list[torch.Tensor]:
        """Tensors of the types of one shard's batch."""
        context = (0, 0, 0, 0, 0, 0)
        return [torch.from_numpy(a) for a in self.job.data.batch_of(context, self.job.shards)]

    def names(self) -> dict[int, str]:
        """Path of each module, by ``id``."""
        return {
            id(module): name or type(module).__name__
            for name, module in self.job.model.named_modules()
        }

    def step(self) -> Callable[..., Sequence[torch.Tensor]]:
        """(context, parameters, buffers, batch) -> (loss, gradients, buffers)."""
        split = (len(self.parameters), len(self.parameters) + len(self.buffers))

        def run(_: torch.Tensor, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
            given = zip(self.parameters, tensors[: split[0]], strict=True)
            parameters = {
                n: t.detach().requires_grad_() if n in self.trained else t.detach()
                for n, t in given
            }
            buffers = {
                n: t.clone()
                for n, t in zip(self.buffers, tensors[split[0] : split[1]], strict=True)
            }
            batch = tensors[split[1] :]
            replaced = {f"model.{n}": t for n, t in {**parameters, **buffers}.items()}
            with Places(self.names()):
                loss = torch.func.functional_call(self.module, replaced, batch)
            self._check_loss(loss)
            follow_backward(loss)
            wanted = [parameters[n] for n in self.trained]
            found: list[torch.Tensor | None] = [
                *torch.autograd.grad(loss, wanted, allow_unused=True)
            ]
            gradients = [
                torch.zeros_like(p) if g is None else g for p, g in zip(wanted, found, strict=True)
            ]
            # A buffer that the model replaced by assignment is found where the call left it.
            return [loss.detach(), *gradients, *(replaced[f"model.{n}"] for n in buffers)]

        return run

    @staticmethod
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


def capture(job: TrainingJob) -> Captured:
    """Turn a job into a program, its initial state and its data.

    Raises:
        CaptureError: the job cannot become a program; the error names the place in the
            user's source and what to do.
    """
    checked = Job(job)
    traced = _trace(checked)
    changed = _changed_buffers(checked, traced.graph)
    names = list(checked.buffers)
    kept = [n for n in names if n in changed]
    schedule = schedule_table(job)
    fixed = [(f"buffer.{n}", as_array(checked.buffers[n])) for n in names if n not in changed]
    # CAP-6: a tensor found in the step is one repeated number, or committed data.
    lifted = [(f"constant.{i}", c) for i, c in enumerate(traced.constants) if not _uniform(c)]
    data = [*checked.sources, ("schedule", schedule), *fixed, *lifted]
    layout = _Layout(checked, kept, [(n, _type(a)) for n, a in data])
    gradient, gradient_notes = _gradient_section(layout, traced)
    update, update_notes = _update_section(layout)
    program = Program(
        version=Count(1),
        shards=Count(job.shards),
        examples=Count(job.data.batch // job.shards),
        parameters=layout.parameters,
        trainable=tuple(
            Unsigned(i) for i, n in enumerate(checked.parameters) if n in checked.trained
        ),
        buffers=layout.buffers,
        optimizer=layout.optimizer,
        data=layout.data,
        gradient=gradient,
        update=update,
    )
    return Captured(
        program=program,
        state=_initial_state(checked, layout),
        data=[a for _, a in data],
        notes=Notes(gradient_notes, update_notes),
        summary=_summary(checked, program),
        random=any(n.target.startswith("identic.uniform") for n in traced.graph.nodes),
    )


def _type(array: Array) -> TensorType:
    return TensorType.of(dtype_of(array), array.shape)


def _uniform(array: Array) -> bool:
    """Whether all elements have the same bits."""
    first = array.reshape(-1)[:1].tobytes()
    return array.size > 0 and array.tobytes() == first * array.size


def _filled(builder: Builder, array: Array) -> int:
    """A tensor of one repeated number as instructions."""
    value = array.reshape(-1)[0].item()
    return builder.expand(builder.full(dtype_of(array), value), array.shape)


class _Layout:
    """Variables of the program, and where each stands among a section's inputs."""

    def __init__(
        self, checked: Job, kept: Sequence[str], data: Sequence[tuple[str, TensorType]]
    ) -> None:
        self.checked = checked
        self.parameters = tuple(
            Variable(n, TensorType.of(DTYPES[p.dtype], tuple(p.shape)))
            for n, p in checked.parameters.items()
        )
        self.buffers = tuple(
            Variable(
                n, TensorType.of(DTYPES[checked.buffers[n].dtype], tuple(checked.buffers[n].shape))
            )
            for n in kept
        )
        self.trained = tuple(v for v in self.parameters if v.name in checked.trained)
        self.optimizer = state_variables(checked.job, self.trained)
        self.data = tuple(Variable(n, t) for n, t in data)


def _types(variables: Sequence[Variable]) -> list[TensorType]:
    return [v.type for v in variables]


def _gradient_section(layout: _Layout, traced: Traced) -> tuple[Section, tuple[Place, ...]]:
    """The sampler, the loss, its gradients and the buffers after it."""
    checked = layout.checked
    inputs = [
        *_types(layout.parameters),
        *_types(layout.buffers),
        *_types(layout.data),
        CONTEXT_TYPE,
    ]
    builder = Builder(inputs)
    context = len(inputs) - 1
    first_data = len(layout.parameters) + len(layout.buffers)
    data = {v.name: first_data + i for i, v in enumerate(layout.data)}
    builder.place = Place(module="data")
    sources = [data[name] for name, _ in checked.sources]
    batch = checked.job.data.sample(builder, sources, context, checked.job.shards)
    state = {v.name: len(layout.parameters) + i for i, v in enumerate(layout.buffers)}
    buffers = [state[n] if n in state else data[f"buffer.{n}"] for n in checked.buffers]
    constants = [
        data[f"constant.{i}"] if f"constant.{i}" in data else _filled(builder, array)
        for i, array in enumerate(traced.constants)
    ]
    parameters = list(range(len(layout.parameters)))
    outputs = lower(traced.graph, builder, [context, *parameters, *buffers, *batch, *constants])
    split = 1 + len(checked.trained)
    after = dict(zip(checked.buffers, outputs[split:], strict=True))
    return builder.finish([*outputs[:split], *(after[v.name] for v in layout.buffers)])


def _update_section(layout: _Layout) -> tuple[Section, tuple[Place, ...]]:
    """Parameters and optimizer after the step."""
    groups = [layout.parameters, layout.trained, layout.optimizer, layout.data]
    inputs = [t for group in groups for t in _types(group)]
    builder = Builder([*inputs, CONTEXT_TYPE])
    starts = [sum(len(g) for g in groups[:i]) for i in range(len(groups))]
    parameters = list(range(len(layout.parameters)))
    trained = [i for i, v in enumerate(layout.parameters) if v in layout.trained]
    gradients = list(range(starts[1], starts[2]))
    schedule = starts[3] + next(i for i, v in enumerate(layout.data) if v.name == "schedule")
    updated = build_update(
        builder,
        layout.checked.job,
        [v.name for v in layout.trained],
        trained,
        gradients,
        list(range(starts[2], starts[3])),
        schedule,
        len(inputs),
    )
    for place, value in zip(trained, updated.parameters, strict=True):
        parameters[place] = value
    return builder.finish([*parameters, *updated.optimizer])


def _initial_state(checked: Job, layout: _Layout) -> list[Array]:
    tensors = [as_array(p) for p in checked.parameters.values()]
    tensors += [as_array(checked.buffers[v.name]) for v in layout.buffers]
    tensors += [np.zeros(tuple(v.type.shape), np.float32) for v in layout.optimizer]
    return [*tensors, np.zeros(tuple(LOSS_TYPE.shape), np.float32)]


def _trace(checked: Job) -> Traced:
    """Trace the step, with every failure explained in the user's terms."""
    context = torch.zeros(6, dtype=torch.int64)
    tensors = [*checked.parameters.values(), *checked.buffers.values(), *checked.example()]
    try:
        return trace(checked.step(), [context, *tensors])
    except CaptureError as error:
        raise _placed(error, error.__cause__ or error) from error
    except Exception as error:
        raise explain(error) from error


def _placed(error: CaptureError, cause: BaseException) -> CaptureError:
    """The same refusal with the user's line, when it has none yet."""
    place = place_of_error(cause)
    if error.file or place is None:
        return error
    return CaptureError(
        error.rule, error.problem, advice=error.advice, place=place, operator=error.operator
    )


_SAME = ("aten.clone", "aten.alias", "aten.detach", "aten.lift_fresh", "aten.lift_fresh_copy")


def _changed_buffers(checked: Job, graph: Graph) -> set[str]:
    """Names of the buffers that a step writes."""
    changed = set()
    first = 1 + len(checked.parameters)
    split = 1 + len(checked.trained)
    for i, (name, output) in enumerate(zip(checked.buffers, graph.outputs[split:], strict=True)):
        value = output
        while value >= len(graph.inputs):
            node = graph.nodes[value - len(graph.inputs)]
            source = node.arguments[0] if node.name in _SAME else None
            if not isinstance(source, Ref):
                break
            value = source.index
        if value != first + i:
            changed.add(name)
    return changed


def _summary(checked: Job, program: Program) -> Summary:
    job = checked.job
    length = getattr(job.data, "length", None)
    return Summary(
        model=type(job.model).__name__,
        parameters=sum(v.type.elements for v in program.parameters),
        tensors=len(program.parameters),
        gradient=len(program.gradient.instructions),
        update=len(program.update.instructions),
        optimizer=type(job.optimizer).__name__,
        steps=job.steps,
        batch=f"{job.data.batch} x {length} tokens" if length else f"{job.data.batch} rows",
    )
