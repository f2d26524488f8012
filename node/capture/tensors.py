"""Fixed sequences of operations on plain tensors: views, reductions, powers (CAP-9)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

MOST_POWER = 16
"""Largest exponent of a power."""


def constant(like: Tensor, value: float) -> Tensor:
    """A scalar of the same element type."""
    return torch.full((), value, dtype=like.dtype, device=like.device)


def all_axes(x: Tensor) -> list[int]:
    """Every axis."""
    return list(range(x.dim()))


def _padded(g: Tensor, sizes: Sequence[int], axis: int, start: int) -> Tensor:
    """``g`` placed at ``start`` along ``axis`` in zeros of shape ``sizes``."""
    amounts = [0] * (2 * len(sizes))
    at = 2 * (len(sizes) - 1 - axis)
    amounts[at], amounts[at + 1] = start, sizes[axis] - start - g.shape[axis]
    return aten.constant_pad_nd(g, amounts, 0.0)  # type: ignore[no-any-return]


def slice_backward(
    g: Tensor, sizes: Sequence[int], axis: int, start: int, end: int, step: int
) -> Tensor:
    """Zeros around the gradient of a range, and between its elements when it has a step."""
    del end
    axis %= len(sizes)
    start = start + sizes[axis] if start < 0 else start
    if step > 1:
        shape = [*g.shape[: axis + 1], step, *g.shape[axis + 1 :]]
        spread = _padded(g.unsqueeze(axis + 1), shape, axis + 1, 0)
        g = aten.slice(spread.flatten(axis, axis + 1), axis, 0, sizes[axis] - start)
    return _padded(g, sizes, axis, start)


def select_backward(g: Tensor, sizes: Sequence[int], axis: int, index: int) -> Tensor:
    """Zeros around the gradient of one index."""
    axis %= len(sizes)
    return _padded(g.unsqueeze(axis), sizes, axis, index % sizes[axis])


def split(x: Tensor, sizes: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Pieces along one axis."""
    length = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, length - at) for at in range(0, length, sizes)]
    pieces, start = [], 0
    for size in sizes:
        pieces.append(aten.slice(x, axis, start, start + size))
        start += size
    return tuple(pieces)


def mean(
    x: Tensor,
    axes: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Sum times 1/n."""
    if dtype is not None:
        x = x.to(dtype)
    chosen = list(axes) if axes else all_axes(x)
    return x.sum(chosen, keepdim) * (1 / math.prod(x.shape[a] for a in chosen))


def variance(
    x: Tensor,
    axes: Sequence[int] | None = None,
    correction: float | None = 1,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    """Two-pass variance, and the mean."""
    chosen = list(axes) if axes else all_axes(x)
    n = math.prod(x.shape[a] for a in chosen)
    middle = x.sum(chosen, True) * (1 / n)
    centred = x - middle
    freedom = n - (1 if correction is None else correction)
    var = (centred * centred).sum(chosen, keepdim) * (1 / freedom)
    return var, middle if keepdim else middle.reshape(var.shape)


def vector_norm(
    x: Tensor,
    order: float = 2,
    axes: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Sum of magnitudes, Euclidean length, largest or least magnitude, or number of non-zeros."""
    if dtype not in (None, x.dtype) or order not in (0, 1, 2, math.inf, -math.inf):
        raise NotImplementedError("a norm other than 0, 1, 2, inf and -inf")
    chosen = all_axes(x) if axes is None else list(axes)
    if order == 0:
        return (x != 0).to(x.dtype).sum(chosen, keepdim)
    if order == 1:
        return x.abs().sum(chosen, keepdim)
    if order == 2:
        return torch.sqrt((x * x).sum(chosen, keepdim))
    return x.abs().amax(chosen, keepdim) if order > 0 else x.abs().amin(chosen, keepdim)


def power(x: Tensor, exponent: float) -> Tensor:
    """Powers that are products and square roots: of whole and half exponents up to 16."""
    if exponent == 0.5:
        return torch.sqrt(x)
    if exponent == -0.5:
        return torch.rsqrt(x)
    whole, half = divmod(abs(exponent), 1)
    if half not in (0, 0.5) or abs(exponent) > MOST_POWER:
        raise NotImplementedError(f"pow with an exponent other than n or n + 0.5 to {MOST_POWER}")
    if exponent == 0:
        return torch.ones_like(x)
    result = x
    for _ in range(int(whole) - 1):
        result = result * x
    if half:
        result = result * torch.sqrt(x)
    if exponent < 0:
        return constant(x, 1.0) / result
    return result.clone() if exponent == 1 else result


def shrink_backward(g: Tensor, x: Tensor, limit: float = 0.5) -> Tensor:
    """The gradient where a shrinking function is not zero."""
    return torch.where((x >= -limit) & (x <= limit), 0.0, g)


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle, by comparing row and column."""
    rows = torch.arange(x.shape[-2], device=x.device)[:, None]
    columns = torch.arange(x.shape[-1], device=x.device)[None]
    kept = columns <= rows + diagonal
    return x.logical_and(kept) if x.dtype == torch.bool else torch.where(kept, x, 0)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle, by comparing row and column."""
    rows = torch.arange(x.shape[-2], device=x.device)[:, None]
    columns = torch.arange(x.shape[-1], device=x.device)[None]
    kept = columns >= rows + diagonal
    return x.logical_and(kept) if x.dtype == torch.bool else torch.where(kept, x, 0)


def total(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Sum of all elements."""
    whole = x.dtype if x.is_floating_point() else torch.int64
    return x.to(dtype or whole).sum(all_axes(x))


def addmm(bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """bias * beta + x @ y * alpha."""
    product = x.mm(y) if x.dim() == 2 else x.bmm(y)
    if alpha != 1:
        product = product * alpha
    return product + (bias if beta == 1 else bias * beta)


def addbmm(c: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """c * beta + the sum of x[i] @ y[i] * alpha."""
    product = x.bmm(y).sum([0])
    if alpha != 1:
        product = product * alpha
    return product + (c if beta == 1 else c * beta)


def filled(value: float) -> Callable[..., Tensor]:
    """``zeros_like`` and its kin."""

    def fill(x: Tensor, size: Sequence[int] | None = None, **options: Any) -> Tensor:
        shape = x.shape if size is None else size
        return torch.full(shape, value, dtype=options.get("dtype") or x.dtype, device=x.device)

    return fill


def made(value: float) -> Callable[..., Tensor]:
    """``zeros`` and its kin."""

    def make(size: Sequence[int], **options: Any) -> Tensor:
        dtype = options.get("dtype") or torch.float32
        return torch.full(size, value, dtype=dtype, device=options.get("device"))

    return make


def roll(x: Tensor, shifts: Sequence[int], axes: Sequence[int] = ()) -> Tensor:
    """Elements moved along axes, those pushed out coming in at the other end."""
    if not axes:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, axis in zip(shifts, axes, strict=True):
        length = x.shape[axis]
        cut = -shift % length if length else 0
        if cut:
            x = torch.cat([aten.slice(x, axis, cut, length), aten.slice(x, axis, 0, cut)], axis)
    return x.clone()


def scalar_tensor(value: float, **options: Any) -> Tensor:
    """A number as a tensor."""
    dtype = options.get("dtype") or torch.float32
    return torch.full((), value, dtype=dtype, device=options.get("device"))
