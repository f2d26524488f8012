"""Random numbers and the sampler, as functions of the context and the element's position.

The context is int64[6]: job key (2 words), step key (2 words), step, shard. Numbers come
from NUM-15 to NUM-18.
"""

from __future__ import annotations

from identic.protocol.dtypes import DType
from identic.protocol.ops.base import Call, Cost, Operator
from identic.protocol.ops.checks import need_attribute, need_dtype, need_shape, shape_attribute
from identic.protocol.ops.folds import Constant, Element, Fold, single
from identic.protocol.tensors import TensorType

JOB_KEY, STEP_KEY, STEP, SHARD = (0, 1), (2, 3), 4, 5
"""Positions in the context."""

BLOCK_FLOPS = 64
"""What one random number counts for in the cost of a program."""


def _need_context(op: str, kind: TensorType) -> None:
    need_dtype(op, kind, (DType.INT64,))
    need_shape(op, kind.shape == (6,), got=kind, want="int64[6], a context")


def _need_stream(op: str, value: int) -> None:
    need_attribute(op, "stream", 0 <= value < 1 << 32, got=value, want="in [0, 2^32)")


def _need_bound(op: str, value: int) -> None:
    need_attribute(op, "bound", value >= 1, got=value, want=">= 1")


def _need_count(op: str, value: int) -> None:
    need_attribute(op, "count", value >= 0, got=value, want=">= 0")


class _Random(Operator):
    """What the three share: one input, the context."""

    arity = 1

    def cost(self, call: Call) -> Cost:
        """``BLOCK_FLOPS`` an element."""
        plain = super().cost(call)
        return Cost(flops=plain.flops * BLOCK_FLOPS, bytes=plain.bytes)


class RandomUniform(_Random):
    """Uniform float32 numbers in ``[0, 1)``, multiples of 2^-24."""

    name = "random_uniform"
    code = 88
    attributes = (("shape", True), ("stream", False))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """float32 of the stated shape."""
        _need_context(self.name, inputs[0])
        _need_stream(self.name, attributes["stream"][0])
        return TensorType.of(DType.FLOAT32, shape_attribute(self.name, attributes["shape"]))

    def fold(self, call: Call, element: int) -> Fold:
        """One step."""
        keys = [Element(0, place) for place in (*STEP_KEY, SHARD)]
        stream = Constant(call.integer("stream"))
        return single(self.name, *keys, stream, Constant(element))


class RandomIndex(_Random):
    """``count`` independent int64 numbers in ``[0, bound)``."""

    name = "random_index"
    code = 89
    attributes = (("bound", False), ("count", False), ("stream", False))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """int64 of length ``count``."""
        _need_context(self.name, inputs[0])
        _need_bound(self.name, attributes["bound"][0])
        _need_count(self.name, attributes["count"][0])
        _need_stream(self.name, attributes["stream"][0])
        return TensorType.of(DType.INT64, attributes["count"])

    def fold(self, call: Call, element: int) -> Fold:
        """One step."""
        keys = [Element(0, place) for place in (*STEP_KEY, SHARD)]
        constants = (call.integer("stream"), call.integer("bound"), element)
        return single(self.name, *keys, *(Constant(c) for c in constants))


class ShuffledIndex(_Random):
    """The next ``count`` rows of a reshuffled pass over ``[0, bound)``.

    Element ``i`` is at position ``p = (step * shards + shard) * count + i`` of all passes,
    modulo 2^64: row ``permute(job key, p div bound, p mod bound)``.
    """

    name = "shuffled_index"
    code = 90
    attributes = (("bound", False), ("count", False), ("shards", False))

    def infer(
        self, inputs: tuple[TensorType, ...], attributes: dict[str, tuple[int, ...]]
    ) -> TensorType:
        """int64 of length ``count``."""
        _need_context(self.name, inputs[0])
        _need_bound(self.name, attributes["bound"][0])
        _need_count(self.name, attributes["count"][0])
        (shards,) = attributes["shards"]
        need_attribute(self.name, "shards", shards >= 1, got=shards, want=">= 1")
        return TensorType.of(DType.INT64, attributes["count"])

    def fold(self, call: Call, element: int) -> Fold:
        """One step."""
        keys = [Element(0, place) for place in (*JOB_KEY, STEP, SHARD)]
        constants = (call.integer("bound"), call.integer("count"), call.integer("shards"), element)
        return single(self.name, *keys, *(Constant(c) for c in constants))


OPERATORS: tuple[Operator, ...] = (RandomUniform(), RandomIndex(), ShuffledIndex())
"""Rows of the table."""
