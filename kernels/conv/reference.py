"""Reference twin of the convolutions. Rules: NUM-10, OP-40, OP-41."""

from __future__ import annotations

from collections.abc import Sequence

from identic.kernels.matmul.reference import dot
from identic.kernels.words import Reference, Words, places, position
from identic.protocol.arithmetic import f32
from identic.protocol.ops.base import Call

Place = tuple[int, ...]


def element(words: Words, shape: Sequence[int], lead: Place, at: Sequence[int]) -> int:
    """The element of a tensor at spatial place ``at``, +0 outside."""
    inside = all(0 <= i < n for i, n in zip(at, shape[len(lead) :], strict=True))
    # OP-41: +0 stands for an element in the padding.
    return words[position((*lead, *at), shape)] if inside else f32.ZERO


def tapped(call: Call, number: Place, tap: Place) -> Place:
    """The place of a window's tap in ``x``; it may lie in the padding."""
    moved = zip(number, call.integers("stride"), call.integers("before"), strict=True)
    steps = zip(tap, call.integers("dilation"), strict=True)
    return tuple(o * s - b + i * d for (o, s, b), (i, d) in zip(moved, steps, strict=True))


def conv(call: Call, inputs: list[Words]) -> Words:
    """Windows times kernels, over the channels of a group and the taps."""
    (x, w), (x_type, w_type) = inputs, call.inputs
    outputs, channels, *window = w_type.shape
    per_group = outputs // call.integer("groups")
    length = len(w) // outputs if outputs else 0
    out = []
    for n, o, *number in places(call.output.shape):
        patch = [
            element(
                x, x_type.shape, (n, o // per_group * channels + c), tapped(call, (*number,), t)
            )
            for c in range(channels)
            for t in places(window)
        ]
        out.append(dot(patch, w[o * length : (o + 1) * length]))
    return out


def between(call: Call, place: Place, tap: Place) -> Place:
    """The window whose tap is at ``place``; -1 along an axis where it falls between two."""
    found = []
    names = ("before", "dilation", "stride")
    rows = zip(place, tap, *(call.integers(n) for n in names), strict=True)
    for p, i, before, dilation, stride in rows:
        at = p + before - i * dilation
        found.append(at // stride if at % stride == 0 else -1)
    return tuple(found)


def conv_dx(call: Call, inputs: list[Words]) -> Words:
    """Gradients of the windows that read a place, over the outputs of a group and the taps."""
    (grad, w), (grad_type, w_type) = inputs, call.inputs
    outputs, channels, *window = w_type.shape
    per_group = outputs // call.integer("groups")
    out = []
    for n, c, *place in places(call.output.shape):
        group, channel = divmod(c, channels)
        mine = range(group * per_group, (group + 1) * per_group)
        read = [
            element(grad, grad_type.shape, (n, o), between(call, (*place,), t))
            for o in mine
            for t in places(window)
        ]
        kernel = [w[position((o, channel, *t), w_type.shape)] for o in mine for t in places(window)]
        out.append(dot(read, kernel))
    return out


def conv_dw(call: Call, inputs: list[Words]) -> Words:
    """Gradients times what their windows read with one tap, over examples and windows."""
    (grad, x), (grad_type, x_type) = inputs, call.inputs
    examples, outputs, *counts = grad_type.shape
    channels = call.output.shape[1]
    per_group = outputs // call.integer("groups")
    out = []
    for o, c, *tap in places(call.output.shape):
        source = o // per_group * channels + c
        windows = [(n, number) for n in range(examples) for number in places(counts)]
        read = [
            element(x, x_type.shape, (n, source), tapped(call, number, (*tap,)))
            for n, number in windows
        ]
        given = [grad[position((n, o, *number), grad_type.shape)] for n, number in windows]
        out.append(dot(given, read))
    return out


REFERENCE: dict[str, Reference] = {"conv": conv, "conv_dx": conv_dx, "conv_dw": conv_dw}
"""Operator names and their reference twins."""
