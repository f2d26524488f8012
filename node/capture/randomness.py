"""Random operations of a model, drawn from the step's own generator (CAP-8).

While a step is traced, every random operation becomes ``identic::uniform(context, stream,
shape)``: numbers in [0, 1) that are a function of the job's seed, the step, the shard, the
stream and the element's index. Streams are numbered in the order of the calls, from
``FIRST_STREAM``; smaller numbers belong to the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from identic.node.capture.philox import uniform_block
from identic.protocol.lowering import CaptureError

aten = torch.ops.aten

_NO_BACKWARD = -1

FIRST_STREAM = 16
"""Streams below are kept for the sampler."""

MOST_WHOLE = 1 << 24
"""Most numbers that a random whole number is chosen from."""


@torch.library.custom_op("identic::uniform", mutates_args=())
def uniform(context: torch.Tensor, stream: int, shape: Sequence[int]) -> torch.Tensor:
    """Uniform numbers of one stream, as ``random_uniform`` makes them."""
    words = context.tolist()
    count = math.prod(shape)
    values = uniform_block((words[2], words[3]), stream, words[5], count)
    return torch.from_numpy(np.ascontiguousarray(values)).reshape(tuple(shape))


@uniform.register_fake
def _uniform_type(context: torch.Tensor, stream: int, shape: Sequence[int]) -> torch.Tensor:
    del stream
    return torch.empty(tuple(shape), dtype=torch.float32, device=context.device)


@dataclass(frozen=True)
class _Standing:
    """Where the step's generator stands: what code gets that saves its state."""

    streams: int


class Randomness:
    """Numbers the streams of one run of a step."""

    def __init__(self) -> None:
        self._context: torch.Tensor | None = None
        self._streams = 0
        self._drawn = 0

    @contextmanager
    def run(self, context: torch.Tensor) -> Iterator[None]:
        """A run of the step: streams are numbered from the start.

        Meanwhile torch's functions that save and restore the state of its generator do so
        with the step's: activation checkpointing draws the numbers of a layer again.
        """
        self._context = context
        self._streams = self._drawn = 0
        replaced = {
            "get_rng_state": lambda: _Standing(self._streams),
            "set_rng_state": self._restore,
            "manual_seed": _refusal("torch.manual_seed"),
            "seed": _refusal("torch.seed"),
        }
        kept = [(m, n, getattr(m, n)) for m in (torch, torch.random) for n in replaced]
        try:
            for module, name, _ in kept:
                setattr(module, name, replaced[name])
            yield
        finally:
            for module, name, function in kept:
                setattr(module, name, function)

    def _restore(self, state: object) -> None:
        # CAP-8: the step's generator goes back only to where it has stood in this step.
        if not isinstance(state, _Standing):
            raise _refused("torch.set_rng_state")
        self._streams = state.streams

    def draw(self, shape: Sequence[int]) -> torch.Tensor:
        """The next stream's numbers."""
        if self._context is None:
            raise RuntimeError("random numbers are drawn outside a step")
        backward = torch._C._current_graph_task_id() != _NO_BACKWARD  # noqa: SLF001 - torch has no other
        # CAP-8: while gradients are computed no number is drawn but those of the forward pass.
        if backward and self._streams >= self._drawn:
            raise CaptureError(
                "CAP-8",
                "other random numbers are drawn while gradients are computed.",
                advice="leave preserve_rng_state of torch.utils.checkpoint as it is, or draw in "
                "the forward pass.",
            )
        stream = FIRST_STREAM + self._streams
        self._streams += 1
        self._drawn = max(self._drawn, self._streams)
        return torch.ops.identic.uniform(self._context, stream, list(shape))  # type: ignore[no-any-return]

    def whole(self, low: int, high: int, shape: Sequence[int]) -> torch.Tensor:
        """Whole numbers from ``low`` to below ``high``, int64."""
        # CAP-8: u * n is below n for every u of 24 bits, so n is at most 2**24.
        if not 0 < high - low <= MOST_WHOLE:
            raise CaptureError(
                "CAP-8",
                f"torch.randint from {low} to {high} has no rule.",
                advice=f"choose among at most {MOST_WHOLE} numbers.",
                operator="aten.randint.low",
            )
        return (self.draw(shape) * float(high - low)).to(torch.int64) + low

    def exponential(self, shape: Sequence[int], rate: float = 1.0) -> torch.Tensor:
        """Exponential numbers: minus the logarithm of a uniform number."""
        return -torch.log(1.0 - self.draw(shape)) / rate

    def normal(self, shape: Sequence[int]) -> torch.Tensor:
        """Standard normal numbers by the Box-Muller formula on two streams."""
        radius = torch.sqrt(-2.0 * torch.log(1.0 - self.draw(shape)))
        return radius * torch.cos(2 * math.pi * self.draw(shape))

    def table(self) -> dict[Any, Callable[..., Any]]:
        """Replacement of every random operation of torch."""
        table: dict[Any, Callable[..., Any]] = {
            aten.bernoulli_.float: self._bernoulli_in_place,
            aten.bernoulli.p: self._bernoulli_p,
            aten.bernoulli.default: self._bernoulli,
            aten.native_dropout.default: self._dropout,
            aten.rand.default: lambda size, **k: _as(self.draw(size), k.get("dtype")),
            aten.rand_like.default: lambda x, **k: _as(
                self.draw(x.shape), k.get("dtype") or x.dtype
            ),
            aten.randn.default: lambda size, **k: _as(self.normal(size), k.get("dtype")),
            aten.randn_like.default: lambda x, **k: _as(
                self.normal(x.shape), k.get("dtype") or x.dtype
            ),
            aten.randint.default: lambda high, size, **k: _as(
                self.whole(0, high, size), k.get("dtype"), torch.int64
            ),
            aten.randint.low: lambda low, high, size, **k: _as(
                self.whole(low, high, size), k.get("dtype"), torch.int64
            ),
            aten.randint_like.default: lambda x, high, **k: _as(
                self.whole(0, high, x.shape), k.get("dtype") or x.dtype, torch.int64
            ),
            aten.randint_like.low_dtype: lambda x, low, high, **k: _as(
                self.whole(low, high, x.shape), k.get("dtype") or x.dtype, torch.int64
            ),
            aten.exponential_.default: lambda x, rate=1.0, **_: x.copy_(
                self.exponential(x.shape, rate)
            ),
            aten.uniform_.default: self._uniform_in_place,
            aten.normal_.default: self._normal_in_place,
        }
        for name, overload in _REFUSED:
            table[getattr(getattr(aten, name), overload)] = _refusal(f"aten.{name}.{overload}")
        return table

    def _bernoulli_in_place(self, x: torch.Tensor, p: float = 0.5) -> torch.Tensor:
        return x.copy_((self.draw(x.shape) < p).to(x.dtype))

    def _bernoulli_p(self, x: torch.Tensor, p: float) -> torch.Tensor:
        return (self.draw(x.shape) < p).to(x.dtype)

    def _bernoulli(self, x: torch.Tensor) -> torch.Tensor:
        return (self.draw(x.shape) < x).to(x.dtype)

    def _dropout(
        self, x: torch.Tensor, p: float, train: bool | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if train is False:
            return x.clone(), torch.ones_like(x, dtype=torch.bool)
        kept = self.draw(x.shape) < (1 - p)
        return x * kept * (1.0 / (1 - p)), kept

    def _uniform_in_place(
        self, x: torch.Tensor, low: float = 0.0, high: float = 1.0
    ) -> torch.Tensor:
        return x.copy_(self.draw(x.shape) * (high - low) + low)

    def _normal_in_place(
        self, x: torch.Tensor, mean: float = 0.0, std: float = 1.0
    ) -> torch.Tensor:
        return x.copy_(self.normal(x.shape) * std + mean)


_REFUSED = (
    ("randperm", "default"),
    ("multinomial", "default"),
    ("poisson", "default"),
    ("random_", "default"),
    ("random_", "from"),
    ("random_", "to"),
    ("bernoulli_", "Tensor"),
    ("rrelu_with_noise", "default"),
    ("geometric_", "default"),
    ("log_normal_", "default"),
    ("cauchy_", "default"),
)


def _as(
    values: torch.Tensor, dtype: torch.dtype | None, own: torch.dtype = torch.float32
) -> torch.Tensor:
    return values if dtype in (None, own) else values.to(dtype)


def _refused(operator: str) -> CaptureError:
    return CaptureError(
        "CAP-8",
        f"{operator} is a random operation without a rule in a step.",
        advice="use dropout, torch.rand, randn, randint or bernoulli; the job has one seed.",
        operator=operator,
    )


def _refusal(operator: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise _refused(operator)

    return refuse
