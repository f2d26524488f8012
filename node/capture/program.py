"""From a training job to a program with its initial state and data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from identic.node.capture.attributes import plain_state, restored
from identic.node.capture.checked import CheckedJob, dropped_randomness
from identic.node.capture.data import dtype_of
from identic.node.capture.job import TrainingJob
from identic.node.capture.optimizers import Inputs, Update
from identic.node.capture.places import place_of_error
from identic.node.capture.refusals import explain
from identic.node.capture.settings import kept_state, label
from identic.node.capture.tracing import DTYPES, Traced, as_array, trace, uncompiled
from identic.protocol.graph import Graph, Place, Ref
from identic.protocol.ids import Count, Unsigned
from identic.protocol.lowering import Builder, CaptureError, lower
from identic.protocol.program.types import CONTEXT_TYPE, LOSS_TYPE, Program, Section, Variable
from identic.protocol.tensors import TensorType

Array = NDArray[Any]


@dataclass(frozen=True)
class Notes:
    """What people are told beside the program; nothing of it is part of the program."""

    gradient: tuple[Place, ...]
    """Where each instruction of the gradient section comes from."""
    update: tuple[Place, ...]
    """The same of the update section."""
    torch: str
    """Version of torch that traced the step."""
    origin: str = ""
    """What the job goes on from, in words; empty if it begins with the model's own weights."""
    remarks: tuple[str, ...] = ()
    """What the submitter should know: parameters that are not trained, and the like."""


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


@dataclass(frozen=True)
class _Tensor:
    """A variable of the program, and how to get its first content."""

    variable: Variable
    content: Callable[[], Array]


@dataclass(frozen=True, eq=False)
class Captured:
    """A job as nodes run it."""

    program: Program
    notes: Notes
    summary: Summary
    random: bool
    """Whether the model draws random numbers (dropout and its kin)."""
    checked: CheckedJob
    """The job that was captured."""
    given: tuple[_Tensor, ...]
    """State and data, in the program's order."""

    @cached_property
    def state(self) -> list[Array]:
        """Initial state in the program's order, the loss last; made when it is first asked for.

        Raises:
            CaptureError: the model is on the meta device and has no weights (CAP-1).
        """
        return [t.content() for t in self.given[: len(self.program.state)]]

    @cached_property
    def data(self) -> list[Array]:
        """Data in the program's order."""
        return [t.content() for t in self.given[len(self.program.state) :]]


def capture(job: TrainingJob) -> Captured:
    """Turn a job into a program, its initial state and its data.

    A model on the meta device has a program, but no state.

    Raises:
        CaptureError: the job cannot become a program; the error names the place in the
            user's source and what to do.
    """
    checked = CheckedJob(job)
    traced = _trace(checked)
    layout = _Layout(checked, traced)
    gradient, gradient_notes = _gradient_section(layout)
    update, update_notes = _update_section(layout)
    program = Program(
        version=Count(1),
        shards=Count(job.shards),
        examples=Count(job.data.batch // job.shards),
        parameters=layout.parameters,
        trainable=tuple(
            Unsigned(i) for i, n in enumerate(checked.parameters) if n in checked.trained
        ),
        buffers=tuple(t.variable for t in layout.buffers),
        optimizer=tuple(t.variable for t in layout.optimizer),
        data=tuple(t.variable for t in layout.data),
        gradient=gradient,
        update=update,
    )
    return Captured(
        program=program,
        notes=Notes(
            gradient_notes,
            update_notes,
            torch.__version__,
            checked.begun.origin if checked.begun else "",
            tuple(_remarks(checked)),
        ),
        summary=_summary(checked, program),
        random=any(n.target.startswith("identic.uniform") for n in traced.graph.nodes),
        checked=checked,
        given=layout.given,
    )


# ---- variables ------------------------------------------------------------------------------


class _Layout:
    """Variables of the program, and where each stands among a section's inputs."""

    def __init__(self, checked: CheckedJob, traced: Traced) -> None:
        self.checked, self.traced = checked, traced
        self.update = Update(checked.job, checked.groups())
        average = checked.job.average
        self._renamed = average is not None and average.model_file
        self._weights = [self._weight(n) for n in checked.parameters]
        self.trained = tuple(Variable(n, _type_of(checked.parameters[n])) for n in checked.trained)
        averages = [self._average(n) for n in checked.trained if average is not None]
        self._averages = averages if self._renamed else []
        changed = _changed_buffers(checked, traced.graph)
        self.buffers = [self._buffer(n, n) for n in checked.buffers if n in changed]
        kept = kept_state(checked.job, {n: checked.parameters[n] for n in checked.trained})
        own = [self._kept(v, kept.get(v.name)) for v in self.update.variables(self.trained)]
        self.optimizer = own if self._renamed else own + averages
        self.data = self._data(changed)

    def _weight(self, name: str) -> _Tensor:
        """A parameter under the name it has in the program."""
        checked, kind = self.checked, _type_of(self.checked.parameters[name])
        new = f"trained.{name}" if self._renamed and name in checked.trained else name
        variable, aliases = Variable(new, kind), checked.aliases(name)
        if checked.begun is None:
            return _of_tensor(variable, checked.parameters[name])
        found = checked.begun.of([*(f"trained.{a}" for a in aliases), *aliases], variable)
        # CAP-17: every parameter begins as what the start has for it.
        if found is None:
            raise CaptureError(
                "CAP-17",
                f"{checked.begun.origin} has no {name}.",
                advice="make the same model, or load the weights there are in the job function.",
            )
        return _of_array(variable, found)

    def _average(self, name: str) -> _Tensor:
        """The running average of a parameter: at first that of the start, or the parameter."""
        weight = self._weight(name)
        new = name if self._renamed else f"average.{name}"
        variable, begun = Variable(new, weight.variable.type), self.checked.begun
        apart = [n for n in (name,) if begun and f"trained.{name}" in begun.tensors]
        found = begun.of([f"average.{name}", *apart], variable) if begun else None
        return _Tensor(variable, weight.content) if found is None else _of_array(variable, found)

    def _buffer(self, name: str, new: str) -> _Tensor:
        """A buffer: what the start has for it, or what the model has."""
        tensor, begun = self.checked.buffers[name], self.checked.begun
        variable = Variable(new, _type_of(tensor))
        found = begun.of(self.checked.aliases(name), variable) if begun else None
        return _of_tensor(variable, tensor) if found is None else _of_array(variable, found)

    def _kept(self, variable: Variable, content: Array | None) -> _Tensor:
        """State of the optimizer: what the start or the optimizer has kept, or zeros."""
        begun = self.checked.begun
        found = begun.of([variable.name], variable) if begun else None
        content = content if found is None else found
        return _zeros(variable) if content is None else _of_array(variable, content)

    def _data(self, changed: set[str]) -> list[_Tensor]:
        checked = self.checked
        # CAP-6: a tensor found in the step is one repeated number, or committed data.
        lifted = enumerate(self.traced.constants)
        arrays = [
            *checked.sources,
            ("schedule", self.update.table),
            *((f"constant.{i}", c) for i, c in lifted if not _uniform(c)),
        ]
        fixed = [self._buffer(n, f"buffer.{n}") for n in checked.buffers if n not in changed]
        data = [_of_array(Variable(n, _type_of_array(a)), a) for n, a in arrays]
        count = len(checked.sources) + 1
        return [*data[:count], *fixed, *data[count:]]

    @property
    def parameters(self) -> tuple[Variable, ...]:
        """Parameters of the program: those of the model, and averages that take their names."""
        return tuple(t.variable for t in (*self._weights, *self._averages))

    @property
    def given(self) -> tuple[_Tensor, ...]:
        """Every variable with its first content, in the order of state and data."""
        loss = _zeros(Variable("loss", LOSS_TYPE))
        state = (*self._weights, *self._averages, *self.buffers, *self.optimizer, loss)
        return (*state, *self.data)

    def types(self, tensors: Sequence[_Tensor]) -> list[TensorType]:
        """Types of variables."""
        return [t.variable.type for t in tensors]

    def average_names(self) -> list[str]:
        """Names of the averages as the update calls them, in the order of ``_averages``."""
        return [f"average.{v.name}" for v in self.trained] if self._renamed else []


def _of_tensor(variable: Variable, tensor: torch.Tensor) -> _Tensor:
    return _Tensor(variable, partial(_content, variable.name, tensor))


def _of_array(variable: Variable, array: Array) -> _Tensor:
    return _Tensor(variable, lambda: array)


def _zeros(variable: Variable) -> _Tensor:
    return _Tensor(variable, lambda: np.zeros(tuple(variable.type.shape), np.float32))


def _type_of_array(array: Array) -> TensorType:
    return TensorType.of(dtype_of(array), array.shape)


def _type_of(tensor: torch.Tensor) -> TensorType:
    return TensorType.of(DTYPES[tensor.dtype], tuple(tensor.shape))


def _content(name: str, tensor: torch.Tensor) -> Array:
    # CAP-1: a job that is to be run has weights.
    if tensor.device.type == "meta":
        raise CaptureError(
            "CAP-1",
            f"{name} is on the meta device and has no content.",
            advice="make the model on the CPU to run the job; its program needs no weights.",
        )
    return as_array(tensor)


def _uniform(array: Array) -> bool:
    """Whether all elements have the same bits."""
    first = array.reshape(-1)[:1].tobytes()
    return array.size > 0 and array.tobytes() == first * array.size


def _filled(builder: Builder, array: Array) -> int:
    """A tensor of one repeated number as instructions."""
    value = array.reshape(-1)[0].item()
    return builder.expand(builder.full(dtype_of(array), value), array.shape)


# ---- sections -------------------------------------------------------------------------------


def _gradient_section(layout: _Layout) -> tuple[Section, tuple[Place, ...]]:
    """The sampler, the loss, its gradients and the buffers after it."""
    checked, traced = layout.checked, layout.traced
    parameters = [v.type for v in layout.parameters]
    groups = [parameters, layout.types(layout.buffers), layout.types(layout.data)]
    inputs = [t for group in groups for t in group]
    builder = Builder([*inputs, CONTEXT_TYPE])
    context = len(inputs)
    first = len(parameters) + len(layout.buffers)
    data = {t.variable.name: first + i for i, t in enumerate(layout.data)}
    builder.place = Place(module="data")
    sources = [data[name] for name, _ in checked.sources]
    batch = checked.job.data.sample(builder, sources, context, checked.job.shards)
    state = {t.variable.name: len(parameters) + i for i, t in enumerate(layout.buffers)}
    buffers = [state[n] if n in state else data[f"buffer.{n}"] for n in checked.buffers]
    constants = [
        data[f"constant.{i}"] if f"constant.{i}" in data else _filled(builder, array)
        for i, array in enumerate(traced.constants)
    ]
    weights = list(range(len(checked.parameters)))
    outputs = lower(traced.graph, builder, [context, *weights, *buffers, *batch, *constants])
    split = 1 + len(checked.trained)
    after = dict(zip(checked.buffers, outputs[split:], strict=True))
    return builder.finish([*outputs[:split], *(after[t.variable.name] for t in layout.buffers)])


def _update_section(layout: _Layout) -> tuple[Section, tuple[Place, ...]]:
    """Parameters and optimizer after the step."""
    names = [v.name for v in layout.trained]
    optimizer = [t.variable for t in layout.optimizer]
    groups = [
        [v.type for v in layout.parameters],
        [v.type for v in layout.trained],
        [v.type for v in optimizer],
        layout.types(layout.data),
    ]
    inputs = [t for group in groups for t in group]
    builder = Builder([*inputs, CONTEXT_TYPE])
    starts = [sum(len(g) for g in groups[:i]) for i in range(len(groups))]
    weights = {n: i for i, n in enumerate(layout.checked.parameters) if n in names}
    averages = {n: len(layout.checked.parameters) + i for i, n in enumerate(layout.average_names())}
    schedule = next(i for i, t in enumerate(layout.data) if t.variable.name == "schedule")
    given = Inputs(
        parameters=weights,
        gradients={n: starts[1] + i for i, n in enumerate(names)},
        optimizer={v.name: starts[2] + i for i, v in enumerate(optimizer)} | averages,
        schedule=starts[3] + schedule,
        context=len(inputs),
    )
    updated = layout.update.build(builder, given)
    outputs = [updated.parameters.get(n, i) for i, n in enumerate(layout.checked.parameters)]
    outputs += [updated.optimizer[n] for n in averages]
    return builder.finish([*outputs, *(updated.optimizer[v.name] for v in optimizer)])


# ---- tracing --------------------------------------------------------------------------------


def _trace(checked: CheckedJob) -> Traced:
    """Trace the step, with every failure explained in the user's terms."""
    context = torch.zeros(6, dtype=torch.int64)
    tensors = [*checked.parameters.values(), *checked.buffers.values(), *checked.example()]
    plain = partial(plain_state, checked.model, checked.job.loss)
    try:
        with restored(checked.model), uncompiled():
            traced = trace(checked.step(), [context, *tensors], plain)
    except CaptureError as error:
        raise _placed(error, error.__cause__ or error) from error
    except Exception as error:
        raise explain(error) from error
    return _without_unused(checked, traced)


def _without_unused(checked: CheckedJob, traced: Traced) -> Traced:
    """Leave out the gradients of parameters that the loss does not depend on."""
    unused = {1 + i for i, n in enumerate(checked.trained) if n in checked.unused}
    checked.drop_unused()
    # CAP-1: the loss depends on a parameter that is trained.
    if not checked.trained:
        raise CaptureError(
            "CAP-1",
            "the loss does not depend on any trained parameter.",
            advice="compute it from the model's output, without detach or no_grad.",
        )
    graph = traced.graph
    outputs = tuple(o for i, o in enumerate(graph.outputs) if i not in unused)
    return Traced(Graph(graph.inputs, graph.nodes, outputs), traced.constants)


def _placed(error: CaptureError, cause: BaseException) -> CaptureError:
    """The same refusal with the user's line, when it has none yet."""
    place = place_of_error(cause)
    if error.file or place is None:
        return error
    return CaptureError(
        error.rule, error.problem, advice=error.advice, place=place, operator=error.operator
    )


_SAME = ("aten.clone", "aten.alias", "aten.detach", "aten.lift_fresh", "aten.lift_fresh_copy")


def _changed_buffers(checked: CheckedJob, graph: Graph) -> set[str]:
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


# ---- words ----------------------------------------------------------------------------------


def _remarks(checked: CheckedJob) -> Sequence[str]:
    """What a submitter should know about the capture."""
    found = []
    if checked.model is not checked.job.model:
        found.append(f"the model inside {type(checked.job.model).__name__} is captured")
    for names, why in (
        (checked.left_out, "the optimizer does not have them"),
        (checked.unused, "the loss does not use them"),
    ):
        if names:
            found.append(f"not trained, since {why}: {_listed(names)}")
    still = list(dropped_randomness(checked.model))
    if still:
        found.append(f"the model is in evaluation mode: no dropout in {_listed(still)}")
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _summary(checked: CheckedJob, program: Program) -> Summary:
    job = checked.job
    length = getattr(job.data, "length", None)
    weights = program.parameters[: len(checked.parameters)]
    return Summary(
        model=type(checked.model).__name__,
        parameters=sum(v.type.elements for v in weights),
        tensors=len(weights),
        gradient=len(program.gradient.instructions),
        update=len(program.update.instructions),
        optimizer=label(job),
        steps=job.steps,
        batch=f"{job.data.batch} x {length} tokens" if length else f"{job.data.batch} rows",
    )
