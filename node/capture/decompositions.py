"""Fixed sequences for the composite operators of torch (CAP-9).

The second pass of tracing replaces each of these operators by the sequence here, written
with simpler torch operations; what is left has lowering rules. The sequences are part of
what a captured program computes: a change here changes the digest of programs captured from
then on, and no existing one. Operators not listed fall to torch's own core decompositions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from identic.node.capture import convolutions, interpolation, layers, norms, pools, sorting, tensors

aten = torch.ops.aten


def own() -> dict[Any, Callable[..., Any]]:
    """The project's own sequences, of all files."""
    return {**_basic(), **convolutions.table(), **pools.table(), **interpolation.table()}


def _basic() -> dict[Any, Callable[..., Any]]:
    """The sequences named in this file."""
    return {
        aten._softmax.default: layers.softmax,  # noqa: SLF001 - the operator is called so
        aten._safe_softmax.default: layers.safe_softmax,  # noqa: SLF001
        aten._softmax_backward_data.default: layers.softmax_backward,  # noqa: SLF001
        aten._log_softmax.default: layers.log_softmax,  # noqa: SLF001
        aten._log_softmax_backward_data.default: layers.log_softmax_backward,  # noqa: SLF001
        aten.native_layer_norm.default: layers.layer_norm,
        aten.native_layer_norm_backward.default: layers.layer_norm_backward,
        aten._native_batch_norm_legit_functional.default: layers.batch_norm,  # noqa: SLF001
        aten._native_batch_norm_legit.no_stats: norms.batch_statistics,  # noqa: SLF001
        aten.native_group_norm.default: norms.group_norm,
        aten.native_group_norm_backward.default: norms.group_norm_backward,
        aten._weight_norm_interface.default: norms.weight_norm,  # noqa: SLF001
        aten._weight_norm_interface_backward.default: norms.weight_norm_backward,  # noqa: SLF001
        aten.native_batch_norm_backward.default: layers.batch_norm_backward,
        aten.gelu.default: layers.gelu,
        aten.gelu_backward.default: layers.gelu_backward,
        aten.silu.default: lambda x: x * torch.sigmoid(x),
        aten.silu_backward.default: layers.silu_backward,
        aten.sigmoid_backward.default: lambda g, y: g * y * (1 - y),
        aten.tanh_backward.default: lambda g, y: g * (1 - y * y),
        aten.relu.default: lambda x: torch.maximum(x, tensors.constant(x, 0)),
        aten.threshold_backward.default: lambda g, x, t: torch.where(x <= t, 0.0, g),
        aten.leaky_relu.default: lambda x, s=0.01: torch.where(x > 0, x, x * s),
        aten.leaky_relu_backward.default: lambda g, x, s, _: torch.where(x > 0, g, g * s),
        aten.clamp.default: layers.clamp,
        aten.clamp.Tensor: layers.clamp_between,
        aten.clamp_min.Tensor: layers.clamp_between,
        aten.clamp_max.Tensor: lambda x, high: layers.clamp_between(x, None, high),
        aten.clamp_min.default: layers.clamp,
        aten.clamp_max.default: lambda x, high: layers.clamp(x, None, high),
        aten.embedding.default: layers.embedding,
        aten.embedding_dense_backward.default: layers.embedding_backward,
        aten.nll_loss_forward.default: layers.nll,
        aten.nll_loss_backward.default: layers.nll_backward,
        aten.nll_loss2d_forward.default: layers.nll,
        aten.nll_loss2d_backward.default: layers.nll_backward,
        aten.slice_backward.default: tensors.slice_backward,
        aten.select_backward.default: tensors.select_backward,
        aten.split.Tensor: tensors.split,
        aten.unsafe_split.Tensor: tensors.split,
        aten.split_with_sizes.default: tensors.split,
        aten.unbind.int: lambda x, a=0: tuple(aten.select(x, a, i) for i in range(x.shape[a])),
        aten.stack.default: lambda xs, a=0: torch.cat([x.unsqueeze(a) for x in xs], a),
        aten.mean.dim: tensors.mean,
        aten.mean.default: lambda x, dtype=None: tensors.mean(x, dtype=dtype),
        aten.var_mean.correction: lambda x, dim=None, correction=1, keepdim=False: tensors.variance(
            x, dim, correction, keepdim
        ),
        aten.var.correction: lambda x, dim=None, correction=1, keepdim=False: tensors.variance(
            x, dim, correction, keepdim
        )[0],
        aten.linalg_vector_norm.default: tensors.vector_norm,
        aten.sum.default: tensors.total,
        aten.max.default: lambda x: x.amax(tensors.all_axes(x)),
        aten.min.default: lambda x: x.amin(tensors.all_axes(x)),
        aten.max.dim: lambda x, a, k=False: (x.amax(a, k), x.argmax(a, k)),
        aten.min.dim: lambda x, a, k=False: (x.amin(a, k), x.argmin(a, k)),
        aten.sort.default: sorting.sort,
        aten.sort.stable: sorting.stable_sort,
        aten.topk.default: sorting.topk,
        aten.kthvalue.default: sorting.kthvalue,
        aten.median.dim: sorting.median,
        aten.median.default: sorting.median_of_all,
        aten.fmax.default: lambda a, b: torch.where(
            torch.isnan(a), b, torch.where(torch.isnan(b), a, torch.maximum(a, b))
        ),
        aten.fmin.default: lambda a, b: torch.where(
            torch.isnan(a), b, torch.where(torch.isnan(b), a, torch.minimum(a, b))
        ),
        aten.hypot.default: lambda a, b: torch.sqrt(a * a + b * b),
        aten.tan.default: lambda x: torch.sin(x) / torch.cos(x),
        aten.log2.default: lambda x: torch.log(x) * (1 / math.log(2)),
        aten.log10.default: lambda x: torch.log(x) * (1 / math.log(10)),
        aten.erfc.default: lambda x: 1 - torch.erf(x),
        aten.exp2.default: lambda x: torch.exp(x * math.log(2)),
        aten.softshrink_backward.default: tensors.shrink_backward,
        aten.hardshrink_backward.default: tensors.shrink_backward,
        aten.pow.Tensor_Scalar: tensors.power,
        aten.reciprocal.default: lambda x: tensors.constant(x, 1.0) / x,
        aten.rsub.Scalar: lambda x, s, alpha=1: (
            tensors.constant(x, s) - (x if alpha == 1 else x * alpha)
        ),
        aten.lerp.Scalar: lambda a, b, w: a + (b - a) * w,
        aten.expm1.default: lambda x: torch.exp(x) - 1,
        aten.log1p.default: lambda x: torch.log(x + 1),
        aten.roll.default: tensors.roll,
        aten.tril.default: tensors.tril,
        aten.triu.default: tensors.triu,
        aten.addmm.default: tensors.addmm,
        aten.baddbmm.default: tensors.addmm,
        aten.mv.default: lambda a, b: a.mm(b[:, None])[:, 0],
        aten.addmv.default: lambda c, a, b, beta=1, alpha=1: tensors.addmm(
            c[:, None], a, b[:, None], beta, alpha
        )[:, 0],
        aten.addbmm.default: tensors.addbmm,
        aten.dot.default: lambda a, b: (a * b).sum([0]),
        aten.zeros_like.default: tensors.filled(0),
        aten.ones_like.default: tensors.filled(1),
        aten.new_zeros.default: tensors.filled(0),
        aten.new_ones.default: tensors.filled(1),
        aten.zeros.default: tensors.made(0),
        aten.ones.default: tensors.made(1),
        aten.scalar_tensor.default: tensors.scalar_tensor,
    }


_TORCHS = (
    aten.addcmul,
    aten.addcdiv,
    aten.lerp.Tensor,
    aten.mse_loss,
    aten.mse_loss_backward,
    aten.smooth_l1_loss,
    aten.smooth_l1_loss_backward,
    aten.huber_loss,
    aten.binary_cross_entropy_with_logits,
    aten.hardtanh,
    aten.hardtanh_backward,
    aten.elu,
    aten.elu_backward,
    aten.softplus,
    aten.softplus_backward,
    aten.masked_fill,
    aten.new_full,
)


@cache
def table() -> dict[Any, Callable[..., Any]]:
    """Every decomposition of the second pass."""
    merged: dict[Any, Callable[..., Any]] = {
        **core_aten_decompositions(),
        **get_decompositions(_TORCHS),
    }
    merged.update(own())
    merged.pop(aten.cat.default, None)
    return merged
