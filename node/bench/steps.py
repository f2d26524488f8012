"""Whole training steps of the example jobs, and what commitments add to them."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import identic
from identic.kernels.arrays import Array, on_host
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.kernels.hashing import chunk_root
from identic.node.bench.rows import Benchmark, Case
from identic.node.capture import Captured, capture, load_job
from identic.node.execution.states import commit_state
from identic.node.worker.cards import Card
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import StateHeader
from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, StepIndex, Unsigned
from identic.protocol.program.codec import program_digest
from identic.protocol.program.unroll import unroll
from identic.protocol.tensors import TensorType

BENCH = Path(__file__).resolve().parent
EXAMPLES = BENCH.parents[1] / "examples"
HASHED_BYTES = 1 << 24
STEPS = {
    "gpt step": "gpt_docs",
    "digits step": "digits_mlp",
    "resnet-18 step, 8 x 3 x 64 x 64": "resnet18",
    "gpt-2 small step, 1 x 256": "gpt2_small",
}
"""Examples whose steps are timed."""

HEAVY = {"gpt2_small"}
"""Examples that take minutes to prepare and to repeat."""

NEEDS = {"gpt2_small": "transformers"}
"""A package that an example needs besides torch."""


@lru_cache(maxsize=2)
def _job(name: str) -> tuple[identic.TrainingJob, Captured]:
    """An example job and its program, made once."""
    job = load_job(target(name))
    return job, capture(job)


def here() -> bool:
    """Whether the examples are here, as they are in a clone of the repository."""
    return EXAMPLES.is_dir()


def makes(name: str) -> bool:
    """Whether a job can be made: its file and what it imports are here."""
    needs = NEEDS.get(name)
    return here() and (needs is None or importlib.util.find_spec(needs) is not None)


def file_of(name: str) -> Path:
    """Where a job is made: among the examples, or here."""
    folder = BENCH if (BENCH / f"{name}.py").exists() else EXAMPLES
    return folder / f"{name}.py"


def target(name: str) -> str:
    """A job in the words of ``load_job``; ``NAME:FUNCTION`` takes another function of a file."""
    file, _, function = name.partition(":")
    return f"{file_of(file)}:{function or 'job'}"


class Training:
    """A captured job that goes on by one step at each call, and begins again after its last.

    Args:
        name: the example.
        card: computes the steps instead of the CPU.
    """

    def __init__(self, name: str, card: Card | None = None) -> None:
        self.job, self.captured = _job(name)
        self.executor = Executor(unroll(self.captured.program), card or CpuBackend())
        self.first = self.captured.state
        self.state, self.done = list(self.first), 0

    def step(self) -> list[Array]:
        """The state after one more step, until the next one."""
        if self.done == self.job.steps:
            self.state, self.done = list(self.first), 0
        data, seed = self.captured.data, self.job.seed
        self.state = self.executor.consume(self.state, data, seed, self.done)
        self.done += 1
        return self.state

    def waited_for(self) -> Array:
        """One more step, done: its loss on the host."""
        return on_host(self.step()[-1])


class EagerTraining:
    """The same job in torch, as one writes it: its own optimizer, clipping and schedule.

    Args:
        name: the example.
        device: where it computes, in torch's words.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.job = load_job(target(name))
        self.job.model.to(device)
        self._batch = _batches(self.job)
        self._device = device
        self._parameters = list(self.job.model.parameters())
        self._optimizer = _optimizer(self.job, self._parameters)
        # The factors are the job's own; past its last step they begin again.
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: self.job.factor(step % self.job.steps)
        )

    def step(self) -> None:
        """One more step."""
        x, y = (t.to(self._device) for t in self._batch())
        self._optimizer.zero_grad()
        self.job.loss(self.job.model, x, y).backward()
        if self.job.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._parameters, self.job.clip)
        self._optimizer.step()
        if self.job.schedule is not None:
            self._schedule.step()
        if self._device != "cpu":
            torch.cuda.synchronize(self._device)


def _optimizer(
    job: identic.TrainingJob, parameters: list[torch.nn.Parameter]
) -> torch.optim.Optimizer:
    o = job.optimizer
    if isinstance(o, identic.AdamW):
        return torch.optim.AdamW(
            parameters, lr=o.lr, betas=o.betas, eps=o.eps, weight_decay=o.weight_decay
        )
    if isinstance(o, identic.SGD):
        lr, momentum, decay = o.lr, o.momentum, o.weight_decay
        return torch.optim.SGD(parameters, lr=lr, momentum=momentum, weight_decay=decay)
    raise TypeError(f"{type(o).__name__} is no optimizer of an example")


def _windows(windows: identic.Windows) -> Callable[[], tuple[Tensor, Tensor]]:
    tokens = torch.from_numpy(np.array(windows.tokens))
    places = torch.arange(windows.length + 1)

    def draw() -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(tokens) - windows.length, (windows.batch, 1))
        found = tokens[starts + places].long()
        return found[:, :-1], found[:, 1:]

    return draw


def _rows(rows: identic.Rows) -> Callable[[], tuple[Tensor, Tensor]]:
    x, y = (torch.from_numpy(array) for _, array in rows.tensors())
    order, at = torch.randperm(len(x)), 0

    def draw() -> tuple[Tensor, Tensor]:
        nonlocal order, at
        if at + rows.batch > len(x):
            order, at = torch.randperm(len(x)), 0
        chosen = order[at : at + rows.batch]
        at += rows.batch
        return x[chosen], y[chosen]

    return draw


def _training(name: str) -> Case:
    """A step of an example job."""
    return Case(Training(name).step, {"torch": EagerTraining(name).step})


def _batches(job: identic.TrainingJob) -> Callable[[], tuple[Tensor, Tensor]]:
    data = job.data
    return _windows(data) if isinstance(data, identic.Windows) else _rows(data)


def on_device(card: Card) -> Iterator[Benchmark]:
    """Steps of the examples on a device, beside torch there, float32 without TF32."""
    there = card.name.startswith("cuda") and torch.cuda.is_available()
    peer, device = ("torch", card.name) if there else ("torch on the CPU", "cpu")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

    def prepare(example: str) -> Case:
        ours = Training(example, card)
        eager = EagerTraining(example, device)
        return Case(ours.waited_for, {peer: eager.step})

    for name, example in STEPS.items():
        if makes(example):
            yield Benchmark(name, partial(prepare, example), heavy=example in HEAVY)


# ---- commitments ----------------------------------------------------------------------------


def _commitment(training: Training) -> Callable[[], object]:
    """What a solver computes at a mark: the state's root, and the path of the loss in it."""
    program, seed = training.captured.program, Unsigned(training.job.seed)
    digest = program_digest(program)

    def commit() -> object:
        step = training.done
        cursor = Count(step * program.shards * program.examples)
        header = StateHeader(digest, seed, StepIndex(step), cursor)
        commitment = commit_state(header, program.state, training.state)
        return commitment.root, commitment.opening(len(commitment.digests) - 1)

    return commit


def _committed(name: str) -> Case:
    """A step with the commitment to the state after it, beside the step."""
    ours, plain = Training(name), Training(name)
    commit = _commitment(ours)

    def step_and_commit() -> object:
        ours.step()
        return commit()

    return Case(step_and_commit, {"the step alone": plain.step})


def _share(name: str, step: str = "a step") -> Case:
    """The commitment by itself, beside a step: its share of it."""
    training = Training(name)
    return Case(_commitment(training), {step: training.step})


def _tree() -> Case:
    """The digest of a tensor of 16 MiB, a tree over its chunks, beside one SHA-256 of its bytes."""
    data = np.random.default_rng(1).integers(0, 256, HASHED_BYTES, dtype=np.uint8)
    view, kind = memoryview(data.data), TensorType.of(DType.UINT8, data.shape)
    return Case(
        lambda: tensor_digest(kind, view, chunk_root),
        {"hashlib, one stream": lambda: hashlib.sha256(view).digest()},
    )


def benchmarks() -> Iterator[Benchmark]:
    """Steps, the commitment to a step, and hashing by itself."""
    steps: dict[str, tuple[Callable[[str], Case], str]] = {
        **{name: (_training, example) for name, example in STEPS.items()},
        "gpt step and state root": (_committed, "gpt_docs"),
        "gpt state root": (_share, "gpt_docs"),
        "gpt-2 small state root": (partial(_share, step="a step, 4 x 256"), "gpt2_small:job_of_4"),
    }
    for name, (prepare, example) in steps.items():
        file = example.partition(":")[0]
        if makes(file):
            yield Benchmark(name, partial(prepare, example), heavy=file in HEAVY)
    yield Benchmark("tensor digest, 16 MiB", _tree)
