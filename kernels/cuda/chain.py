"""Chains on a CUDA device: one generated kernel each, found by its text.

The texts are of ``chain_text.py`` and ``chain_rows.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from identic.kernels.cuda import chain_rows, chain_text
from identic.kernels.cuda.chain_text import Code, Reading
from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.kernels.cuda.places import Places, multiplier
from identic.kernels.engine import Over
from identic.protocol.tensors import strides as row_major

BLOCK = 256
"""Threads of a block; tunes speed only."""

WARP = 32

SHARED = 48 << 10
"""Bytes of shared memory that a block may have on every device."""

LONG_WARPS = 16
"""Warps of a block for a long row at most; tunes speed only."""

MOST_PIECES = 128
"""Pieces of a row at most: what a chain of 64 sums keeps of them fits in ``SHARED``."""

_FILE = "elementwise/cuda_chain.h"

Steps = tuple[int, ...]
Launch = Callable[[list[Any], list[Any]], None]


class Chain:
    """Elementwise operators, and sums and maxima of rows, as one kernel.

    Args:
        device: where it runs.
        inputs: kind of each input, and whether it has one element a row.
        code: operators and the numbers of their operands; results follow the inputs.
        outputs: numbers of the values to store.
        over: results that may be written over inputs; those are dense.

    Raises:
        ValueError: an operator is unknown, or a result is over an input that is read elsewhere.
    """

    def __init__(
        self,
        device: Device,
        inputs: Sequence[tuple[str, bool]],
        code: Sequence[tuple[str, Sequence[int]]],
        outputs: Sequence[int],
        over: Over = (),
    ) -> None:
        self._device = device
        self._code = Code(inputs, code, outputs, over)
        self._launches: dict[tuple[Steps, tuple[Steps, ...]], Launch] = {}

    def run(
        self,
        outputs: list[Any],
        inputs: list[Any],
        shape: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> None:
        """Fill ``outputs``, dense over ``shape`` or over all its axes but the last.

        Raises:
            ValueError: a row is too long to be summed here.
        """
        whole = tuple(shape)
        key = (whole, tuple(_normal(whole, tuple(s)) for s in strides))
        if key not in self._launches:
            make = _over_rows if self._code.reduces else _over_elements
            self._launches[key] = make(self._device, self._code, *key)
        self._launches[key](outputs, inputs)


def _nothing(outputs: list[Any], inputs: list[Any]) -> None:
    del outputs, inputs


def _over_elements(device: Device, code: Code, shape: Steps, strides: tuple[Steps, ...]) -> Launch:
    """A thread for each element."""
    n = math.prod(shape)
    if not n:
        return _nothing
    dense = _normal(shape, row_major(shape))
    patterns = _patterns(strides, (dense, (0,) * len(shape)))
    places = Places.of(shape, *patterns)
    readings = [_reading(s, patterns) for s in strides]
    kernel = Kernel(_FILE, "chain", body=chain_text.flat(code, readings, len(patterns)))
    sizes: tuple[Any, ...] = (n, *(places.arguments if patterns else ()))
    if code.row_outputs:
        sizes += (shape[-1], multiplier(shape[-1]))
    grid = blocks_over(device, n, BLOCK)

    def launch(outputs: list[Any], inputs: list[Any]) -> None:
        device.launch(kernel, (grid,), (BLOCK,), *outputs, *inputs, *sizes)

    return launch


def sums_rows(device: Device, rows: int, width: int) -> bool:
    """Whether a chain should sum or search so many rows of ``width`` elements.

    A block owns a long row: with few rows most of the device would have nothing to do.
    """
    if width <= chain_rows.PIECE:
        return True
    return width <= MOST_PIECES * chain_rows.PIECE and 2 * rows >= device.multiprocessors


def _over_rows(device: Device, code: Code, shape: Steps, strides: tuple[Steps, ...]) -> Launch:
    """A warp for each row, or a block for each long one."""
    rows, width = math.prod(shape[:-1]), shape[-1]
    pieces = -(-width // chain_rows.PIECE)
    if pieces > MOST_PIECES:
        raise ValueError(f"a row of {width} elements in a chain")
    if not rows * width:
        return _nothing
    outer = tuple(s[:-1] for s in strides)
    of_rows = _normal(shape[:-1], row_major(shape[:-1]))
    dense = tuple(s * width for s in of_rows)
    patterns = _patterns(outer, (dense, of_rows, (0,) * len(outer[0])))
    places = Places.of(shape[:-1], *patterns)
    readings = [_row_reading(s, patterns, shape) for s in strides]
    if pieces == 1:
        body, kept = chain_rows.rows(code, readings, len(patterns))
        each = 4 * kept * width
        abreast = max(1, min(BLOCK // WARP, rows, SHARED // each if each else BLOCK // WARP))
        grid, threads, shared = blocks_over(device, rows, abreast), WARP * abreast, each * abreast
    else:
        body, kept = chain_rows.long_rows(code, readings, len(patterns), WARP * LONG_WARPS)
        turns = -(-pieces // LONG_WARPS)
        grid, threads = blocks_over(device, rows, 1), WARP * -(-pieces // turns)
        shared = 4 * kept * pieces
    kernel = Kernel(_FILE, "chain", body=body)
    sizes: tuple[Any, ...] = (rows, *(places.arguments if patterns else ()), width)

    def launch(outputs: list[Any], inputs: list[Any]) -> None:
        device.launch(kernel, (grid,), (threads,), *outputs, *inputs, *sizes, shared=shared)

    return launch


def _patterns(strides: Sequence[Steps], known: Sequence[Steps]) -> list[Steps]:
    """Strides that need places of their own, each once."""
    return [s for s in dict.fromkeys(strides) if s not in known]


def _normal(shape: Steps, steps: Steps) -> Steps:
    """The same strides with a 0 where there is only one element."""
    return tuple(0 if n == 1 else s for n, s in zip(shape, steps, strict=True))


def _reading(steps: Steps, patterns: list[Steps]) -> Reading:
    if steps in patterns:
        return Reading(f"at[{patterns.index(steps)}]", "")
    return Reading("i" if any(steps) else "", "")


def _row_reading(steps: Steps, patterns: list[Steps], shape: Steps) -> Reading:
    outer, step = steps[:-1], steps[-1]
    if outer in patterns:
        row = f"at[{patterns.index(outer)}]"
    elif not any(outer):
        row = ""
    else:
        row = "row" if outer == _normal(shape[:-1], row_major(shape[:-1])) else "row * width"
    return Reading(row, "" if not step else "j" if step == 1 else f"j * {step}")
