"""Spatial axes for convolutions and pools: size, window, stride, dilation, before, count."""

from __future__ import annotations

from hypothesis import strategies as st

Six = tuple[int, int, int, int, int, int]


def axis(size: int, window: int, stride: int = 1, dilation: int = 1, pad: int = 0) -> Six:
    """An axis with as many windows as fit between equal borders of ``pad`` places."""
    count = (size + 2 * pad - dilation * (window - 1) - 1) // stride + 1
    return size, window, stride, dilation, pad, count


@st.composite
def axes(draw: st.DrawFn) -> Six:
    """Axes of a few places, windows that may lie in the padding altogether."""
    window, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pad, stride = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    least = max(1, dilation * (window - 1) + 1 - 2 * pad)
    return axis(draw(st.integers(least, least + 8)), window, stride, dilation, pad)
