"""Convolutions of torch as the project's own, with bias and gradients (CAP-20)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from identic.node.capture.windows import call, each

aten = torch.ops.aten


def over_channels(x: Tensor) -> Tensor:
    """Sum for each channel of (N, C, space...): over space, then over the examples."""
    if x.dim() > 2:
        x = x.sum(list(range(2, x.dim())))
    return x.sum([0])


def by_channel(values: Tensor, like: Tensor) -> Tensor:
    """A number for each channel, to broadcast over (N, C, space...)."""
    return values.view([1, -1, *([1] * (like.dim() - 2))])


def _geometry(
    x: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> dict[str, Any]:
    """Attributes that convolutions share."""
    axes = x.dim() - 2
    if axes not in (1, 2):
        raise NotImplementedError(f"a convolution over {axes} axes; there are those over 1 and 2")
    sides = each(padding, axes)
    return {
        "after": sides,
        "before": sides,
        "dilation": each(dilation, axes),
        "groups": groups,
        "stride": each(stride, axes),
    }


def _spread_size(x: Tensor, w: Tensor, given: dict[str, Any], extra: Sequence[int]) -> list[int]:
    """Lengths of a transposed convolution's result."""
    more = each(extra, x.dim() - 2)
    if any(e >= s for e, s in zip(more, given["stride"], strict=True)):
        raise NotImplementedError(
            "a transposed convolution whose output padding is no less than its stride"
        )
    rows = zip(
        x.shape[2:],
        w.shape[2:],
        given["stride"],
        given["before"],
        given["dilation"],
        more,
        strict=True,
    )
    return [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in rows]


def convolution(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    extra: Sequence[int],
    groups: int,
) -> Tensor:
    """``conv``, or ``conv_dx`` for a transposed convolution; plus the bias."""
    given = _geometry(x, stride, padding, dilation, groups)
    if transposed:
        y = call("conv_dx", x, w, **given, size=_spread_size(x, w, given, extra))
    else:
        y = call("conv", x, w, **given)
    return y if bias is None else y + by_channel(bias, y)


def convolution_backward(
    g: Tensor,
    x: Tensor,
    w: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    extra: Sequence[int],
    groups: int,
    mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias."""
    del bias_sizes, extra
    given = _geometry(x, stride, padding, dilation, groups)
    dx = dw = None
    if mask[0] and transposed:
        dx = call("conv", g, w, **given)
    elif mask[0]:
        dx = call("conv_dx", g, w, **given, size=x.shape[2:])
    if mask[1]:
        ends = (x, g) if transposed else (g, x)
        dw = call("conv_dw", *ends, **given, window=w.shape[2:])
    return dx, dw, over_channels(g) if mask[2] else None


def table() -> dict[Any, Callable[..., Any]]:
    """Sequences of the operators of torch."""
    return {
        aten.convolution.default: convolution,
        aten.convolution_backward.default: convolution_backward,
    }
