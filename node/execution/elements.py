"""Single elements of arrays as words."""

from __future__ import annotations

import numpy as np

from identic.kernels.arrays import Array, on_host, row_major

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def word_at(array: Array, index: int) -> int:
    """Bit pattern of the element at flat position ``index``."""
    flat = row_major(array).reshape(-1)
    return int(on_host(flat[index : index + 1]).view(_WORDS[array.dtype.itemsize])[0])


def with_word(array: Array, index: int, word: int) -> Array:
    """A copy of ``array`` whose element at flat position ``index`` has the bit pattern ``word``."""
    copy = np.array(array, order="C")
    copy.reshape(-1)[index : index + 1].view(_WORDS[array.dtype.itemsize])[0] = word
    return copy
