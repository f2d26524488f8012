"""Launches matrix products on a CUDA device. Rules: NUM-10, NUM-11.

A product is cut into tiles of its result and, where these are too few for the device, into
ranges of k whose chunks or groups are stored apart and added up afterwards. How it is cut
tunes speed only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, Words, blocks_over

CHUNK = 256
"""Steps of a chain: NUM-10."""
GROUP = 16
"""Chains whose sums are added up before others are: NUM-10."""
WHOLE = 1 << 30
"""Chunks of a plane of the result that is all of it."""

ROOM = 1 << 26
"""Most floats of planes, 256 MiB."""

MOST_BLOCKS = (1 << 31) - 1
"""Blocks of a grid along x, at most."""

_WIDE, _LINES, _STEPS = range(3)
_FOUR = 16
"""Bytes of four floats, which are read and written at once."""
_BLOCK = 256

# What a cut is judged by; it tunes speed only.
_ROOMY = 80
"""Architecture from which on shared memory holds two large tiles of 16 steps in two stages."""
_LANES = 128
"""Products of a multiprocessor in a cycle."""
_BYTES, _TRAFFIC = 8, 16
"""Bytes that an element of a plane costs, and those that a multiprocessor moves in a cycle."""
_FEW = 4
"""Ranges of k that are tried even where there are tiles enough: the last ones may not be."""
_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Tile:
    """Results of one block, how many of them a thread owns, and lanes that share a column."""

    m: int
    n: int
    thread_m: int
    thread_n: int
    lanes_m: int
    k: int = 16

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.m * self.n // (self.thread_m * self.thread_n)

    @property
    def rate(self) -> float:
        """About what part of its instructions are products: the others are ten for each step."""
        results = self.thread_m * self.thread_n
        return results / (results + 10)

    @property
    def macros(self) -> tuple[tuple[str, str], ...]:
        """Macros of ``cuda_tile.h``."""
        names = ("TILE_M", "TILE_N", "THREAD_M", "THREAD_N", "LANES_M", "TILE_K")
        values = (self.m, self.n, self.thread_m, self.thread_n, self.lanes_m, self.k)
        return tuple((f"IDN_{n}", str(v)) for n, v in zip(names, values, strict=True))


LARGE = Tile(128, 128, 8, 8, 4)
"""For results with enough tiles to keep a device busy."""
TALL = Tile(128, 64, 8, 4, 4)
FLAT = Tile(64, 128, 4, 8, 4)
SMALL = Tile(64, 64, 4, 4, 4)
NARROW = Tile(128, 16, 4, 4, 8)
"""For few columns, and by transposing for few rows."""

_DEFAULT = (LARGE, _STEPS, _WIDE)
"""What the file's own macros are."""


@dataclass(frozen=True)
class Cut:
    """How a contraction is cut.

    Attributes:
        tile: results of a block.
        chunks: chunks of one range of k; a multiple of ``span`` where that is more than 1.
        ranges: how many ranges there are.
        span: chunks of one plane of the result: 1, ``GROUP`` or ``WHOLE``.
        planes: how many planes; with one the result is written at once.
    """

    tile: Tile
    chunks: int
    ranges: int
    span: int
    planes: int


@dataclass(frozen=True)
class Kind:
    """What a device is, as far as it tunes how contractions are cut."""

    multiprocessors: int
    compute_capability: int

    @classmethod
    def of(cls, device: Device) -> Kind:
        """The kind of a device."""
        return cls(device.multiprocessors, device.compute_capability)


@dataclass(frozen=True)
class Planned:
    """A launch of a contraction.

    Attributes:
        kernel: what runs.
        grid: its blocks.
        sizes: what it takes after the arrays.
        elements: of the result.
        how: how it is cut.
    """

    kernel: Kernel
    grid: tuple[int, ...]
    sizes: Words
    elements: int
    how: Cut


def cut(tile: Tile, chunks: int, most: int) -> Cut:
    """A contraction of ``chunks`` chunks in at most about ``most`` ranges of k."""
    each = -(-chunks // max(1, most))
    span = 1
    if each >= GROUP:
        each, span = -(-each // GROUP) * GROUP, GROUP
    ranges = -(-chunks // each)
    if ranges < 2:
        return Cut(tile, chunks, 1, WHOLE, 1)
    return Cut(tile, each, ranges, span, -(-chunks // span))


@lru_cache(maxsize=1 << 12)
def _best(processors: int, tile: Tile, tiles: int, elements: int, k: int) -> tuple[float, Cut]:
    """The cheapest cut for a tile, with its cost in cycles of a multiprocessor."""
    chunks = -(-k // CHUNK)
    most = max(1, min(chunks, 2 * processors // max(1, tiles)))
    each = {1, *(n << i for n in (2, 3) for i in range(most.bit_length())), most}
    cuts = {cut(tile, chunks, n) for n in each if n <= most or n <= _FEW}
    fitting = [c for c in cuts if c.planes == 1 or c.planes * elements <= ROOM]

    def cost(how: Cut) -> float:
        rounds = -(-tiles * how.ranges // processors)
        products = rounds * min(how.chunks * CHUNK, k) * tile.m * tile.n
        sums = how.planes * elements / processors if how.planes > 1 else 0.0
        return products / (_LANES * tile.rate) + sums * _BYTES / _TRAFFIC

    return min(((cost(c), c) for c in fitting), key=lambda pair: (pair[0], pair[1].ranges))


def choose(
    kind: Kind, tiles: Sequence[Tile], batch: int, m: int, n: int, steps: int, elements: int
) -> Cut:
    """One of ``tiles``, and ranges of k if a device has time for more blocks and room for planes.

    Args:
        kind: of the device.
        tiles: those that may be taken.
        batch: how many products there are.
        m: rows of each.
        n: columns of each.
        steps: what each sums over.
        elements: elements of all results together.
    """

    def best(tile: Tile) -> tuple[float, Cut]:
        blocks = batch * -(-m // tile.m) * -(-n // tile.n)
        return _best(kind.multiprocessors, tile, blocks, elements, steps)

    found = min(map(best, tiles), key=lambda pair: pair[0])[1]
    if found.tile == LARGE and kind.compute_capability < _ROOMY:
        return replace(found, tile=replace(LARGE, k=8))
    return found


def choose_product(kind: Kind, batch: int, m: int, n: int, k: int) -> Cut:
    """How to cut a product."""
    tiles = (NARROW,) if n <= NARROW.n else (LARGE, TALL, FLAT, SMALL)
    return choose(kind, tiles, batch, m, n, k, batch * m * n)


def on_border(array: Any) -> bool:
    """Whether a device's array begins where four floats can be read at once."""
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0]) % _FOUR == 0


def reading(strides: Sequence[int], lines: int, *, on_border: bool) -> int:
    """How an operand is read: ``_WIDE``, ``_LINES`` or ``_STEPS``.

    Args:
        strides: elements from a matrix, a line (a row, of the right operand a column), a step of
            k to the next; 0 for a matrix alone.
        lines: how many lines there are.
        on_border: whether it begins on a border of four floats.
    """
    batch, line, step = strides
    if line == 1 and on_border and not any(n % 4 for n in (batch, step, lines)):
        return _WIDE
    return _STEPS if step == 1 and (line != 1 or lines == 1) else _LINES


def kernel(tile: Tile, left: int, right: int) -> Kernel:
    """The kernel of a tile for two ways of reading."""
    if (tile, left, right) == _DEFAULT:
        return Kernel("matmul/cuda.cu", "matmul")
    modes = (("IDN_LEFT", str(left)), ("IDN_RIGHT", str(right)))
    return Kernel("matmul/cuda.cu", "matmul", (*tile.macros, *modes))


EXAMPLES = (
    kernel(LARGE, _STEPS, _WIDE),
    kernel(SMALL, _WIDE, _LINES),
    kernel(NARROW, _LINES, _STEPS),
)
"""Each tile once, each way of reading each operand once."""

FOLD = Kernel("matmul/cuda_fold.cu", "fold_planes")


def fold(device: Device, out: Any, planes: Any, elements: int, number: int, span: int) -> None:
    """Add up planes that hold ``span`` chunks each; none gives +0."""
    group = GROUP if span == 1 else 1
    grid = (blocks_over(device, elements, _BLOCK),)
    device.launch(FOLD, grid, (_BLOCK,), out, planes, elements, number, group)


def launch(device: Device, parts: Sequence[Planned], out: Any, left: Any, right: Any) -> None:
    """Run the parts of a contraction, all cut alike, and add up the planes of its result."""
    how, elements = parts[0].how, parts[0].elements
    planes = out
    if how.planes > 1:
        planes = device.empty((how.planes * elements,), _FLOAT32)
    for part in parts:
        threads = (how.tile.threads,)
        device.launch(part.kernel, part.grid, threads, planes, left, right, part.sizes)
    if how.planes > 1:
        fold(device, out, planes, elements, how.planes, how.span)


def matmul(
    device: Device,
    out: Any,
    a: Any,
    b: Any,
    batch: int,
    m: int,
    n: int,
    k: int,
    a_strides: Sequence[int],
    b_strides: Sequence[int],
) -> None:
    """``out[b,i,j]`` = sum over k of ``a[b,i,k] * b[b,k,j]``.

    Args:
        device: where the arrays lie.
        out: float32 (batch, m, n), row-major.
        a: float32, with ``a_strides`` (batch, row, column) in elements from its first.
        b: float32, with ``b_strides`` likewise; a batch stride of 0 repeats.
        batch: how many products.
        m: rows.
        n: columns.
        k: what is summed over; 0 gives +0.
        a_strides: elements from a matrix, a row, a column of ``a`` to the next.
        b_strides: the same of ``b``.
    """
    multiply(device, None, out, a, b, (batch, m, n, k), a_strides, b_strides)


def multiply(
    device: Device,
    how: Cut | None,
    out: Any,
    a: Any,
    b: Any,
    sizes: tuple[int, int, int, int],
    a_strides: Sequence[int],
    b_strides: Sequence[int],
) -> None:
    """``matmul`` cut as it is told, or chosen for the device; sizes are batch, m, n, k."""
    batch, m, n, k = sizes
    if not batch * m * n:
        return
    if k == 0:
        # NUM-10: an empty contraction is +0.
        fold(device, out, out, batch * m * n, 0, 1)
        return
    borders = (on_border(out), on_border(a), on_border(b))
    strides = ((*a_strides,), (b_strides[0], b_strides[2], b_strides[1]))
    if m <= NARROW.n < n:
        # The product and the sum of two numbers do not depend on their order.
        plan = planned(Kind.of(device), how, (batch, n, m, k), strides[::-1], borders, turned=True)
        launch(device, (plan,), out, b, a)
        return
    plan = planned(Kind.of(device), how, sizes, strides, borders, turned=False)
    launch(device, (plan,), out, a, b)


@lru_cache(maxsize=1 << 12)
def planned(
    kind: Kind,
    how: Cut | None,
    sizes: tuple[int, int, int, int],
    strides: tuple[tuple[int, ...], ...],
    borders: tuple[bool, bool, bool],
    *,
    turned: bool,
) -> Planned:
    """The launch of a product.

    Args:
        kind: of the device.
        how: how to cut it, if that is given.
        sizes: batch, m, n, k.
        strides: of left and right: elements from a matrix, a line, a step of k to the next.
        borders: whether out, left and right begin on a border of four floats.
        turned: the result is written transposed, and ``borders`` are of out, right and left.
    """
    batch, m, n, k = sizes
    how = how or choose_product(kind, batch, m, n, k)
    aligned = borders[:0:-1] if turned else borders[1:]
    left, right = strides
    modes = [
        reading(s if batch > 1 else (0, *s[1:]), lines, on_border=on)
        for s, lines, on in zip(strides, (m, n), aligned, strict=True)
    ]
    wide = not turned and n % 4 == 0 and (borders[0] or how.planes > 1)
    blocks = how.ranges * -(-m // how.tile.m) * -(-n // how.tile.n)
    abreast = min(batch, max(1, MOST_BLOCKS // blocks))
    words = (
        *(m, n, k, *left, right[0], right[2], right[1]),  # sizes of the entry point
        *(m * n, *((1, m) if turned else (n, 1)), batch * m * n),
        *(how.chunks, how.ranges, how.span, int(wide), abreast, batch),
    )
    return Planned(
        kernel(how.tile, modes[0], modes[1]),
        (abreast * blocks, -(-batch // abreast)),
        Words(words, len(words)),
        batch * m * n,
        how,
    )
