"""Launches convolutions and their gradients on a CUDA device. Rules: NUM-10, OP-40, OP-41.

Each is a product of a matrix with columns gathered from planes (``cuda_shape.h``), cut into
tiles as matrix products are. Which kernel computes it, and in how many parts, tunes speed only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from identic.kernels.conv.phases import Axis, Phase, most_steps, phases
from identic.kernels.cuda.device import WAVES, Device, Kernel, Words, blocks_over
from identic.kernels.matmul.cuda import (
    CHUNK,
    FLAT,
    LARGE,
    ROOM,
    Cut,
    Kind,
    Planned,
    Tile,
    choose,
    cut,
    fold,
    launch,
    multiply,
    on_border,
)

FORWARD, DX, DW = range(3)
"""The three products, as ``cuda_shape.h`` numbers them."""

THIN = Tile(16, 128, 4, 4, 4)
"""For few rows: outputs of a group, for the gradient in x its channels."""
ALONE = Tile(1, 256, 1, 1, 1)
"""Elements of a block that computes each alone."""

MOST_PHASES = 16
"""Phases of both axes together, at most; tunes speed only."""

_FAR = 1 << 30
"""Places and lines from this number on need 64 bits."""
_PLAIN_COST = 30
"""Instructions of a product alone, in those of one in a tile."""


@dataclass(frozen=True)
class Product:
    """A convolution as a product of each group.

    Attributes:
        direction: ``FORWARD``, ``DX`` or ``DW``.
        sizes: batch, groups, channels and outputs of a group.
        axes: the spatial ones.
    """

    direction: int
    sizes: tuple[int, int, int, int]
    axes: tuple[Axis, Axis]

    @classmethod
    def of(cls, direction: int, sizes: Sequence[int], axes: tuple[Axis, Axis]) -> Product:
        """From the numbers of a call, whatever holds them."""
        batch, groups, channels, outputs = sizes
        return cls(direction, (batch, groups, channels, outputs), ((*axes[0],), (*axes[1],)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sixteen numbers of ``cuda_shape.h``."""
        return (*self.sizes, *self.axes[0], *self.axes[1])

    def _over(self, number: int) -> int:
        """A number of both axes multiplied."""
        return self.axes[0][number] * self.axes[1][number]

    @property
    def plane(self) -> int:
        """Places of a plane."""
        return self._over(0)

    @property
    def taps(self) -> int:
        """Taps of a window."""
        return self._over(1)

    @property
    def windows(self) -> int:
        """Windows of a plane."""
        return self._over(5)

    @property
    def matrix(self) -> tuple[int, int, int]:
        """Rows, columns and steps of a group's product."""
        batch, _, channels, outputs = self.sizes
        return {
            FORWARD: (outputs, batch * self.windows, channels * self.taps),
            DX: (channels, batch * self.plane, outputs * self.taps),
            DW: (outputs, channels * self.taps, batch * self.windows),
        }[self.direction]

    @property
    def elements(self) -> int:
        """Elements of the result."""
        rows, columns, _ = self.matrix
        return self.sizes[1] * rows * columns

    @property
    def strides(self) -> tuple[int, ...]:
        """Columns of an image of the result, and distances in elements.

        In the result from a row and from an image to the next, and of a plane of sums; in the
        left operand from a row to the next; from a group to the next in result, left and right.
        """
        _, groups, channels, outputs = self.sizes
        rows, columns, steps = self.matrix
        kernels = outputs * channels * self.taps
        if self.direction == FORWARD:
            row, left, groups_apart = self.windows, steps, (kernels, channels * self.plane)
        elif self.direction == DX:
            row, left, groups_apart = self.plane, self.taps, (kernels, outputs * self.windows)
        else:
            apart = (outputs * self.windows, channels * self.plane)
            row, left, groups_apart = columns, self.windows, apart
        image = groups * rows * row
        return (row, row, image, self.elements, left, rows * row, *groups_apart)

    @property
    def near(self) -> bool:
        """Whether all lines, steps, places and blocks have 31 bits."""
        rows, columns, steps = self.matrix
        reach = max(
            max(size, (count - 1) * stride) + before + dilation * window
            for size, window, stride, dilation, before, count in self.axes
        )
        blocks = self.sizes[1] * -(-rows // THIN.m) * -(-columns // THIN.n) * -(-steps // CHUNK)
        return max(reach, blocks, *self.shape, *self.matrix) < _FAR

    @property
    def pointwise(self) -> bool:
        """Whether each window is one place, each place a window's, and planes fill tiles."""
        alone = all(
            size == count and (window, stride, before) == (1, 1, 0)
            for size, window, stride, _, before, count in self.axes
        )
        filled = -(-self.plane // LARGE.n) * LARGE.n
        return alone and self.sizes[1] == 1 and 4 * filled <= 5 * self.plane

    @property
    def strided(self) -> bool:
        """Whether places may fall between windows."""
        return self.direction == DX and self._over(2) > 1


def kernel(tile: Tile, direction: int, *, strided: bool = False, phased: bool = False) -> Kernel:
    """The kernel of a tile for a product, or for one phase of it."""
    modes = {
        "IDN_DIRECTION": direction,
        "IDN_STRIDED": int(strided),
        "IDN_PHASED": int(phased),
    }
    macros = tuple((name, str(mode)) for name, mode in modes.items() if mode)
    # The file's own tile is FLAT.
    return Kernel("conv/cuda.cu", "convolve", (*(tile.macros if tile != FLAT else ()), *macros))


EXAMPLES = (
    kernel(FLAT, FORWARD),
    kernel(FLAT, DX, strided=True),
    kernel(FLAT, DX, phased=True),
    kernel(THIN, DW),
)
"""Each product once."""

PLAIN = tuple(
    Kernel("conv/cuda_plain.cu", "convolve_plainly", (("IDN_DIRECTION", str(d)),) if d else ())
    for d in (FORWARD, DX, DW)
)


_MENDS = (*PLAIN[DX].defines, ("IDN_MENDS", "1"))
FINITE = Kernel(PLAIN[DX].file, "find_finite", _MENDS)
MEND = Kernel(PLAIN[DX].file, PLAIN[DX].entry, _MENDS)


def tiled(product: Product) -> tuple[Tile, ...]:
    """Tiles for a product; none where its elements are better computed alone."""
    rows, columns, _ = product.matrix
    tiles = (LARGE, FLAT) if rows > FLAT.m else (FLAT, THIN) if rows > THIN.m else (THIN,)
    least = tiles[-1]
    filled = -(-rows // least.m) * least.m * -(-columns // least.n) * least.n
    return tiles if product.near and filled < _PLAIN_COST * rows * columns else ()


def convolve(
    device: Device, how: Cut | None, product: Product, out: Any, left: Any, right: Any
) -> None:
    """A product cut as it is told, or chosen for the device."""
    plan = planned(Kind.of(device), how, product, on_border=on_border(out))
    if plan:
        launch(device, (plan,), out, left, right)
    elif product.elements:
        # NUM-10: an empty contraction is +0.
        fold(device, out, out, product.elements, 0, 1)


@lru_cache(maxsize=1 << 12)
def planned(kind: Kind, how: Cut | None, product: Product, *, on_border: bool) -> Planned | None:
    """The launch of a product; ``None`` where there is nothing to multiply.

    Args:
        kind: of the device.
        how: how to cut it, if that is given.
        product: what is computed.
        on_border: whether the result begins on a border of four floats.
    """
    rows, columns, steps = product.matrix
    if not product.elements * steps:
        return None
    tiles = (how.tile,) if how else tiled(product)
    if not tiles:
        return planned_plainly(kind, _choose_plainly(kind, product), product)
    how = how or choose(kind, tiles, product.sizes[1], *product.matrix, product.elements)
    wide = product.strides[0] % 4 == 0 and (on_border or how.planes > 1)
    words = (
        *(*product.shape, *product.matrix, *product.strides),
        *(how.chunks, how.ranges, how.span, int(wide)),
        *(multiplier(axis[2]) for axis in product.axes),
    )
    blocks = product.sizes[1] * how.ranges * -(-rows // how.tile.m) * -(-columns // how.tile.n)
    made = kernel(how.tile, product.direction, strided=product.strided)
    return Planned(made, (blocks,), Words(words, len(words)), product.elements, how)


# ---- phases of the strides ------------------------------------------------------------------


def phased(product: Product) -> bool:
    """Whether a product is computed phase by phase."""
    count = math.prod(min(axis[0], axis[2]) for axis in product.axes)
    some = product.elements and product.matrix[2]
    return bool(some and product.strided and count <= MOST_PHASES and tiled(product))


@lru_cache(maxsize=1 << 10)
def planned_phases(kind: Kind, how: Cut | None, product: Product) -> tuple[Planned, ...]:
    """A launch for each phase; they write parts of one result, or of its planes."""
    down, across = (phases(axis) for axis in product.axes)
    if how is None:
        rows, columns, steps = product.matrix
        few = -(-columns // (len(down) * len(across)))
        sizes = (product.sizes[1], rows, few, steps)
        how = choose(kind, tiled(product), *sizes, product.elements)
    return tuple(_phase(how, product, pair) for pair in itertools.product(down, across))


def _phase(how: Cut, product: Product, pair: tuple[Phase, Phase]) -> Planned:
    """The launch of one phase."""
    (down, across), (vertical, horizontal) = pair, product.axes
    batch, groups, _, outputs = product.sizes
    rows, _, steps = product.matrix
    places, windows = down.places * across.places, (vertical[1], horizontal[1])
    most = most_steps(outputs, windows, pair, CHUNK)
    words = (
        *(*product.sizes, *down.axis(vertical[5]), *across.axis(horizontal[5])),
        *(rows, batch * places, steps, places, *product.strides[1:]),
        *(how.chunks, how.ranges, how.span, 0, 0, 0),
        *(down.first * horizontal[0] + across.first, across.places),
        *(vertical[2] * horizontal[0], horizontal[2], max(1, -(-most // how.tile.k))),
        *(product.taps, horizontal[1], down.tap, down.apart, across.tap, across.apart),
    )
    blocks = groups * how.ranges * -(-rows // how.tile.m) * -(-batch * places // how.tile.n)
    made = kernel(how.tile, DX, phased=True)
    return Planned(made, (blocks,), Words(words, len(words)), product.elements, how)


def conv_dx_by_phases(
    device: Device, how: Cut | None, product: Product, out: Any, grad: Any, w: Any
) -> None:
    """A product that is ``phased``, cut as it is told or chosen for the device.

    The products with +0 between windows change nothing but -0, where kernels are finite
    (``cuda.cu``): where that may be otherwise an element is computed again with all of them.
    """
    kind = Kind.of(device)
    launch(device, planned_phases(kind, how, product), out, w, grad)
    plain = planned_plainly(kind, cut(ALONE, -(-product.matrix[2] // CHUNK), 1), product)
    lines = product.sizes[1] * product.sizes[2]
    finite = device.empty((lines,), np.dtype(np.int32))
    threads = ALONE.threads
    grid = (blocks_over(device, 32 * lines, threads),)
    device.launch(FINITE, grid, (threads,), finite, w, plain.sizes)
    device.launch(MEND, plain.grid, (threads,), out, w, grad, finite, plain.sizes)


# ---- elements alone -------------------------------------------------------------------------


def _choose_plainly(kind: Kind, product: Product) -> Cut:
    """Chunks apart where there are few elements."""
    elements, chunks = product.elements, -(-product.matrix[2] // CHUNK)
    few = elements < kind.multiprocessors * ALONE.threads and elements * chunks <= ROOM
    return cut(ALONE, chunks, chunks if few else 1)


def planned_plainly(kind: Kind, how: Cut, product: Product) -> Planned:
    """The launch of a product element by element, chunks apart (a span of 1) or not."""
    elements = product.elements
    words = (*product.shape, elements, product.matrix[2], how.chunks, how.ranges, how.span)
    blocks = min(-(-elements * how.ranges // how.tile.threads), kind.multiprocessors * WAVES)
    sizes = Words(words, len(words))
    return Planned(PLAIN[product.direction], (blocks,), sizes, elements, how)


def multiplier(length: int) -> int:
    """By what a number below 2^31 is multiplied to be divided by a length below 2^30."""
    power = 1 << (length - 1).bit_length()
    return ((power - length << 32) // length + 1) & 0xFFFFFFFF


def _convolve(
    device: Device,
    direction: int,
    out: Any,
    gathered: Any,
    w: Any,
    sizes: Sequence[int],
    axes: tuple[Axis, Axis],
) -> None:
    """``conv`` or ``conv_dx``: of single places a product of ``w`` with each image as it lies."""
    product = Product.of(direction, sizes, axes)
    if phased(product):
        conv_dx_by_phases(device, None, product, out, gathered, w)
        return
    if not product.pointwise:
        convolve(device, None, product, out, w, gathered)
        return
    rows, _, steps = product.matrix
    plane = product.plane
    w_strides = (0, steps, 1) if direction == FORWARD else (0, 1, rows)
    shape = (product.sizes[0], rows, plane, steps)
    multiply(device, None, out, w, gathered, shape, w_strides, (steps * plane, plane, 1))


def conv(
    device: Device, out: Any, x: Any, w: Any, sizes: Sequence[int], down: Axis, across: Axis
) -> None:
    """Windows of ``x`` times kernels ``w``.

    Args:
        device: where the arrays lie.
        out: float32 (N, G O, OH, OW), row-major, as are the others.
        x: float32 (N, G C, H, W).
        w: float32 (G O, C, KH, KW).
        sizes: N, G, C, O.
        down: size, window, stride, dilation, before and count of the first spatial axis.
        across: the same of the second.
    """
    _convolve(device, FORWARD, out, x, w, sizes, (down, across))


def conv_dx(
    device: Device, out: Any, grad: Any, w: Any, sizes: Sequence[int], down: Axis, across: Axis
) -> None:
    """The gradient of ``conv`` in x: ``out`` as x, ``grad`` as its result, the rest as there."""
    _convolve(device, DX, out, grad, w, sizes, (down, across))


def conv_dw(
    device: Device, out: Any, grad: Any, x: Any, sizes: Sequence[int], down: Axis, across: Axis
) -> None:
    """The gradient of ``conv`` in w: ``out`` as w, ``grad`` as its result, the rest as there."""
    convolve(device, None, Product.of(DW, sizes, (down, across)), out, grad, x)
