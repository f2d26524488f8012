"""Fixed sequences of norms without state: of weights, and of a batch by itself (CAP-9)."""

from __future__ import annotations

import torch
from torch import Tensor

from identic.node.capture import layers
from identic.node.capture.tensors import all_axes


def batch_statistics(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm by the batch's own statistics, which nobody keeps: output, mean, rstd."""
    nothing = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device)
    if not training:
        raise NotImplementedError("batch norm without statistics")
    return layers.batch_norm(x, weight, bias, nothing, nothing, training, momentum, eps)[:3]


def weight_norm(v: Tensor, g: Tensor, axis: int = 0) -> tuple[Tensor, Tensor]:
    """A direction with a length of its own along one axis: v * (g / norm), and the norm."""
    others = [a for a in all_axes(v) if a != axis]
    norm = torch.sqrt((v * v).sum(others, keepdim=True))
    return v * (g / norm), norm


def weight_norm_backward(
    grad: Tensor, v: Tensor, g: Tensor, norm: Tensor, axis: int
) -> tuple[Tensor, Tensor]:
    """Gradients of direction and length."""
    others = [a for a in all_axes(v) if a != axis]
    slope = (grad * v).sum(others, keepdim=True) / norm
    return (grad - v * (slope / norm)) * (g / norm), slope
