"""Sorting, ranking and selecting as positions and gathers (CAP-9).

``identic::argsort`` and ``identic::argtopk`` stand for the operators of those names, which
torch has only together with the values.
"""

from __future__ import annotations

import torch
from torch import Tensor

aten = torch.ops.aten


@torch.library.custom_op("identic::argsort", mutates_args=())
def argsort(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Positions of the elements in order, equal ones as they come."""
    return torch.sort(x, dim=axis, descending=descending, stable=True).indices


@argsort.register_fake
def _argsort_type(x: Tensor, axis: int, descending: bool) -> Tensor:
    del axis, descending
    return torch.empty(x.shape, dtype=torch.int64, device=x.device)


@torch.library.custom_op("identic::argtopk", mutates_args=())
def argtopk(x: Tensor, k: int, axis: int, largest: bool) -> Tensor:
    """Positions of the ``k`` largest or smallest elements in order, the first of equal ones."""
    order: Tensor = argsort(x, axis, largest)
    return order.narrow(axis, 0, k).clone()


@argtopk.register_fake
def _argtopk_type(x: Tensor, k: int, axis: int, largest: bool) -> Tensor:
    del largest
    shape = list(x.shape)
    shape[axis] = k
    return torch.empty(shape, dtype=torch.int64, device=x.device)


def sort(x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Elements in order, and their positions."""
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    positions = argsort(x, axis, descending)
    return torch.gather(x, axis, positions), positions


def stable_sort(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """The same: every sort is stable."""
    del stable
    return sort(x, dim, descending)


def topk(
    x: Tensor, k: int, axis: int = -1, largest: bool = True, ordered: bool = True
) -> tuple[Tensor, Tensor]:
    """The largest or smallest elements in order, and their positions."""
    del ordered
    positions = argtopk(x, k, axis, largest)
    return torch.gather(x, axis, positions), positions


def kthvalue(x: Tensor, k: int, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The ``k``-th smallest element, and its position."""
    return _picked(x, _rank(x, k, axis), axis, keepdim)


def median(x: Tensor, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of the middle elements and its position; the first NaN where there is one."""
    positions = _rank(x, (x.shape[axis] + 1) // 2, axis)
    if x.is_floating_point():
        top = x.amax(axis, keepdim=True)
        positions = torch.where(torch.isnan(top), x.argmax(axis, keepdim=True), positions)
    return _picked(x, positions, axis, keepdim)


def median_of_all(x: Tensor) -> Tensor:
    """The lower of the middle elements of all."""
    return median(x.reshape(-1))[0]


def _rank(x: Tensor, k: int, axis: int) -> Tensor:
    """Position of the ``k``-th smallest element, the axis kept."""
    return aten.slice(argtopk(x, k, axis, largest=False), axis, k - 1, k)  # type: ignore[no-any-return]


def _picked(x: Tensor, positions: Tensor, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    values = torch.gather(x, axis, positions)
    return (values, positions) if keepdim else (values.squeeze(axis), positions.squeeze(axis))
