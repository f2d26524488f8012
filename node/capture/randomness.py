"""Random operations of a model, drawn from the step's own generator (CAP-8).

While a step is traced, every random operation becomes ``identic::uniform(context, stream,
shape)``: numbers in [0, 1) that are a function of the job's seed, the step, the shard, the
stream and the element's index. Streams are numbered in the order of the calls, from
``FIRST_STREAM``; smaller numbers belong to the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from identic.node.capture.philox import uniform_block
from identic.protocol.lowering import CaptureError

aten = torch.ops.aten

_NO_BACKWARD = -1

FIRST_STREAM = 16
"""Streams below are kept for the sampler."""


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


class Randomness:
    """Numbers the streams of one run of a step."""

    def __init__(self) -> None:
        self._context: torch.Tensor | None = None
        self._streams = 0

    def start(self, context: torch.Tensor) -> None:
        """Begin a run: streams are numbered from the start."""
        self._context = context
        self._streams = 0

    def draw(self, shape: Sequence[int]) -> torch.Tensor:
        """The next stream's numbers."""
        if self._context is None:
            raise RuntimeError("random numbers are drawn outside a step")
        # CAP-8: a step draws in its forward pass alone, so that no number is drawn twice.
        if torch._C._current_graph_task_id() != _NO_BACKWARD:  # noqa: SLF001 - torch has no other
            raise CaptureError(
                "CAP-8",
                "random numbers are drawn again while gradients are computed.",
                advice="keep dropout out of torch.utils.checkpoint, or call the layer without it.",
            )
        stream = FIRST_STREAM + self._streams
        self._streams += 1
        return torch.ops.identic.uniform(self._context, stream, list(shape))  # type: ignore[no-any-return]

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
    ("randint", "default"),
    ("randint", "low"),
    ("randint_like", "default"),
    ("poisson", "default"),
    ("exponential_", "default"),
    ("geometric_", "default"),
    ("log_normal_", "default"),
    ("cauchy_", "default"),
)


def _as(values: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    return values if dtype in (None, torch.float32) else values.to(dtype)


def _refusal(operator: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise CaptureError(
            "CAP-8",
            f"{operator} is a random operation without a rule in a step.",
            advice="use dropout, torch.rand, torch.randn or torch.bernoulli.",
            operator=operator,
        )

    return refuse
