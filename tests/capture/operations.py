"""Operations of torch by group, each as functions of one (8, 12) tensor of float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

# mypy: disable-error-code="no-any-return,no-untyped-call"

Operation = Callable[[Tensor], Tensor]

ROWS = torch.tensor([3, 0, 5, 3])
"""Rows of a tensor, one of them twice."""

COLUMNS = torch.tensor([[2, 7, 2, 11, 0]] * 8)
"""Columns for each of eight rows, one of them twice in each."""

DISTINCT = torch.tensor([[2, 7, 4, 11, 0]] * 8)
"""The same without a repetition, where torch leaves open what a repetition does."""


def _written(x: Tensor, write: Callable[[Tensor], object]) -> Tensor:
    y = x * 1.0
    write(y)
    return y


def _set(place: Any, value: float | Operation) -> Operation:
    """A function that writes to a place of a copy."""

    def run(x: Tensor) -> Tensor:
        given = value(x) if callable(value) else value
        return _written(x, lambda y: y.__setitem__(place, given))

    return run


ALL = slice(None)

SUMS_AND_ORDER: tuple[Operation, ...] = (
    lambda x: x.cumsum(1),
    lambda x: x.cumsum(0),
    lambda x: (x > 0).cumsum(1),
    lambda x: x.view(2, 4, 12).cumsum(-2),
    lambda x: x.sort(1)[0],
    lambda x: x.sort(0, descending=True)[0],
    lambda x: torch.sort(x, dim=1, stable=True)[1],
    lambda x: (x * 2).int().sort(dim=1, descending=True, stable=True)[1],
    lambda x: (x > 0).sort(dim=1, stable=True)[0],
    lambda x: x.argsort(1, descending=True),
    torch.msort,
    lambda x: x.topk(3, 1)[0],
    lambda x: x.topk(2, 0, largest=False)[1],
    lambda x: x.kthvalue(4, 1)[0],
    lambda x: x.median(1, keepdim=True)[0],
    lambda x: x.median(),
)

EXTREMES: tuple[Operation, ...] = (
    lambda x: x.max(1)[0] + x.min(1)[0],
    lambda x: x.max(0)[1] + x.min(0)[1],
    lambda x: x.argmin(1),
    lambda x: x.argmin() + x.argmax(),
    lambda x: x.max() + x.min(),
    lambda x: torch.add(*x.aminmax(dim=1)),
    lambda x: x.argsort(1).amin(1) + x.argsort(1).abs().amax(1),
    lambda x: (x > 0).amax(1),
    lambda x: torch.fmax(x, x * 2) + torch.fmin(x, x.neg()),
    lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=x.mean()) + torch.clip(x, max=0.2),
    lambda x: torch.where(x.isnan() | x.isinf(), 0.0, x) * x.isfinite(),
    torch.nan_to_num,
    lambda x: torch.logical_xor(x > 0, x > 1),
    lambda x: x.sign() + torch.sgn(x),
)

READS: tuple[Operation, ...] = (
    lambda x: x[ROWS],
    lambda x: x[-ROWS - 1],
    lambda x: x[:, ROWS],
    lambda x: x[ROWS, ROWS],
    lambda x: x[ROWS[:, None], ROWS[None]],
    lambda x: x.view(8, 6, 2)[:, ROWS],
    lambda x: x.view(8, 6, 2)[ROWS, :, torch.tensor([0, 1, 1, 0])],
    lambda x: x.view(2, 4, 12)[:, torch.tensor([1, 3]), torch.tensor([5, 0])],
    lambda x: x.gather(1, COLUMNS),
    lambda x: x.index_select(1, ROWS),
    lambda x: x.take(ROWS),
    lambda x: x.flip(1) + x.flip((0, 1)),
    lambda x: x.roll(2, 1) + x.roll((1, -2), (0, 1)) + x.roll(3),
    lambda x: x.view(8, 3, 4).rot90(1, (1, 2)),
    lambda x: x[:, :8].diagonal() + x.diagonal(2)[:8] + x.diagonal(-1)[0],
    lambda x: x.view(2, 4, 12).diagonal(1, 0, 2),
    lambda x: torch.diag(x[0]) + torch.diag_embed(x[1]) + x[:8, :8].trace(),
    lambda x: x.unfold(1, 4, 3) * 2,
    lambda x: x.unfold(0, 3, 2),
)

WRITES: tuple[Operation, ...] = (
    lambda x: x.scatter(1, DISTINCT, x[:, :5] * 2),
    lambda x: x.scatter(1, COLUMNS, 2.0),
    lambda x: x.scatter(0, ROWS[1:3, None].expand(2, 5), x[:2, :5] * 3),
    lambda x: x.scatter_add(1, COLUMNS, x[:, :5]),
    lambda x: x.scatter_add(0, ROWS[:, None].expand(4, 6), x[:4, :6]),
    lambda x: x.scatter_reduce(1, COLUMNS, x[:, :5], "sum"),
    lambda x: x.scatter(1, x.argmax(1, keepdim=True), x.sum(1, keepdim=True)),
    lambda x: x.index_copy(1, ROWS[1:], x[:, 6:9]),
    lambda x: x.index_fill(0, ROWS, 0.5),
    lambda x: x.index_add(1, ROWS, x[:, 5:9], alpha=2.0),
    lambda x: torch.index_put(x, (ROWS[1:],), x[5:8]),
    lambda x: torch.index_put(x, (ROWS, ROWS), x[0, :4], accumulate=True),
    lambda x: torch.index_put(x, (torch.arange(8), torch.tensor([2])), x[:, 0]),
    _set((ALL, ROWS[1:]), 0.25),
    _set((ALL, ROWS[1:]), lambda x: x[:, :3]),
    _set((ALL, slice(1, None, 3)), lambda x: x[:, :4]),
    _set((ALL, slice(1, 5)), 1.0),
    _set((ROWS[1:], ROWS[1:] + 2), lambda x: x[0, :3]),
    lambda x: _written(x, lambda y: y.diagonal().mul_(2.0)),
    lambda x: x.masked_fill(x > 0, 0.5) + x.masked_fill(x > 0, x.sum()),
)

SHAPES: tuple[Operation, ...] = (
    lambda x: torch.stack([x, x * 2], 1),
    lambda x: torch.cat([x, x[:, :3] * 2], 1),
    lambda x: torch.hstack([x, x * 2]) + torch.vstack([x, x])[:8].repeat(1, 2),
    lambda x: x.repeat(2, 1, 3),
    lambda x: x.repeat_interleave(2, 1),
    lambda x: x.tile(1, 2),
    lambda x: x.tril() + x.triu(2) + x.tril(-1),
    lambda x: torch.ones(12, 12).tril()[:8] * x,
    lambda x: F.one_hot(x.argmax(1), 12),
    lambda x: x @ torch.eye(12, dtype=x.dtype),
    lambda x: torch.cat(x.chunk(5, 1)[::-1], 1),
    lambda x: torch.stack(x.unbind(1)[::-1], 1),
    lambda x: torch.cat(torch.tensor_split(x, 5, 1)[1:], 1),
    lambda x: F.pad(x[:, None], (2, 3), mode="reflect"),
    lambda x: F.pad(x[:, None], (2, 3), mode="circular"),
    lambda x: torch.diff(x, dim=1) + x.narrow(1, 1, 11),
    lambda x: torch.outer(x[0], x[1]) + torch.einsum("bi,bj->ij", x, x),
)

NORMS: tuple[Operation, ...] = (
    lambda x: x.norm() + x.norm(1) + x.norm(math.inf),
    lambda x: torch.linalg.vector_norm(x, 1, dim=1) + torch.linalg.vector_norm(x, -math.inf, 1),
    lambda x: torch.linalg.vector_norm(x.detach(), 0, dim=1),
    lambda x: torch.linalg.matrix_norm(x) + x.var() + x.std(),
    lambda x: x.var(1) + x.std(1, unbiased=False) + torch.add(*torch.var_mean(x, 1)),
    lambda x: torch.add(*torch.std_mean(x, 0)),
    lambda x: torch._weight_norm(x, x[:1] + 2, 1) + torch._weight_norm(x, x[:, :1] + 2, 0),
    lambda x: F.normalize(x, dim=1) + F.layer_norm(x, (12,)) + F.rms_norm(x, (12,), eps=1e-5),
    lambda x: F.group_norm(x, 4) + F.batch_norm(x, None, None, training=True),
    lambda x: F.instance_norm(x.view(8, 3, 4)),
    lambda x: F.cosine_similarity(x, x + 1, dim=1) + F.pairwise_distance(x, x + 1),
    lambda x: torch.addmv(x[0, :8], x, x[1], beta=0.5, alpha=2.0),
    lambda x: torch.addbmm(x[:3, :3], x.view(8, 3, 4), x.view(8, 4, 3)),
    lambda x: x.logsumexp(1) + torch.logaddexp(x, x * 2).sum(1),
)

ACTIVATIONS: tuple[Operation, ...] = (
    *(F.silu, F.hardtanh, F.relu6, F.leaky_relu, F.softsign, F.logsigmoid, F.tanhshrink),
    *(F.hardswish, F.hardsigmoid, F.mish, F.selu, F.celu, F.softshrink, F.hardshrink),
    lambda x: F.gelu(x, approximate="tanh") + F.gelu(x),
    lambda x: F.elu(x, 0.5) + F.softplus(x, 2, 3) + F.threshold(x, 0.1, 0.2),
    lambda x: F.glu(torch.cat([x, x * 2], 1)) + F.prelu(x, x[0, :1] * 0 + 0.25),
    lambda x: F.log_softmax(x, 1) + F.softmin(x, 0),
)

POWERS: tuple[Operation, ...] = (
    lambda x: x**2 + x**3 + x**0 + x**1 + x.square() + x**10,
    lambda x: (x.abs() + 1) ** -1 + (x.abs() + 1) ** -3,
    lambda x: (x.abs() + 1) ** 0.5 + (x.abs() + 1) ** -0.5,
    lambda x: (x.abs() + 1) ** 1.5 + (x.abs() + 1) ** -2.5,
    lambda x: (x * x + 1).rsqrt() + (x * x + 1).reciprocal() + (x * x + 1).sqrt(),
    lambda x: (x.abs() + 1).log2() + (x.abs() + 1).log10() + x.exp2(),
    lambda x: x.abs().log1p() + x.expm1() + torch.erfc(x) + x.tan(),
    lambda x: torch.hypot(x, x + 1) + torch.lerp(x, x * 2, 0.3) + torch.lerp(x, x * 2, x),
    lambda x: torch.addcmul(x, x, x, value=0.5) + torch.addcdiv(x, x, x * x + 1, value=2.0),
    lambda x: torch.xlogy(x.abs(), x.abs() + 1),
)

_T = torch.linspace(0.1, 0.9, 96).view(8, 12)


def _t(x: Tensor) -> Tensor:
    """Targets in [0, 1), float32 numbers, in the element type of ``x``."""
    return _T.to(x.dtype)


_Y = torch.tensor([0, 3, 11, 3, 7, 2, 5, 1])

LOSSES: tuple[Operation, ...] = (
    lambda x: F.mse_loss(x, _t(x)) + F.mse_loss(x, _t(x), reduction="sum"),
    lambda x: F.l1_loss(x, _t(x)) + F.smooth_l1_loss(x, _t(x), beta=0.5),
    lambda x: F.huber_loss(x, _t(x), delta=0.7, reduction="sum"),
    lambda x: F.kl_div(x.log_softmax(1), _t(x), reduction="batchmean"),
    lambda x: F.kl_div(x.log_softmax(1), _t(x).log(), reduction="sum", log_target=True),
    lambda x: F.binary_cross_entropy(x.sigmoid(), _t(x)),
    lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype), pos_weight=_t(x)[0] + 1),
    lambda x: F.nll_loss(x.log_softmax(1), _Y, reduction="sum"),
    lambda x: F.cross_entropy(x, _Y, label_smoothing=0.1, reduction="none"),
    lambda x: F.cross_entropy(x, _t(x)),
    lambda x: F.poisson_nll_loss(x, _t(x)) + F.soft_margin_loss(x, (_t(x) > 0.5) * 2.0 - 1),
    lambda x: F.margin_ranking_loss(x, _t(x), (_t(x) > 0.5) * 2.0 - 1),
    lambda x: F.hinge_embedding_loss(x, (_t(x) > 0.5) * 2.0 - 1),
    lambda x: (
        F.triplet_margin_loss(x, x.roll(1, 0), x.roll(2, 0))
        + F.multilabel_soft_margin_loss(x, _t(x))
    ),
    lambda x: F.cosine_embedding_loss(x, x.roll(1, 0), torch.ones(8)),
)

_PICTURE = (2, 2, 4, 6)

INTERPOLATIONS: tuple[Operation, ...] = (
    lambda x: F.interpolate(x.view(_PICTURE), scale_factor=2, mode="bilinear"),
    lambda x: F.interpolate(x.view(_PICTURE), (7, 5), mode="bilinear", align_corners=True),
    lambda x: F.interpolate(x.view(_PICTURE), (3, 9), mode="bilinear"),
    lambda x: F.interpolate(x.view(_PICTURE), scale_factor=(1.7, 0.6), mode="bilinear"),
    lambda x: F.interpolate(
        x.view(_PICTURE), scale_factor=1.7, mode="bilinear", recompute_scale_factor=True
    ),
    lambda x: F.interpolate(x.view(_PICTURE), (1, 1), mode="bilinear", align_corners=True),
    lambda x: F.interpolate(x.view(_PICTURE), scale_factor=2, mode="bicubic"),
    lambda x: F.interpolate(x.view(_PICTURE), (9, 4), mode="bicubic", align_corners=True),
    lambda x: F.interpolate(x.view(2, 4, 12), 30, mode="linear"),
    lambda x: F.interpolate(x.view(1, 2, 4, 4, 3), scale_factor=2, mode="trilinear"),
)

GROUPED: tuple[Operation, ...] = (
    lambda x: F.group_norm(x.view(_PICTURE), 1),
    lambda x: F.group_norm(x.view(2, 4, 12), 2, x[0, :4] + 2, x[1, :4]),
    lambda x: F.group_norm(x.view(1, 4, 4, 6), 4, x[0, :4] + 2),
)

GROUPS: dict[str, tuple[Operation, ...]] = {
    "sums and order": SUMS_AND_ORDER,
    "extremes": EXTREMES,
    "reads": READS,
    "writes": WRITES,
    "shapes": SHAPES,
    "norms": NORMS,
    "activations": ACTIVATIONS,
    "powers": POWERS,
    "losses": LOSSES,
    "interpolations": INTERPOLATIONS,
    "grouped": GROUPED,
}
