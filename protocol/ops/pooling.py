"""Pools over the last one or two axes: maxima, where they are, sums, and the way back.

Windows are those of ``windows.py`` over the last axes, as many as ``window`` has lengths; all
axes before them are kept. Only places of the operand take part, never the padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_attribute, need_dtype, need_rank, need_shape
from identic.protocol.ops.folds import Constant, Element, Fold, Operand, Step, chain, single
from identic.protocol.ops.primitives import LOWEST
from identic.protocol.ops.select import Item, running_maximum, running_position
from identic.protocol.ops.windows import Axis, axes, counts, spatial_size, taps
from identic.protocol.tensors import Shape, TensorType, ravel, unravel

ZERO = Constant(0)

NOWHERE = -1
"""Position of the maximum of a window that has no place of the operand."""

_DILATED = (("after", True), ("before", True), ("dilation", True))
_PLAIN = (("after", True), ("before", True))
_MOVED = (("stride", True), ("window", True))


def _split(op: str, kind: TensorType, window: Sequence[int]) -> tuple[Shape, Shape]:
    """Lengths before the spatial axes, and of the spatial axes."""
    rank = len(window)
    need_attribute(op, "window", rank in (1, 2), got=window, want="one or two lengths")
    need_rank(op, kind, rank)
    return kind.shape[:-rank], kind.shape[-rank:]


def _axes(call: Call, size: Sequence[int]) -> list[Axis]:
    """The windows of a checked call."""
    attributes = {a.name: a.values for a in call.attributes}
    return axes(call.op.name, size, attributes["window"], attributes)


class _Pool(Operator):
    """A result for every window of the operand's spatial axes."""

    arity = 1
    result: DType = DType.FLOAT32

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(R..., space...) gives (R..., counts...)."""
        need_dtype(self.name, inputs[0], (DType.FLOAT32,))
        lead, size = _split(self.name, inputs[0], attributes["window"])
        over = axes(self.name, size, attributes["window"], attributes)
        return TensorType.of(self.result, (*lead, *counts(over)))

    def fold(self, call: Call, element: int) -> Fold:
        """What is made of the window's elements."""
        shape = call.inputs[0].shape
        rank = len(call.integers("window"))
        over = _axes(call, shape[-rank:])
        place = unravel(element, call.output.shape)
        inside = [a.places(o) for a, o in zip(over, place[-rank:], strict=True)]
        plane = shape[-rank:]
        first = ravel((*place[:-rank], *(0 for _ in plane)), shape)

        def item(number: int) -> tuple[Element, int]:
            tap = unravel(number, [len(p) for p in inside])
            at = ravel([p[t] for p, t in zip(inside, tap, strict=True)], plane)
            return Element(0, first + at), at

        return self.over(math.prod(len(p) for p in inside), item)

    def over(self, count: int, item: Item) -> Fold:
        """The fold over so many elements of a window."""
        raise NotImplementedError

    def cost(self, call: Call) -> Cost:
        """One step a tap."""
        rank = len(call.integers("window"))
        plain = super().cost(call)
        window = taps(_axes(call, call.inputs[0].shape[-rank:]))
        return Cost(flops=plain.flops * window, bytes=plain.bytes)


class MaxPool(_Pool):
    """The largest element of each window."""

    name = "max_pool"
    code = 52
    attributes = (*_DILATED, *_MOVED)

    def over(self, count: int, item: Item) -> Fold:
        """A chain of maxima from the lowest value."""
        start = Constant(LOWEST[DType.FLOAT32])
        if not count:
            return single("copy", start)
        return running_maximum(DType.FLOAT32, range(count), item, start)


class MaxPoolIndices(_Pool):
    """Flat position, within the spatial axes, of the first of the largest of each window."""

    name = "max_pool_indices"
    code = 53
    attributes = (*_DILATED, *_MOVED)
    result = DType.INT64

    def over(self, count: int, item: Item) -> Fold:
        """The running maximum and its position, in turn."""
        if not count:
            return single("copy", Constant(DType.INT64.pattern(NOWHERE)))
        start, place = Constant(LOWEST[DType.FLOAT32]), Constant(item(0)[1])
        return running_position(DType.FLOAT32, range(count), item, start, place)

    def cost(self, call: Call) -> Cost:
        """Two steps a tap."""
        plain = super().cost(call)
        return Cost(flops=2 * plain.flops, bytes=plain.bytes)


class SumPool(_Pool):
    """The sum of each window, in order."""

    name = "sum_pool"
    code = 55
    attributes = (*_PLAIN, *_MOVED)

    def over(self, count: int, item: Item) -> Fold:
        """A chain of additions from +0."""

        def step(i: int, total: Operand) -> Step:
            return Step("add.float32", (total, item(i)[0]))

        return chain(count, step, ZERO) if count else single("copy", ZERO)


class _Back(Operator):
    """From a gradient of the windows' results to one of the operand, of lengths ``size``."""

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """(R..., counts...) gives (R..., size...)."""
        grad = inputs[0]
        need_dtype(self.name, grad, (DType.FLOAT32,))
        lead, windows = _split(self.name, grad, attributes["window"])
        size = spatial_size(self.name, attributes, len(windows))
        over = axes(self.name, size, attributes["window"], attributes)
        fits = windows == counts(over)
        need_shape(self.name, fits, got=grad, want=f"{counts(over)} windows")
        return TensorType.of(DType.FLOAT32, (*lead, *size))

    def covering(self, call: Call, element: int, step: Callable[[int, int, Operand], Step]) -> Fold:
        """A chain from +0 over the windows whose span covers the element's place, in order.

        Args:
            call: the call.
            element: flat position in the result.
            step: the step for a window, given the flat position in the gradient, that of the
                element in its plane, and the total before.
        """
        windows, rank = call.inputs[0].shape, len(call.integers("window"))
        over = _axes(call, call.integers("size"))
        place = unravel(element, call.output.shape)
        lead, at = place[:-rank], place[-rank:]
        found = [a.covering(p) for a, p in zip(over, at, strict=True)]
        count = math.prod(len(f) for f in found)
        inner = ravel(at, call.integers("size"))

        def nth(i: int, total: Operand) -> Step:
            number = unravel(i, [len(f) for f in found])
            chosen = [f[n] for f, n in zip(found, number, strict=True)]
            return step(ravel((*lead, *chosen), windows), inner, total)

        return chain(count, nth, ZERO) if count else single("copy", ZERO)

    def cost(self, call: Call) -> Cost:
        """One step for each window that may cover a place."""
        plain = super().cost(call)
        most = math.prod(a.most_covering for a in _axes(call, call.integers("size")))
        return Cost(flops=plain.flops * most, bytes=plain.bytes)


class MaxPoolDx(_Back):
    """``max_pool_dx(grad, indices)``: each window's gradient goes to the place of its index."""

    name = "max_pool_dx"
    code = 54
    arity = 2
    attributes = (*_DILATED, ("size", True), *_MOVED)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """float32 and int64 of (R..., counts...) give (R..., size...)."""
        grad, indices = inputs
        need_dtype(self.name, indices, (DType.INT64,))
        same = grad.shape == indices.shape
        need_shape(self.name, same, got=f"{grad} and {indices}", want="equal shapes")
        return super().infer(inputs, attributes)

    def fold(self, call: Call, element: int) -> Fold:
        """A window's gradient is added where its index is the place."""

        def step(window: int, place: int, total: Operand) -> Step:
            addend = Element(0, window)
            operands = (total, Element(1, window), Constant(place), addend)
            return Step("add_if_equal.int64", operands)

        return self.covering(call, element, step)


class SumPoolDx(_Back):
    """``sum_pool_dx(grad)``: each window's gradient goes to all of its places."""

    name = "sum_pool_dx"
    code = 60
    arity = 1
    attributes = (*_PLAIN, ("size", True), *_MOVED)

    def fold(self, call: Call, element: int) -> Fold:
        """The gradients of the windows that cover the place, added in order."""

        def step(window: int, place: int, total: Operand) -> Step:
            del place
            return Step("add.float32", (total, Element(0, window)))

        return self.covering(call, element, step)


OPERATORS: tuple[Operator, ...] = (MaxPool(), MaxPoolIndices(), MaxPoolDx(), SumPool(), SumPoolDx())
"""Rows of the table."""
