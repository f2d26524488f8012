"""Where the buffers of a step lie: never over each other while both are in use, and soon found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.draft import ALIGNMENT, Draft, Operation, _offsets
from identic.protocol.dtypes import DType
from tests.helpers.effort import examples


class Buffer(NamedTuple):
    """Length in elements, and the operations that write and last read it."""

    elements: int
    made: int
    last: int


def drafted(buffers: Sequence[Buffer]) -> Draft:
    """A draft with these buffers, each written by its operation."""
    draft = Draft(_native)
    count = 1 + max((b.last for b in buffers), default=0)
    writes: list[list[int]] = [[] for _ in range(count)]
    for buffer in buffers:
        slot = draft.new(DType.UINT8, buffer.elements)
        draft.slots[slot].last = buffer.last
        writes[buffer.made].append(slot)
    draft.operations = [Operation((), tuple(w), lambda _: lambda: None) for w in writes]
    return draft


@st.composite
def lives(draw: st.DrawFn) -> list[Buffer]:
    """Buffers of a few lengths over a few operations."""
    made = draw(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 20), st.integers(0, 20))))
    return [Buffer(n, a, a + more) for n, a, more in made]


def padded(elements: int) -> int:
    """Bytes that a buffer takes."""
    return -(-max(1, elements) // ALIGNMENT) * ALIGNMENT


@settings(max_examples=examples(100), deadline=None)
@given(buffers=lives())
def test_buffers_in_use_at_once_do_not_touch(buffers: list[Buffer]) -> None:
    offsets, size = _offsets(drafted(buffers))
    assert sorted(offsets) == list(range(len(buffers)))
    placed = [(b, offsets[i], offsets[i] + padded(b.elements)) for i, b in enumerate(buffers)]
    for i, (one, start, end) in enumerate(placed):
        assert 0 <= start < end <= size
        assert start % ALIGNMENT == 0
        for other, begin, stop in placed[:i]:
            together = one.made <= other.last and other.made <= one.last
            assert not (together and start < stop and begin < end)
    # Nothing is wasted when all of it is in use at once.
    total = sum(padded(b.elements) for b in buffers)
    assert size <= total
    if buffers and max(b.made for b in buffers) <= min(b.last for b in buffers):
        assert size == total


def test_the_smallest_gap_that_fits_is_taken_the_first_of_equals() -> None:
    sizes = [64, 192, 64, 128, 64, 192, 64]
    lasts = [9, 0, 9, 0, 9, 0, 9]
    buffers = [Buffer(n, 0, last) for n, last in zip(sizes, lasts, strict=True)]
    buffers += [Buffer(100, 1, 1), Buffer(190, 2, 9), Buffer(190, 3, 9), Buffer(300, 4, 9)]
    offsets, size = _offsets(drafted(buffers))
    assert [offsets[i] for i in range(7)] == [0, 64, 256, 320, 448, 512, 704]
    assert [offsets[i] for i in range(7, 11)] == [320, 64, 512, 768]
    assert size == 768 + 320


def test_a_long_step_with_many_gaps_is_laid_out_soon() -> None:
    # Every second buffer of growing length is freed, and none of the gaps fits the next one.
    count = 1 << 16
    buffers = [Buffer(64 * (i + 1), i, i + 1 if i % 2 else count) for i in range(count)]
    offsets, _ = _offsets(drafted(buffers))
    assert len(offsets) == count
