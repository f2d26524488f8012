"""Fixed sequences of linear and cubic interpolation (CAP-23).

One axis after the other, the last one first: each place of the result is a weighted sum of a
few places, told by their numbers. Numbers and weights are constants, made in binary64 here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

_SHARPNESS = -0.75
"""The slope of torch's cubic kernel at distance 1."""


@dataclass(frozen=True)
class _Tap:
    """One place that takes part in each place of the result, and its weight."""

    places: list[int]
    weights: list[float]


def _sources(before: int, after: int, corners: bool, scale: float | None) -> list[float]:
    """Where each place of the result lies among the places before."""
    if corners:
        step = (before - 1) / (after - 1) if after > 1 else 0.0
        return [i * step for i in range(after)]
    step = 1 / scale if scale else before / after
    return [(i + 0.5) * step - 0.5 for i in range(after)]


def _linear(before: int, after: int, corners: bool, scale: float | None) -> list[_Tap]:
    """The place at or before each source, and the next one."""
    sources = [max(s, 0.0) for s in _sources(before, after, corners, scale)]
    low = [min(int(s), before - 1) for s in sources]
    share = [s - n for s, n in zip(sources, low, strict=True)]
    high = [min(n + 1, before - 1) for n in low]
    return [_Tap(low, [1 - t for t in share]), _Tap(high, share)]


def _cubic(before: int, after: int, corners: bool, scale: float | None) -> list[_Tap]:
    """The two places on either side of each source."""
    sources = _sources(before, after, corners, scale)
    low = [math.floor(s) for s in sources]
    taps = []
    for offset in (-1, 0, 1, 2):
        places = [min(max(n + offset, 0), before - 1) for n in low]
        away = [abs(s - n - offset) for s, n in zip(sources, low, strict=True)]
        taps.append(_Tap(places, [_kernel(d) for d in away]))
    return taps


def _kernel(d: float) -> float:
    """Weight of a place at distance ``d`` in cubic interpolation."""
    a = _SHARPNESS
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


Taps = Callable[[int, int, bool, float | None], list[_Tap]]


def _weights(tap: _Tap, like: Tensor, axis: int) -> Tensor:
    shape = [len(tap.weights) if a == axis else 1 for a in range(like.dim())]
    return torch.tensor(tap.weights, dtype=like.dtype, device=like.device).view(shape)


def _forward(taps: Taps) -> Callable[..., Tensor]:
    def interpolate(x: Tensor, size: Sequence[int], corners: bool, *scales: float | None) -> Tensor:
        # CAP-23: from the last axis to the first, the sum of weighted places in their order.
        for axis, scale in reversed(list(enumerate(scales or [None] * len(size), start=2))):
            parts = []
            for tap in taps(x.shape[axis], size[axis - 2], corners, scale):
                places = torch.tensor(tap.places, device=x.device)
                parts.append(torch.index_select(x, axis, places) * _weights(tap, x, axis))
            x = _sum(parts)
        return x

    return interpolate


def _backward(taps: Taps) -> Callable[..., Tensor]:
    def gradient(
        g: Tensor, size: Sequence[int], before: Sequence[int], corners: bool, *scales: float | None
    ) -> Tensor:
        # CAP-23: from the first axis to the last, weighted gradients are added to their places.
        for axis, scale in enumerate(scales or [None] * len(size), start=2):
            total = torch.zeros(
                [*g.shape[:axis], before[axis], *g.shape[axis + 1 :]],
                dtype=g.dtype,
                device=g.device,
            )
            for tap in taps(before[axis], size[axis - 2], corners, scale):
                places = torch.tensor(tap.places, device=g.device)
                total = torch.index_add(total, axis, places, g * _weights(tap, g, axis))
            g = total
        return g

    return gradient


def _sum(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def table() -> dict[Any, Callable[..., Any]]:
    """Sequences of the operators of torch."""
    return {
        aten.upsample_linear1d.default: _forward(_linear),
        aten.upsample_linear1d_backward.default: _backward(_linear),
        aten.upsample_bilinear2d.default: _forward(_linear),
        aten.upsample_bilinear2d_backward.default: _backward(_linear),
        aten.upsample_trilinear3d.default: _forward(_linear),
        aten.upsample_trilinear3d_backward.default: _backward(_linear),
        aten.upsample_bicubic2d.default: _forward(_cubic),
        aten.upsample_bicubic2d_backward.default: _backward(_cubic),
    }
