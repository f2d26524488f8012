"""Convolutions over one or two spatial axes, and what their gradients are made of.

``conv`` takes ``x`` (N, C, space...) and ``w`` (O, C / groups, window...) to (N, O, counts...).
``conv_dx`` goes back from the result's gradient to ``x``'s (a transposed convolution is the
same), ``conv_dw`` to ``w``'s. Each element is the contraction of NUM-10; where a tap lies in
the padding, or falls between two windows, +0 stands for the element (OP-41).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from identic.protocol.dtypes import DType
from identic.protocol.ops.accumulate import contraction
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_attribute, need_dtype, need_shape
from identic.protocol.ops.folds import Constant, Element, Fold, Operand
from identic.protocol.ops.windows import MOST, Attributes, Axis, axes, counts, spatial_size, taps
from identic.protocol.tensors import Shape, TensorType, ravel, unravel

ZERO = Constant(0)

_SPATIAL = (("after", True), ("before", True), ("dilation", True), ("groups", False))


class _Convolution(Operator):
    """What the three share: two float32 operands of rank 3 or 4."""

    arity = 2

    def fold(self, call: Call, element: int) -> Fold:
        """The contraction of NUM-10."""
        raise NotImplementedError

    def products(self, call: Call) -> int:
        """Length of an element's contraction."""
        raise NotImplementedError

    def cost(self, call: Call) -> Cost:
        """Two operations a product."""
        plain = super().cost(call)
        return Cost(flops=2 * call.output.elements * self.products(call), bytes=plain.bytes)


def _need_operands(op: str, inputs: Sequence[TensorType]) -> None:
    """Two float32 tensors of one rank, with one or two spatial axes."""
    a, b = inputs
    for kind in inputs:
        need_dtype(op, kind, (DType.FLOAT32,))
    holds = len(a.shape) == len(b.shape) and len(a.shape) in (3, 4)
    need_shape(op, holds, got=f"{a} and {b}", want="equal ranks, 3 or 4")


def _need_groups(op: str, attributes: Attributes, *channels: int) -> int:
    """Attribute ``groups``, which divides the numbers of channels."""
    (groups,) = attributes["groups"]
    holds = 1 <= groups < MOST and all(n % groups == 0 for n in channels)
    want = f"at least 1, a divisor of {' and '.join(str(n) for n in channels)}"
    need_attribute(op, "groups", holds, got=groups, want=want)
    return groups


def _need_lengths(op: str, got: Sequence[int], want: Sequence[int]) -> None:
    need_shape(op, tuple(got) == tuple(want), got=tuple(got), want=f"lengths {tuple(want)}")


def _axes(call: Call, size: Sequence[int], window: Sequence[int]) -> list[Axis]:
    """The windows of a checked call."""
    return axes(call.op.name, size, window, {a.name: a.values for a in call.attributes})


def _found(places: Sequence[int | None]) -> Shape | None:
    """The places, if there is one along every axis."""
    kept = tuple(p for p in places if p is not None)
    return kept if len(kept) == len(places) else None


class Conv(_Convolution):
    """``conv(x, w)``: every window of ``x`` times every kernel of ``w``."""

    name = "conv"
    code = 49
    attributes = (*_SPATIAL, ("stride", True))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(N, C, space...) and (O, C / groups, window...) give (N, O, counts...)."""
        _need_operands(self.name, inputs)
        x, w = (kind.shape for kind in inputs)
        groups = _need_groups(self.name, attributes, x[1], w[0])
        _need_lengths(self.name, w[1:2], (x[1] // groups,))
        over = axes(self.name, x[2:], w[2:], attributes)
        return TensorType.of(DType.FLOAT32, (x[0], w[0], *counts(over)))

    def fold(self, call: Call, element: int) -> Fold:
        """``k`` runs over (channel in the group, tap)."""
        x, w = (kind.shape for kind in call.inputs)
        over = _axes(call, x[2:], w[2:])
        n, o, *number = unravel(element, call.output.shape)
        first = o // (w[0] // call.integer("groups")) * w[1]
        length = self.products(call)

        def factors(k: int) -> tuple[Operand, Operand]:
            c, *tap = unravel(k, w[1:])
            at = _found([a.place(i, t) for a, i, t in zip(over, number, tap, strict=True)])
            left = ZERO if at is None else Element(0, ravel((n, first + c, *at), x))
            return left, Element(1, o * length + k)

        return contraction(length, factors)

    def products(self, call: Call) -> int:
        """Elements of a kernel."""
        _, channels, *window = call.inputs[1].shape
        return channels * taps(_axes(call, call.inputs[0].shape[2:], window))


class ConvDx(_Convolution):
    """``conv_dx(grad, w)``: the gradient of ``conv`` in ``x``, of spatial lengths ``size``."""

    name = "conv_dx"
    code = 50
    attributes = (*_SPATIAL, ("size", True), ("stride", True))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(N, O, counts...) and (O, C / groups, window...) give (N, C, size...)."""
        _need_operands(self.name, inputs)
        grad, w = (kind.shape for kind in inputs)
        groups = _need_groups(self.name, attributes, w[0])
        _need_lengths(self.name, grad[1:2], w[:1])
        size = spatial_size(self.name, attributes, len(w) - 2)
        over = axes(self.name, size, w[2:], attributes)
        _need_lengths(self.name, grad[2:], counts(over))
        return TensorType.of(DType.FLOAT32, (grad[0], w[1] * groups, *size))

    def fold(self, call: Call, element: int) -> Fold:
        """``k`` runs over (output channel in the group, tap)."""
        grad, w = (kind.shape for kind in call.inputs)
        over = _axes(call, call.output.shape[2:], w[2:])
        n, c, *place = unravel(element, call.output.shape)
        group, channel = divmod(c, w[1]) if w[1] else (0, 0)
        outputs = w[0] // call.integer("groups")

        def factors(k: int) -> tuple[Operand, Operand]:
            o, *tap = unravel(k, (outputs, *w[2:]))
            o += group * outputs
            at = _found([a.meeting(p, t) for a, p, t in zip(over, place, tap, strict=True)])
            left = ZERO if at is None else Element(0, ravel((n, o, *at), grad))
            return left, Element(1, ravel((o, channel, *tap), w))

        return contraction(self.products(call), factors)

    def products(self, call: Call) -> int:
        """Output channels of a group, times taps."""
        outputs, _, *window = call.inputs[1].shape
        over = _axes(call, call.output.shape[2:], window)
        return outputs // call.integer("groups") * taps(over)


class ConvDw(_Convolution):
    """``conv_dw(grad, x)``: the gradient of ``conv`` in ``w``, of spatial lengths ``window``."""

    name = "conv_dw"
    code = 51
    attributes = (*_SPATIAL, ("stride", True), ("window", True))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(N, O, counts...) and (N, C, space...) give (O, C / groups, window...)."""
        _need_operands(self.name, inputs)
        grad, x = (kind.shape for kind in inputs)
        groups = _need_groups(self.name, attributes, grad[1], x[1])
        _need_lengths(self.name, grad[:1], x[:1])
        over = axes(self.name, x[2:], attributes["window"], attributes)
        _need_lengths(self.name, grad[2:], counts(over))
        shape = (grad[1], x[1] // groups, *attributes["window"])
        return TensorType.of(DType.FLOAT32, shape)

    def fold(self, call: Call, element: int) -> Fold:
        """``k`` runs over (example, window)."""
        grad, x = (kind.shape for kind in call.inputs)
        over = _axes(call, x[2:], call.integers("window"))
        o, c, *tap = unravel(element, call.output.shape)
        channels = call.output.shape[1]
        c += o // (grad[1] // call.integer("groups")) * channels

        def factors(k: int) -> tuple[Operand, Operand]:
            n, *number = unravel(k, (grad[0], *grad[2:]))
            at = _found([a.place(i, t) for a, i, t in zip(over, number, tap, strict=True)])
            right = ZERO if at is None else Element(1, ravel((n, c, *at), x))
            return Element(0, ravel((n, o, *number), grad)), right

        return contraction(self.products(call), factors)

    def products(self, call: Call) -> int:
        """Examples times windows."""
        examples, _, *number = call.inputs[0].shape
        return math.prod((examples, *number))


OPERATORS: tuple[Operator, ...] = (Conv(), ConvDx(), ConvDw())
"""Rows of the table."""
