"""A section under construction: values, types, and the instructions that make them.

Every value exists once: the same operator on the same inputs with the same attributes is
the same value. Views that change nothing are their operand, a reshape of a reshape is one
reshape, two permutations are one, and an elementwise operator reads through an expansion
that its own broadcasting repeats. None of these changes a bit of any result that is kept.

Spec: docs/spec/capture.md (CAP-5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from identic.protocol.dtypes import DType
from identic.protocol.graph import Place
from identic.protocol.ids import Unsigned
from identic.protocol.lowering import constants, passes
from identic.protocol.ops import TABLE
from identic.protocol.program.types import Attribute, Instruction, Section
from identic.protocol.tensors import TensorType, broadcast_shapes


@dataclass(frozen=True)
class _Made:
    """An instruction before the passes."""

    op: str
    inputs: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    place: Place


class Builder:
    """Collects the instructions of one section."""

    def __init__(self, inputs: Sequence[TensorType]) -> None:
        self.types: list[TensorType] = list(inputs)
        self.place = Place()
        """Attached to every instruction made from now on."""
        self._inputs = tuple(inputs)
        self._made: list[_Made] = []
        self._known: dict[tuple[object, ...], int] = {}

    # ---- values ---------------------------------------------------------------------------

    def dtype(self, value: int) -> DType:
        """Element type of a value."""
        return self.types[value].dtype

    def shape(self, value: int) -> tuple[int, ...]:
        """Shape of a value."""
        return tuple(int(n) for n in self.types[value].shape)

    def emit(self, op: str, *inputs: int, **attributes: int | Sequence[int]) -> int:
        """Value of operator ``op`` on ``inputs``; the existing one where it was made before.

        Raises:
            ProtocolError: the operator's rule refuses the types or the attributes.
        """
        written = tuple(
            Attribute(name, (int(v),) if isinstance(v, int) else tuple(int(i) for i in v))
            for name, v in sorted(attributes.items())
        )
        key = (op, inputs, written)
        if key not in self._known:
            call = TABLE[op].call(tuple(self.types[i] for i in inputs), written)
            self._known[key] = len(self.types)
            self.types.append(call.output)
            self._made.append(_Made(op, inputs, written, self.place))
        return self._known[key]

    def maker(self, value: int) -> _Made | None:
        """The instruction that makes ``value``; ``None`` for an input."""
        index = value - len(self._inputs)
        return self._made[index] if index >= 0 else None

    # ---- constants ------------------------------------------------------------------------

    def full(self, dtype: DType, value: float, shape: Sequence[int] = ()) -> int:
        """A tensor filled with one number, rounded to the element type."""
        return self.emit("full", dtype=dtype, shape=shape, word=constants.word(dtype, value))

    def iota(self, count: int, start: int = 0, step: int = 1) -> int:
        """``start, start + step, ...`` as int64, shape ``(count,)``."""
        return self.emit("iota", count=count, dtype=DType.INT64, start=start, step=step)

    # ---- views ----------------------------------------------------------------------------

    def cast(self, value: int, dtype: DType) -> int:
        """The value with another element type."""
        return value if self.dtype(value) == dtype else self.emit("cast", value, dtype=dtype)

    def reshape(self, value: int, shape: Sequence[int]) -> int:
        """The same elements under another shape."""
        made = self.maker(value)
        if made is not None and made.op == "reshape":
            value = made.inputs[0]
        return (
            value if self.shape(value) == tuple(shape) else self.emit("reshape", value, shape=shape)
        )

    def permute(self, value: int, axes: Sequence[int]) -> int:
        """Result axis ``i`` is operand axis ``axes[i]``."""
        made = self.maker(value)
        if made is not None and made.op == "permute":
            inner = made.attributes[0].values
            value, axes = made.inputs[0], [inner[a] for a in axes]
        return (
            value
            if list(axes) == list(range(len(axes)))
            else self.emit("permute", value, axes=axes)
        )

    def expand(self, value: int, shape: Sequence[int]) -> int:
        """Repeat axes of length 1, and new leading axes, up to ``shape``."""
        made = self.maker(value)
        if made is not None and made.op == "expand":
            value = made.inputs[0]
        return (
            value if self.shape(value) == tuple(shape) else self.emit("expand", value, shape=shape)
        )

    def slice(self, value: int, axis: int, start: int, stop: int, step: int = 1) -> int:
        """Elements ``start, start + step, ...`` before ``stop`` along one axis."""
        shape = self.shape(value)
        if (start, stop, step) == (0, shape[axis], 1):
            return value
        starts = [start if i == axis else 0 for i in range(len(shape))]
        stops = [stop if i == axis else n for i, n in enumerate(shape)]
        steps = [step if i == axis else 1 for i in range(len(shape))]
        return self.emit("slice", value, start=starts, stop=stops, step=steps)

    def concat(self, values: Sequence[int], axis: int) -> int:
        """Values one after another along ``axis``."""
        return values[0] if len(values) == 1 else self.emit("concat", *values, axis=axis)

    # ---- arithmetic -----------------------------------------------------------------------

    def elementwise(self, op: str, *values: int) -> int:
        """An elementwise operator that reads through expansions where its shape allows."""
        operands = list(values)
        want = broadcast_shapes([self.shape(v) for v in operands])
        for position, value in enumerate(operands):
            made = self.maker(value)
            if made is None or made.op != "expand":
                continue
            trial = [*operands[:position], made.inputs[0], *operands[position + 1 :]]
            if broadcast_shapes([self.shape(v) for v in trial]) == want:
                operands = trial
        return self.emit(op, *operands)

    # ---- the end --------------------------------------------------------------------------

    def finish(self, outputs: Sequence[int]) -> tuple[Section, tuple[Place, ...]]:
        """The section after all passes, and the place of each instruction."""
        made = tuple(
            Instruction(m.op, tuple(map(Unsigned, m.inputs)), m.attributes, kind)
            for m, kind in zip(self._made, self.types[len(self._inputs) :], strict=True)
        )
        places = tuple(m.place for m in self._made)
        done = passes.run(passes.Body(self._inputs, made, places, tuple(outputs)))
        return done.section(), done.places
