"""A chain over many sets of buffers as one launch: an optimizer's update of all its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from identic.kernels.cuda import chain_text
from identic.kernels.cuda.chain import BLOCK
from identic.kernels.cuda.device import Device, Kernel
from identic.kernels.engine import Over

TILE = 2048
"""Elements of a block; tunes speed only."""

_FILE = "elementwise/cuda_chain.h"


class JoinedChain:
    """Elementwise operators over many sets of buffers.

    Args:
        device: where it runs.
        inputs: kind of each input, and whether it has one element a row.
        code: operators and the numbers of their operands; results follow the inputs.
        outputs: numbers of the values to store.
        scalars: of each input, whether it has one element for all; the others are dense.
        over: results that may be written over inputs.

    Raises:
        ValueError: an operator is unknown, sums or searches rows, or a result is of rows.
    """

    def __init__(
        self,
        device: Device,
        inputs: Sequence[tuple[str, bool]],
        code: Sequence[tuple[str, Sequence[int]]],
        outputs: Sequence[int],
        scalars: Sequence[bool],
        over: Over = (),
    ) -> None:
        made = chain_text.Code(inputs, code, outputs, over)
        if made.reduces or made.row_outputs:
            raise ValueError("chains with rows are not joined")
        self._device = device
        self._kernel = Kernel(_FILE, "chain", body=chain_text.joined(made, scalars))

    def run(
        self, outputs: list[list[Any]], inputs: list[list[Any]], elements: Sequence[int]
    ) -> None:
        """Fill the outputs of each set, dense and of so many elements."""
        firsts = list(accumulate((-(-n // TILE) for n in elements), initial=0))
        if not firsts[-1]:
            return
        address = self._device.address
        table = [
            (first, n, *(address(x) for x in (*out, *given)))
            for first, n, out, given in zip(firsts, elements, outputs, inputs, strict=False)
            if n
        ]
        held = self._device.upload(np.array(table, dtype=np.int64))
        self._device.launch(self._kernel, (firsts[-1],), (BLOCK,), held, len(table), TILE)
