"""Reference twin of the pools. Rules: NUM-4, OP-40, OP-42, OP-43."""

from __future__ import annotations

import math
from collections.abc import Iterator

from identic.kernels.reduce.reference import float_rank
from identic.kernels.words import Reference, Words, places, position
from identic.protocol.arithmetic import f32
from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call

Place = tuple[int, ...]


def windows(call: Call, counts: Place, size: Place) -> Iterator[list[int]]:
    """For each window in order, the flat positions of its places in the plane, in order."""
    window, stride, before = (call.integers(n) for n in ("window", "stride", "before"))
    dilated = any(a.name == "dilation" for a in call.attributes)
    dilation = call.integers("dilation") if dilated else (1,) * len(window)
    for number in places(counts):
        found = []
        for tap in places(window):
            steps = zip(number, stride, before, tap, dilation, strict=True)
            at = [o * s - b + i * d for o, s, b, i, d in steps]
            if all(0 <= p < n for p, n in zip(at, size, strict=True)):
                found.append(position(at, size))
        yield found


def planes(call: Call, inputs: list[Words]) -> Iterator[list[Words]]:
    """For each window of each plane its elements, with their positions in the plane."""
    shape, rank = call.inputs[0].shape, len(call.integers("window"))
    size = math.prod(shape[-rank:])
    every = list(windows(call, call.output.shape[-rank:], shape[-rank:]))
    for number in range(math.prod(shape[:-rank])):
        plane = inputs[0][number * size : (number + 1) * size]
        for window in every:
            yield [[plane[at] for at in window], window]


def max_pool(call: Call, inputs: list[Words]) -> Words:
    """The largest element of each window, the lowest value for none."""
    out = []
    for values, _ in planes(call, inputs):
        best = f32.NEGATIVE_INFINITY
        for x in values:
            best = f32.maximum(best, x)
        out.append(best)
    return out


def max_pool_indices(call: Call, inputs: list[Words]) -> Words:
    """Position of the first of the largest of each window, -1 for none."""
    out = []
    for values, at in planes(call, inputs):
        ranks = [float_rank(x) for x in values]
        out.append(at[ranks.index(max(ranks))] if ranks else DType.INT64.pattern(-1))
    return out


def sum_pool(call: Call, inputs: list[Words]) -> Words:
    """The elements of each window added in order, from +0."""
    out = []
    for values, _ in planes(call, inputs):
        total = f32.ZERO
        for x in values:
            total = f32.add(total, x)
        out.append(total)
    return out


def spans(call: Call, counts: Place, size: Place) -> Iterator[list[range]]:
    """For each window in order, the places from its first to its last tap."""
    names = ("window", "stride", "before")
    dilated = any(a.name == "dilation" for a in call.attributes)
    dilation = call.integers("dilation") if dilated else (1,) * len(size)
    for number in places(counts):
        steps = zip(number, size, dilation, *(call.integers(n) for n in names), strict=True)
        bounds = [(o * s - b, o * s - b + d * (k - 1) + 1, n) for o, n, d, k, s, b in steps]
        yield [range(max(0, low), min(n, high)) for low, high, n in bounds]


def spread(call: Call, inputs: list[Words], *, indexed: bool) -> Words:
    """Each plane's gradients, window by window, added to places of the window's span.

    With ``indexed`` only to the place that the window's index names, else to all.
    """
    shape, rank = call.output.shape, len(call.integers("window"))
    size = shape[-rank:]
    every = list(spans(call, call.inputs[0].shape[-rank:], size))
    out = [f32.ZERO] * call.output.elements
    for number in range(math.prod(shape[:-rank])):
        base = number * math.prod(size)
        for window, span in enumerate(every, start=number * len(every)):
            for place in places([len(s) for s in span]):
                at = position([s[i] for s, i in zip(span, place, strict=True)], size)
                if not indexed or DType.INT64.signed(inputs[1][window]) == at:
                    out[base + at] = f32.add(out[base + at], inputs[0][window])
    return out


def max_pool_dx(call: Call, inputs: list[Words]) -> Words:
    """Gradients to the places of their indices."""
    return spread(call, inputs, indexed=True)


def sum_pool_dx(call: Call, inputs: list[Words]) -> Words:
    """Gradients to all places of their windows."""
    return spread(call, inputs, indexed=False)


REFERENCE: dict[str, Reference] = {
    "max_pool": max_pool,
    "max_pool_indices": max_pool_indices,
    "max_pool_dx": max_pool_dx,
    "sum_pool": sum_pool,
    "sum_pool_dx": sum_pool_dx,
}
"""Operator names and their reference twins."""
