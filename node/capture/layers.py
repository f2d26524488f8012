"""Fixed sequences of layers: softmax, normalisation, activations, embeddings, losses (CAP-9)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from identic.node.capture.convolutions import by_channel, over_channels
from identic.node.capture.tensors import all_axes, constant

# ---- softmax ----------------------------------------------------------------------------------


def softmax(x: Tensor, axis: int, half_to_float: bool) -> Tensor:
    """exp(x - max) / sum."""
    del half_to_float
    e = torch.exp(x - x.amax(axis, keepdim=True))
    return e / e.sum(axis, keepdim=True)


def safe_softmax(x: Tensor, axis: int, dtype: torch.dtype | None = None) -> Tensor:
    """Softmax whose rows of nothing but -inf are zeros."""
    del dtype
    top = x.amax(axis, keepdim=True)
    e = torch.exp(x - torch.where(top == -math.inf, 0.0, top))
    total = e.sum(axis, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)


def softmax_backward(g: Tensor, y: Tensor, axis: int, dtype: torch.dtype) -> Tensor:
    """y * (g - sum(g * y))."""
    del dtype
    return y * (g - (g * y).sum(axis, keepdim=True))


def log_softmax(x: Tensor, axis: int, half_to_float: bool) -> Tensor:
    """x - max - log(sum(exp(x - max)))."""
    del half_to_float
    z = x - x.amax(axis, keepdim=True)
    return z - torch.log(torch.exp(z).sum(axis, keepdim=True))


def log_softmax_backward(g: Tensor, y: Tensor, axis: int, dtype: torch.dtype) -> Tensor:
    """g - exp(y) * sum(g)."""
    del dtype
    return g - torch.exp(y) * g.sum(axis, keepdim=True)


# ---- normalisation ----------------------------------------------------------------------------


def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) * rsqrt(variance + eps) * weight + bias, with the two-pass variance."""
    axes = all_axes(x)[x.dim() - len(shape) :]
    scale = 1 / math.prod(shape)
    mean = x.sum(axes, keepdim=True) * scale
    centred = x - mean
    rstd = torch.rsqrt((centred * centred).sum(axes, keepdim=True) * scale + eps)
    y = centred * rstd
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y, mean, rstd


def layer_norm_backward(
    g: Tensor,
    x: Tensor,
    shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias."""
    del bias
    lead = x.dim() - len(shape)
    axes, outer = all_axes(x)[lead:], all_axes(x)[:lead]
    scale = 1 / math.prod(shape)
    normal = (x - mean) * rstd
    inner = g * weight if weight is not None else g
    dx = None
    if mask[0]:
        level = inner.sum(axes, keepdim=True) * scale
        slope = (inner * normal).sum(axes, keepdim=True) * scale
        dx = (inner - level - normal * slope) * rstd
    return dx, (g * normal).sum(outer) if mask[1] else None, g.sum(outer) if mask[2] else None


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Output, mean, rstd, and the running statistics after the step."""
    n = x.numel() // x.shape[1]
    if training:
        mean = over_channels(x) * (1 / n)
        centred = x - by_channel(mean, x)
        var = over_channels(centred * centred) * (1 / n)
        rstd = torch.rsqrt(var + eps)
        new_mean = running_mean * (1 - momentum) + mean * momentum
        new_var = running_var * (1 - momentum) + var * (n / (n - 1)) * momentum
    else:
        mean, rstd, new_mean, new_var = (
            running_mean,
            torch.rsqrt(running_var + eps),
            running_mean,
            running_var,
        )
        centred = x - by_channel(mean, x)
    y = centred * by_channel(rstd, x)
    if weight is not None:
        y = y * by_channel(weight, x)
    if bias is not None:
        y = y + by_channel(bias, x)
    return y, mean, rstd, new_mean, new_var


def batch_norm_backward(
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor | None,
    rstd: Tensor | None,
    training: bool,
    eps: float,
    mask: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of input, weight and bias."""
    del mask
    n = x.numel() // x.shape[1]
    if not training and running_mean is not None and running_var is not None:
        mean, rstd = running_mean, torch.rsqrt(running_var + eps)
    if mean is None or rstd is None:
        raise TypeError("batch norm without statistics")
    normal = (x - by_channel(mean, x)) * by_channel(rstd, x)
    level, slope = over_channels(g), over_channels(g * normal)
    k = by_channel(rstd if weight is None else rstd * weight, x)
    if training:
        g = g - by_channel(level * (1 / n), x) - normal * by_channel(slope * (1 / n), x)
    return g * k, slope, level


# ---- activations ------------------------------------------------------------------------------

_TANH_SCALE = math.sqrt(2 / math.pi)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x/2 * (1 + erf(x / sqrt 2)), or the form with tanh."""
    if approximate == "none":
        return x * 0.5 * (torch.erf(x * math.sqrt(0.5)) + 1)
    return x * 0.5 * (torch.tanh((x + x * x * x * 0.044715) * _TANH_SCALE) + 1)


def gelu_backward(g: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
    """Derivative of ``gelu``."""
    if approximate == "none":
        density = torch.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return g * ((torch.erf(x * math.sqrt(0.5)) + 1) * 0.5 + x * density)
    t = torch.tanh((x + x * x * x * 0.044715) * _TANH_SCALE)
    slope = (x * x * (3 * 0.044715) + 1) * _TANH_SCALE
    return g * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * slope)


def silu_backward(g: Tensor, x: Tensor) -> Tensor:
    """Derivative of ``x * sigmoid(x)``."""
    s = torch.sigmoid(x)
    return g * s * (1 + x * (1 - s))


def clamp(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    """Between two numbers."""
    if low is not None:
        x = torch.maximum(x, constant(x, low))
    return x if high is None else torch.minimum(x, constant(x, high))


def clamp_between(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Between two tensors."""
    if low is not None:
        x = torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


# ---- embedding and losses ---------------------------------------------------------------------


def embedding(
    weight: Tensor, index: Tensor, padding: int = -1, scale: bool = False, sparse: bool = False
) -> Tensor:
    """Rows of a table."""
    del padding, scale, sparse
    rows = torch.index_select(weight, 0, index.reshape(-1))
    return rows.view([*index.shape, weight.shape[1]])


def embedding_backward(g: Tensor, index: Tensor, count: int, padding: int, scale: bool) -> Tensor:
    """Gradients added to the rows they belong to, in the order of the indices."""
    del scale
    table = torch.zeros(count, g.shape[-1], dtype=g.dtype, device=g.device)
    rows, flat = g.reshape(-1, g.shape[-1]), index.reshape(-1)
    if padding >= 0:
        rows = torch.where((flat != padding)[:, None], rows, 0.0)
    return torch.index_add(table, 0, flat, rows)


def _nll_weights(
    target: Tensor, weight: Tensor | None, ignore: int, like: Tensor
) -> tuple[Tensor, Tensor]:
    """Targets with ignored ones made 0, and the weight of each example."""
    counted = target != ignore
    safe = torch.where(counted, target, 0)
    weights = counted.to(like.dtype)
    if weight is not None:
        weights = weights * torch.index_select(weight, 0, safe.reshape(-1)).view(target.shape)
    return safe, weights


def nll(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore: int
) -> tuple[Tensor, Tensor]:
    """Negative log likelihood of the targets, and the sum of the weights."""
    if x.dim() == 1:
        x, target = x[None], target[None]
    safe, weights = _nll_weights(target, weight, ignore, x)
    losses = -torch.gather(x, 1, safe.unsqueeze(1)).squeeze(1) * weights
    total = weights.sum()
    if reduction == 0:
        return losses, total
    return (losses.sum() / total if reduction == 1 else losses.sum()), total


def nll_backward(
    g: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore: int,
    total: Tensor,
) -> Tensor:
    """The gradient at each target, zero elsewhere."""
    vector = x.dim() == 1
    if vector:
        x, target = x[None], target[None]
    safe, weights = _nll_weights(target, weight, ignore, x)
    scaled = -g * weights
    if reduction == 1:
        scaled = scaled / total
    ladder = torch.arange(x.shape[1], device=x.device).view([1, -1, *([1] * (x.dim() - 2))])
    dx = torch.where(ladder == safe.unsqueeze(1), scaled.unsqueeze(1), 0.0)
    return dx[0] if vector else dx
