"""Layouts show what numpy's views show."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from identic.kernels.arrays import part
from identic.kernels.layouts import Layout, one_stride
from tests.helpers.effort import examples

View = tuple[Layout, NDArray[Any]]
SIZE = 3 * 4 * 5


def shown(layout: Layout) -> NDArray[Any]:
    """The elements a layout shows in a buffer that holds its own positions."""
    buffer = np.arange(SIZE)[layout.offset :]
    return as_strided(buffer, layout.shape, [8 * s for s in layout.strides], writeable=False)


def changed(view: View, source: random.Random) -> View:
    """One more view of a view, and the same done by numpy."""
    layout, array = view
    kind = source.choice(["permute", "slice", "expand", "reshape"])
    if kind == "permute":
        axes = list(range(array.ndim))
        source.shuffle(axes)
        return layout.permuted(axes), array.transpose(axes)
    if kind == "slice":
        start = [source.randint(0, n) for n in array.shape]
        stop = [source.randint(s, n) for s, n in zip(start, array.shape, strict=True)]
        step = [source.randint(1, 3) for _ in start]
        bounds = tuple(slice(*b) for b in zip(start, stop, step, strict=True))
        return layout.sliced(start, stop, step), part(array, *bounds)
    if kind == "expand" and array.ndim < 5:
        shape = (2, *array.shape)
        return layout.expanded(shape), np.broadcast_to(array, shape)
    parts = [n for n in array.shape if n != 1]
    source.shuffle(parts)
    if len(parts) > 1 and source.random() < 0.5:
        parts = [parts[0] * parts[1], *parts[2:]]
    moved = layout.reshaped(parts)
    return (moved, array.reshape(parts)) if moved is not None else view


@settings(max_examples=examples(400), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_views_of_views_show_the_elements_numpy_shows(seed: int) -> None:
    source = random.Random(seed)
    view: View = (Layout.dense(0, (3, 4, 5)), np.arange(SIZE).reshape(3, 4, 5))
    for _ in range(5):
        view = changed(view, source)
        layout, array = view
        assert layout.shape == array.shape
        assert shown(layout).tolist() == array.tolist()
        if array.size:
            dense = np.ravel(array).tolist() == list(
                range(layout.offset, layout.offset + array.size)
            )
            assert layout.row_major == dense


@given(
    shape=st.lists(st.integers(1, 4), max_size=4),
    steps=st.lists(st.integers(0, 12), min_size=4, max_size=4),
)
def test_one_stride_stands_for_all_axes_where_it_exists(shape: list[int], steps: list[int]) -> None:
    kept = steps[: len(shape)]
    places = [sum(i * s for i, s in zip(index, kept, strict=True)) for index in np.ndindex(*shape)]
    stride = one_stride(shape, kept)
    if stride is not None:
        assert places == [i * stride for i in range(len(places))]
    elif len(places) > 1:
        even = places[1] - places[0]
        assert places != [i * even for i in range(len(places))]
