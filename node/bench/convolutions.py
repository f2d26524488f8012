"""Convolutions and pools at the sizes of ResNet-18 on 8 images of 3 x 64 x 64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from identic.kernels import _native
from identic.kernels.arrays import Array, empty
from identic.kernels.windows import bound
from identic.node.bench.rows import Benchmark, Case, Timed
from identic.protocol.dtypes import DType
from identic.protocol.ops import TABLE
from identic.protocol.program.types import Attribute
from identic.protocol.tensors import TensorType

BATCH = 8

aten = torch.ops.aten


@dataclass(frozen=True)
class Layer:
    """A convolution with equal axes."""

    channels: int
    outputs: int
    size: int
    window: int = 3
    stride: int = 1

    def __str__(self) -> str:
        step = f"/{self.stride}" if self.stride > 1 else ""
        return f"{self.window}x{self.window}{step} {self.channels}-{self.outputs} at {self.size}"

    @property
    def padding(self) -> int:
        """Places of padding on every side."""
        return self.window // 2

    @property
    def count(self) -> int:
        """Windows along an axis."""
        return (self.size + 2 * self.padding - self.window) // self.stride + 1


LAYERS = (
    Layer(3, 64, 64, 7, 2),
    Layer(64, 64, 16),
    Layer(64, 128, 16, 3, 2),
    Layer(64, 128, 16, 1, 2),
    Layer(128, 128, 8),
    Layer(256, 256, 4),
    Layer(512, 512, 2),
)


def _tensors(layer: Layer) -> dict[str, Tensor]:
    """x, w and the gradient of the result."""
    generator = torch.Generator().manual_seed(1)
    shapes = {
        "x": (BATCH, layer.channels, layer.size, layer.size),
        "w": (layer.outputs, layer.channels, layer.window, layer.window),
        "y": (BATCH, layer.outputs, layer.count, layer.count),
    }
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def ours(name: str, operands: list[Tensor], **attributes: tuple[int, ...]) -> Timed:
    """One operator of the table, prepared."""
    arrays: list[Array] = [t.numpy() for t in operands]
    kinds = {torch.float32: DType.FLOAT32, torch.int64: DType.INT64}
    types = tuple(TensorType.of(kinds[t.dtype], tuple(t.shape)) for t in operands)
    written = tuple(Attribute(key, attributes[key]) for key, _ in TABLE[name].attributes)
    call = TABLE[name].call(types, written)
    out, function = empty(call.output), bound(_native, call)
    return lambda: function(out, *arrays)


def convolution(name: str, layer: Layer) -> Case:
    """``conv``, ``conv_dx`` or ``conv_dw`` of a layer."""
    t = _tensors(layer)
    both = (layer.padding,) * 2
    attributes = {
        "after": both,
        "before": both,
        "dilation": (1, 1),
        "groups": (1,),
        "size": (layer.size,) * 2,
        "stride": (layer.stride,) * 2,
        "window": (layer.window,) * 2,
    }
    operands = [t[letter] for letter in {"conv": "xw", "conv_dx": "yw", "conv_dw": "yx"}[name]]
    moved = ([layer.stride] * 2, list(both), [1, 1], False, [0, 0], 1)

    def peer() -> object:
        if name == "conv":
            return aten.convolution(t["x"], t["w"], None, *moved)
        mask = [name == "conv_dx", name == "conv_dw", False]
        return aten.convolution_backward(t["y"], t["x"], t["w"], None, *moved, mask)

    fmas = BATCH * layer.outputs * layer.channels * layer.window**2 * layer.count**2
    return Case(ours(name, operands, **attributes), {"torch": peer}, fmas)


def pool(name: str) -> Case:
    """The maximum pool after the first convolution, or its gradient."""
    x = _tensors(Layer(64, 64, 32, 3, 2))["x"]
    values, indices = aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
    attributes = {
        "after": (1, 1),
        "before": (1, 1),
        "dilation": (1, 1),
        "size": (32, 32),
        "stride": (2, 2),
        "window": (3, 3),
    }
    if name == "max_pool_dx":
        moved = ([3, 3], [2, 2], [1, 1], [1, 1], False)
        return Case(
            ours(name, [values, indices], **attributes),
            {"torch": lambda: aten.max_pool2d_with_indices_backward(values, x, *moved, indices)},
        )
    value, place = (ours(n, [x], **attributes) for n in ("max_pool", "max_pool_indices"))
    return Case(
        lambda: (value(), place()),
        {"torch": lambda: aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])},
    )


def benchmarks() -> Iterator[Benchmark]:
    """Layers from the image on, each forward and back, and the pool."""
    for layer in LAYERS:
        for name in ("conv", "conv_dx", "conv_dw"):
            if layer.channels > 3 or name != "conv_dx":
                yield Benchmark(f"{name} {layer}", partial(convolution, name, layer))
    for name in ("max_pool", "max_pool_dx"):
        yield Benchmark(f"{name} 3x3/2 64 at 32", partial(pool, name))
