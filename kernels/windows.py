"""Convolutions and pools as calls of an engine: one spatial axis becomes two."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from identic.kernels.engine import Calls
from identic.protocol.ops.base import Call

Bound = Callable[..., None]
"""``function(out, *inputs)`` on row-major arrays."""

WINDOWED = (
    *("conv", "conv_dx", "conv_dw"),
    *("max_pool", "max_pool_indices", "max_pool_dx", "sum_pool", "sum_pool_dx"),
)
"""Operators that ``bound`` knows."""

Numbers = tuple[int, ...]

_ALONE: Numbers = (1, 1, 1, 1, 0, 1)
"""An axis of one place with one window."""


def _axes(
    call: Call, size: Sequence[int], window: Sequence[int], counts: Sequence[int]
) -> list[Numbers]:
    """The numbers of the two axes: size, window, stride, dilation, before, count."""
    dilated = any(a.name == "dilation" for a in call.attributes)
    dilation = call.integers("dilation") if dilated else (1,) * len(size)
    rows = (size, window, call.integers("stride"), dilation, call.integers("before"), counts)
    found = [tuple(int(n) for n in axis) for axis in zip(*rows, strict=True)]
    return found if len(found) == 2 else [_ALONE, *found]


def _convolution(calls: Calls, call: Call) -> Bound:
    """The call of ``conv``, ``conv_dx`` and ``conv_dw``."""
    name, groups = call.op.name, call.integer("groups")
    first, second, result = call.inputs[0].shape, call.inputs[1].shape, call.output.shape
    x, y, w = {
        "conv": (first, result, second),
        "conv_dx": (result, first, second),
        "conv_dw": (second, first, result),
    }[name]
    axes = _axes(call, x[2:], w[2:], y[2:])
    sizes = (int(x[0]), groups, int(w[1]), int(w[0]) // groups)
    function = getattr(calls, name)

    def run(out: Any, a: Any, b: Any) -> None:
        function(out, a, b, sizes, *axes)

    return run


def _pool(calls: Calls, call: Call) -> Bound:
    """The call of a pool."""
    window, shapes = call.integers("window"), (call.inputs[0].shape, call.output.shape)
    rank = len(window)
    planes = math.prod(shapes[0][:-rank])
    size, counts = (s[-rank:] for s in (shapes[::-1] if call.op.name.endswith("dx") else shapes))
    axes = _axes(call, size, window, counts)
    function = getattr(calls, call.op.name)

    def run(out: Any, *inputs: Any) -> None:
        function(out, *inputs, planes, *axes)

    return run


def bound(calls: Calls, call: Call) -> Bound:
    """The function of an engine that does a call of one of ``WINDOWED``."""
    return (_convolution if call.op.name.startswith("conv") else _pool)(calls, call)
