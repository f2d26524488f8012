"""Pools of torch as the project's own, and interpolation by whole factors (CAP-21)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from identic.node.capture.windows import call, each

aten = torch.ops.aten


def _geometry(
    size: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
    *,
    ceil: bool,
) -> dict[str, Any]:
    """Attributes of a pool; windows that begin inside but end outside need padding behind."""
    axes = len(size)
    window = each(window, axes)
    found: dict[str, Any] = {
        "after": [],
        "before": each(padding, axes),
        "dilation": each(dilation, axes),
        "stride": each(stride, axes) if stride else window,
        "window": window,
    }
    rows = zip(size, window, found["stride"], found["before"], found["dilation"], strict=True)
    for n, k, s, p, d in rows:
        span = d * (k - 1) + 1
        more = (n + 2 * p - span) % s
        last = n + 2 * p - span - more + s
        # A window of its own for the rest, if it begins inside the operand or its padding before.
        begins = ceil and more > 0 and last < n + p
        found["after"].append(p + s - more if begins else p)
    return found


def max_pool(
    x: Tensor,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil: bool = False,
) -> tuple[Tensor, Tensor]:
    """Largest elements and their positions."""
    given = _geometry(x.shape[-2:], window, stride, padding, dilation, ceil=ceil)
    return call("max_pool", x, **given), call("max_pool_indices", x, **given)


def max_pool_backward(
    g: Tensor,
    x: Tensor,
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil: bool,
    indices: Tensor,
) -> Tensor:
    """Each window's gradient at the position of its largest element."""
    given = _geometry(x.shape[-2:], window, stride, padding, dilation, ceil=ceil)
    return call("max_pool_dx", g, indices, **given, size=x.shape[-2:])


def _average(
    x: Tensor,
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil: bool,
    count_padding: bool,
    divisor: int | None,
) -> tuple[dict[str, Any], Any]:
    """Attributes of the sum, and by what it is divided: a number, or one for each window."""
    size, sides = list(x.shape[-2:]), each(padding, 2)
    given = _geometry(size, window, stride, padding, ceil=ceil)
    whole = given["after"] == sides if count_padding else not any(sides + given["after"])
    if divisor is not None or whole:
        return given, float(math.prod(given["window"]) if divisor is None else divisor)
    counted = dict(given)
    if count_padding:
        # Padding counts, but not what a last window has beyond it.
        size = [n + 2 * p for n, p in zip(size, sides, strict=True)]
        counted["before"] = [0, 0]
        counted["after"] = [a - p for a, p in zip(given["after"], sides, strict=True)]
    ones = torch.full(size, 1.0, dtype=x.dtype, device=x.device)
    return given, call("sum_pool", ones, **counted)


def avg_pool(
    x: Tensor,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil: bool = False,
    count_padding: bool = True,
    divisor: int | None = None,
) -> Tensor:
    """The sum of each window, divided by the number of its places."""
    given, by = _average(x, window, stride, padding, ceil, count_padding, divisor)
    return torch.div(call("sum_pool", x, **given), by)


def avg_pool_backward(
    g: Tensor,
    x: Tensor,
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil: bool,
    count_padding: bool,
    divisor: int | None,
) -> Tensor:
    """Each window's gradient, divided, at all of its places."""
    given, by = _average(x, window, stride, padding, ceil, count_padding, divisor)
    return call("sum_pool_dx", g / by, **given, size=x.shape[-2:])


# ---- windows that divide the axes --------------------------------------------------------------


def _alike(size: Sequence[int], parts: Sequence[int]) -> bool:
    """Whether so many parts of the axes are all alike."""
    return all(p > 0 and n % p == 0 for n, p in zip(size, parts, strict=True))


def _equal(size: Sequence[int], parts: Sequence[int]) -> dict[str, Any]:
    """Attributes of a pool of so many windows, all alike."""
    if not _alike(size, parts):
        raise NotImplementedError(
            f"{list(size)} places in {list(parts)} parts that are not all alike"
        )
    window = [n // p for n, p in zip(size, parts, strict=True)]
    return _geometry(size, window, window, (0,), ceil=False)


def _parts(size: Sequence[int], parts: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """For both axes which places each part has, as ones, and the number of places of each part."""
    found = []
    for n, count in zip(size, parts, strict=True):
        bounds = [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
        found.append([[float(first <= at < stop) for at in range(n)] for first, stop in bounds])
    down, across = found
    places = [[sum(rows) * sum(columns) for columns in across] for rows in down]
    return torch.tensor(down), torch.tensor(across), torch.tensor(places)


def _each_axis(x: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Products along the last axis, then along the one before."""
    rows = x.reshape(-1, x.shape[-1]).mm(across)
    turned = rows.view([*x.shape[:-1], across.shape[1]]).transpose(-1, -2)
    columns = turned.reshape(-1, x.shape[-2]).mm(down)
    return columns.view([*turned.shape[:-1], down.shape[1]]).transpose(-1, -2).contiguous()


def adaptive_avg_pool(x: Tensor, parts: Sequence[int]) -> Tensor:
    """Sums of parts, which may overlap where they are not alike, divided by their places."""
    if not _alike(x.shape[-2:], parts):
        down, across, places = _parts(x.shape[-2:], parts)
        return _each_axis(x, down.t(), across.t()) / places
    given = _equal(x.shape[-2:], parts)
    return call("sum_pool", x, **given) / float(math.prod(given["window"]))


def adaptive_avg_pool_backward(g: Tensor, x: Tensor) -> Tensor:
    """Each part's gradient, divided, at all of its places."""
    if not _alike(x.shape[-2:], g.shape[-2:]):
        down, across, places = _parts(x.shape[-2:], g.shape[-2:])
        return _each_axis(g / places, down, across)
    given = _equal(x.shape[-2:], g.shape[-2:])
    by = float(math.prod(given["window"]))
    return call("sum_pool_dx", g / by, **given, size=x.shape[-2:])


def adaptive_max_pool(x: Tensor, parts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Largest elements of equal parts, and their positions."""
    given = _equal(x.shape[-2:], parts)
    return call("max_pool", x, **given), call("max_pool_indices", x, **given)


def adaptive_max_pool_backward(g: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """Each part's gradient at the position of its largest element."""
    given = _equal(x.shape[-2:], g.shape[-2:])
    return call("max_pool_dx", g, indices, **given, size=x.shape[-2:])


def _factors(size: Sequence[int], larger: Sequence[int]) -> list[int]:
    if any(n < 1 or m % n for n, m in zip(size, larger, strict=True)):
        raise NotImplementedError(f"interpolation of {list(size)} places to {list(larger)}")
    return [m // n for n, m in zip(size, larger, strict=True)]


def nearest(x: Tensor, size: Sequence[int], *_: Any) -> Tensor:
    """Every element repeated along the spatial axes."""
    spread, repeated = list(x.shape[:2]), list(x.shape[:2])
    for n, factor in zip(x.shape[2:], _factors(x.shape[2:], size), strict=True):
        spread += [n, 1]
        repeated += [n, factor]
    return x.view(spread).expand(repeated).reshape([*x.shape[:2], *size])


def nearest_backward(g: Tensor, size: Sequence[int], before: Sequence[int], *_: Any) -> Tensor:
    """The gradients of an element's repetitions added."""
    factors = _factors(before[2:], size)
    return call("sum_pool", g, **_geometry(size, factors, factors, (0,), ceil=False))


def table() -> dict[Any, Callable[..., Any]]:
    """Sequences of the operators of torch."""
    return {
        aten.max_pool2d_with_indices.default: max_pool,
        aten.max_pool2d_with_indices_backward.default: max_pool_backward,
        aten.avg_pool2d.default: avg_pool,
        aten.avg_pool2d_backward.default: avg_pool_backward,
        aten._adaptive_avg_pool2d.default: adaptive_avg_pool,  # noqa: SLF001 - so it is called
        aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool_backward,  # noqa: SLF001
        aten.adaptive_max_pool2d.default: adaptive_max_pool,
        aten.adaptive_max_pool2d_backward.default: adaptive_max_pool_backward,
        aten.upsample_nearest1d.default: nearest,
        aten.upsample_nearest1d_backward.default: nearest_backward,
        aten.upsample_nearest2d.default: nearest,
        aten.upsample_nearest2d_backward.default: nearest_backward,
    }
