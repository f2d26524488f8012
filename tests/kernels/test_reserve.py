"""Memory of large arrays is used again once nobody can see it any more."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from identic.kernels.arrays import Array
from identic.kernels.reserve import LEAST, Reserve

View = Callable[[Any], Any]

FLOAT = np.dtype("<f4")
COUNT = LEAST // 4


def address(array: Array) -> int:
    return array.ctypes.data


def test_what_an_array_leaves_serves_the_next_of_its_size() -> None:
    reserve = Reserve()
    first = reserve.empty((COUNT,), FLOAT)
    place = address(first)
    del first
    other = reserve.empty((COUNT + 1,), FLOAT)
    again = reserve.empty((2, COUNT // 2), FLOAT)
    assert (address(again), again.shape, again.dtype) == (place, (2, COUNT // 2), FLOAT)
    assert again.flags.c_contiguous
    assert again.flags.writeable
    assert address(other) != place


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.reshape(-1, 4)[3:, ::2].T,
        lambda a: a.view("<u4")[5:6],
        lambda a: memoryview(a)[100:],
        lambda a: np.asarray(memoryview(a.reshape(-1)))[1:],
    ],
)
def test_memory_is_not_given_on_while_a_view_is_left(view: View) -> None:
    reserve = Reserve()
    array = reserve.empty((COUNT,), FLOAT)
    array[:] = 1.5
    place, kept = address(array), view(array)
    del array
    second = reserve.empty((COUNT,), FLOAT)
    second[:] = 0
    assert address(second) != place
    assert np.all(np.asarray(kept) == np.asarray(view(np.full(COUNT, 1.5, FLOAT))))
    del kept
    assert address(reserve.empty((COUNT,), FLOAT)) == place


def test_arrays_outlive_their_reserve_and_small_ones_have_nothing_to_do_with_it() -> None:
    reserve = Reserve()
    small, large = reserve.empty((3,), FLOAT), reserve.empty((COUNT,), FLOAT)
    gone = weakref.ref(reserve)
    del reserve
    gc.collect()
    assert gone() is None
    small[:], large[:] = 1, 2
    assert (float(small.sum()), float(large.sum())) == (3, 2 * COUNT)
