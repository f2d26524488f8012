"""Fixed sequences of norms without state: of weights, of groups, of a batch by itself (CAP-9)."""

from __future__ import annotations

from collections.abc import Sequence

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


def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    places: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Groups of channels by their own statistics: output, mean, rstd, the last two (N, groups)."""
    del channels, places
    rows = x.reshape(batch, groups, -1)
    scale = 1 / rows.shape[2]
    mean = rows.sum(2) * scale
    centred = rows - mean[:, :, None]
    rstd = torch.rsqrt((centred * centred).sum(2) * scale + eps)
    y = (centred * rstd[:, :, None]).view(x.shape)
    shape = [1, -1, *([1] * (x.dim() - 2))]
    if weight is not None:
        y = y * weight.view(shape)
    if bias is not None:
        y = y + bias.view(shape)
    return y, mean, rstd


def group_norm_backward(
    g: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    batch: int,
    channels: int,
    places: int,
    groups: int,
    mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias."""
    rows = x.reshape(batch, groups, -1)
    normal = (rows - mean[:, :, None]) * rstd[:, :, None]
    by_channel = (batch, channels, places)
    slopes, levels = g.reshape(by_channel), (g.reshape(rows.shape) * normal).view(by_channel)
    dx = None
    if mask[0]:
        inner = slopes if weight is None else slopes * weight[:, None]
        inner = inner.reshape(rows.shape)
        scale = 1 / rows.shape[2]
        level = inner.sum(2, keepdim=True) * scale
        slope = (inner * normal).sum(2, keepdim=True) * scale
        dx = ((inner - level - normal * slope) * rstd[:, :, None]).view(x.shape)
    return dx, levels.sum((0, 2)) if mask[1] else None, slopes.sum((0, 2)) if mask[2] else None
