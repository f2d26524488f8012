"""Operators that move elements to places computed from shapes alone; bits are kept (NUM-2)."""

from __future__ import annotations

from typing import ClassVar

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import (
    need_attribute,
    need_equal_dtypes,
    need_rank,
    need_shape,
    shape_attribute,
    word_attribute,
)
from identic.protocol.ops.folds import Constant, Element, Fold, single
from identic.protocol.tensors import TensorType, broadcast_index, broadcast_shapes, ravel, unravel


class _Move(Operator):
    """A copy costs no arithmetic."""

    arity: ClassVar[int | None] = 1

    def cost(self, call: Call) -> Cost:
        """Bytes only."""
        return Cost(flops=0, bytes=2 * call.output.nbytes)


class Reshape(_Move):
    """The same elements in row-major order, as ``shape``."""

    name = "reshape"
    code = 64
    attributes = (("shape", True),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The new shape, of as many elements."""
        shape = shape_attribute(self.name, attributes["shape"])
        result = TensorType.of(inputs[0].dtype, shape)
        same = result.elements == inputs[0].elements
        need_shape(self.name, same, got=f"{inputs[0]} to {shape}", want="as many elements")
        return result

    def fold(self, call: Call, element: int) -> Fold:
        """One copy."""
        del call
        return single("copy", Element(0, element))


class Permute(_Move):
    """Axes in another order: axis ``i`` of the result is axis ``axes[i]`` of the operand."""

    name = "permute"
    code = 65
    attributes = (("axes", True),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The lengths in the new order."""
        axes, shape = attributes["axes"], inputs[0].shape
        holds = sorted(axes) == list(range(len(shape)))
        need_attribute(self.name, "axes", holds, got=axes, want=f"the axes of {inputs[0]}")
        return TensorType.of(inputs[0].dtype, [shape[a] for a in axes])

    def fold(self, call: Call, element: int) -> Fold:
        """One copy."""
        place = unravel(element, call.output.shape)
        source = [0] * len(place)
        for position, axis in zip(place, call.integers("axes"), strict=True):
            source[axis] = position
        return single("copy", Element(0, ravel(source, call.inputs[0].shape)))


class Expand(_Move):
    """Repetition along axes of length 1 and along new leading axes, to ``shape``."""

    name = "expand"
    code = 66
    attributes = (("shape", True),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The new shape, with which the operand broadcasts without changing it."""
        shape = shape_attribute(self.name, attributes["shape"])
        fits = tuple(broadcast_shapes([shape, inputs[0].shape])) == shape
        need_shape(self.name, fits, got=f"{inputs[0]} to {shape}", want="a shape it repeats to")
        return TensorType.of(inputs[0].dtype, shape)

    def fold(self, call: Call, element: int) -> Fold:
        """One copy."""
        source = broadcast_index(element, call.output.shape, call.inputs[0].shape)
        return single("copy", Element(0, source))


class Slice(_Move):
    """Along each axis the positions ``start``, ``start + step``, ... below ``stop``."""

    name = "slice"
    code = 67
    attributes = (("start", True), ("step", True), ("stop", True))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The number of positions along each axis."""
        lengths = inputs[0].shape
        bounds = [attributes[name] for name in ("start", "stop", "step")]
        for name, values in zip(("start", "stop", "step"), bounds, strict=True):
            every = len(values) == len(lengths)
            need_attribute(self.name, name, every, got=values, want=f"{len(lengths)} values")
        out = []
        for n, start, stop, step in zip(lengths, *bounds, strict=True):
            holds = 0 <= start <= stop <= n and step >= 1
            got = f"{start}:{stop}:{step} of {n}"
            need_attribute(self.name, "bounds", holds, got=got, want="0 <= start <= stop <= n")
            out.append(-(-(stop - start) // step))
        return TensorType.of(inputs[0].dtype, out)

    def fold(self, call: Call, element: int) -> Fold:
        """One copy."""
        place = unravel(element, call.output.shape)
        bounds = zip(place, call.integers("start"), call.integers("step"), strict=True)
        source = [start + step * i for i, start, step in bounds]
        return single("copy", Element(0, ravel(source, call.inputs[0].shape)))


class Concat(_Move):
    """Operands one after the other along ``axis``."""

    name = "concat"
    code = 68
    arity = None
    attributes = (("axis", False),)

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """The sum of the lengths along the axis; the others are equal."""
        first, (axis,) = inputs[0], attributes["axis"]
        need_rank(self.name, first, 1)
        rank = len(first.shape)
        need_attribute(self.name, "axis", 0 <= axis < rank, got=axis, want=f"in [0, {rank})")
        total = 0
        for kind in inputs:
            need_equal_dtypes(self.name, first, kind)
            same = len(kind.shape) == rank and all(
                a == b
                for i, (a, b) in enumerate(zip(kind.shape, first.shape, strict=True))
                if i != axis
            )
            need_shape(self.name, same, got=f"{first} and {kind}", want="equal other lengths")
            total += kind.shape[axis]
        shape = [total if i == axis else n for i, n in enumerate(first.shape)]
        return TensorType.of(first.dtype, shape)

    def fold(self, call: Call, element: int) -> Fold:
        """One copy from the operand that covers the place."""
        axis = call.integer("axis")
        place = list(unravel(element, call.output.shape))
        for number, kind in enumerate(call.inputs):
            if place[axis] < kind.shape[axis]:
                return single("copy", Element(number, ravel(place, kind.shape)))
            place[axis] -= kind.shape[axis]
        raise ProtocolError("OP-3", Code.OUT_OF_RANGE, got=element, want="an element of the result")


class Pad(_Move):
    """``before`` and ``after`` elements of one value along each axis."""

    name = "pad"
    code = 69
    attributes = (("after", True), ("before", True), ("value", False))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """Lengths with the padding added."""
        (x,) = inputs
        for name in ("before", "after"):
            values = attributes[name]
            holds = len(values) == len(x.shape) and all(0 <= v < 1 << 46 for v in values)
            need_attribute(self.name, name, holds, got=values, want=f"{len(x.shape)} lengths >= 0")
        word_attribute(self.name, "value", x.dtype, attributes["value"][0])
        sides = zip(x.shape, attributes["before"], attributes["after"], strict=True)
        return TensorType.of(x.dtype, [n + before + after for n, before, after in sides])

    def fold(self, call: Call, element: int) -> Fold:
        """One copy, of an element or of the value."""
        (x,) = call.inputs
        place = unravel(element, call.output.shape)
        source = [i - b for i, b in zip(place, call.integers("before"), strict=True)]
        if all(0 <= i < n for i, n in zip(source, x.shape, strict=True)):
            return single("copy", Element(0, ravel(source, x.shape)))
        word = word_attribute(self.name, "value", x.dtype, call.integer("value"))
        return single("copy", Constant(word))


OPERATORS: tuple[Operator, ...] = (Reshape(), Permute(), Expand(), Slice(), Concat(), Pad())
"""Rows of the table."""
