"""Memory that large arrays leave behind, for the next ones of their size.

A step makes a new state while an old one goes. The system takes back what a large array had and
clears what it hands out again, which costs as much as the optimizer's own arithmetic; so it is
kept here instead. An array's memory is given on only when neither the array nor any view of it
is left, whoever held them.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from identic.kernels.arrays import Array

LEAST = 1 << 20
"""Bytes of the smallest array worth it: smaller ones stay in the process as they are."""


class Reserve:
    """Arrays out of memory that is used again; all of it is let go with the reserve."""

    def __init__(self) -> None:
        self._free: defaultdict[int, list[Array]] = defaultdict(list)

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """A row-major array, whose content is not defined."""
        size = math.prod(shape) * dtype.itemsize
        if size < LEAST:
            return np.empty(shape, dtype)
        free = self._free[size]
        memory = free.pop() if free else np.empty(size, np.uint8)
        # Views of an array over a memoryview refer to that array, not to what lies below it.
        array: Array = np.frombuffer(memory.data, dtype)
        weakref.finalize(array, free.append, memory).atexit = False
        return array.reshape(shape)
