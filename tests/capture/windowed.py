"""Convolutions and pools computed by torch, for the interpreter: over padded operands.

The gradients are those that autograd finds of the operators themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from identic.protocol.ops.base import Call

Rule = Callable[[Call, Sequence[Tensor]], Tensor]


def _padded(call: Call, x: Tensor, value: float = 0.0) -> Tensor:
    """The operand with its padding."""
    sides = list(zip(call.integers("before"), call.integers("after"), strict=True))
    return F.pad(x, [n for pair in reversed(sides) for n in pair], value=value)


def _conv(call: Call, x: Tensor, w: Tensor) -> Tensor:
    function: Any = F.conv1d if x.dim() == 3 else F.conv2d
    moved = {n: list(call.integers(n)) for n in ("stride", "dilation")}
    result: Tensor = function(_padded(call, x), w, groups=call.integer("groups"), **moved)
    return result


def _conv_dx(call: Call, x: Sequence[Tensor]) -> Tensor:
    zeros = x[0].new_zeros(tuple(call.output.shape), requires_grad=True)
    return torch.autograd.grad(_conv(call, zeros, x[1]), [zeros], x[0])[0]


def _conv_dw(call: Call, x: Sequence[Tensor]) -> Tensor:
    zeros = x[0].new_zeros(tuple(call.output.shape), requires_grad=True)
    return torch.autograd.grad(_conv(call, x[1], zeros), [zeros], x[0])[0]


def _windows(call: Call, x: Tensor, value: float) -> Tensor:
    """(..., counts..., window...) of a padded operand."""
    padded = _padded(call, x, value)
    rank = len(call.integers("window"))
    dilated = any(a.name == "dilation" for a in call.attributes)
    steps = call.integers("dilation") if dilated else (1,) * rank
    for axis in range(rank):
        size, stride = call.integers("window")[axis], call.integers("stride")[axis]
        span = steps[axis] * (size - 1) + 1
        padded = padded.unfold(x.dim() - rank + axis, span, stride)[..., :: steps[axis]]
    return padded


def _max_pool(call: Call, x: Tensor) -> Tensor:
    rank = len(call.integers("window"))
    return _windows(call, x, float("-inf")).flatten(-rank).amax(-1)


def _max_pool_indices(call: Call, x: Tensor) -> Tensor:
    rank = len(call.integers("window"))
    size = x.shape[-rank:]
    positions = torch.arange(size.numel(), dtype=torch.float64).view(size).expand_as(x)
    values = _windows(call, x, float("-inf")).flatten(-rank)
    places = _windows(call, positions, -1.0).flatten(-rank)
    return places.gather(-1, values.argmax(-1, keepdim=True)).squeeze(-1).long()


def _max_pool_dx(call: Call, x: Sequence[Tensor]) -> Tensor:
    rank = len(call.integers("window"))
    zeros = x[0].new_zeros(tuple(call.output.shape)).flatten(-rank)
    added = zeros.scatter_add(-1, x[1].flatten(-rank), x[0].flatten(-rank))
    return added.view(tuple(call.output.shape))


def _sum_pool(call: Call, x: Tensor) -> Tensor:
    return _windows(call, x, 0.0).flatten(-len(call.integers("window"))).sum(-1)


def _sum_pool_dx(call: Call, x: Sequence[Tensor]) -> Tensor:
    zeros = x[0].new_zeros(tuple(call.output.shape), requires_grad=True)
    return torch.autograd.grad(_sum_pool(call, zeros), [zeros], x[0])[0]


RULES: dict[str, Rule] = {
    "conv": lambda call, x: _conv(call, *x),
    "conv_dx": _conv_dx,
    "conv_dw": _conv_dw,
    "max_pool": lambda call, x: _max_pool(call, *x),
    "max_pool_indices": lambda call, x: _max_pool_indices(call, *x),
    "max_pool_dx": _max_pool_dx,
    "sum_pool": lambda call, x: _sum_pool(call, *x),
    "sum_pool_dx": _sum_pool_dx,
}
"""Operators with windows."""
