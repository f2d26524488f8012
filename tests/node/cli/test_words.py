"""Numbers and names as people read them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.node.cli import words
from identic.protocol.dtypes import DType
from identic.protocol.ids import PartyId


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (36_700, "36.7 kB")],
)
def test_sizes(value: int, text: str) -> None:
    assert words.size(value) == text


def test_large_sizes_have_no_decimals() -> None:
    assert words.size(310_000_000) == "310 MB"
    assert words.size(999_600) == "1.0 MB"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (2_400_000, "2.4"),
        (1, "0.000001"),
        (-5_000_000, "-5.0"),
        (10**10, "10,000.0"),
    ],
)
def test_money(value: int, text: str) -> None:
    assert words.money(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.031, "31 ms"),
        (0.21, "0.21 s"),
        (7.0, "7 s"),
        (42, "42 s"),
        (420, "7 min"),
        (3900, "65 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


def test_long_durations() -> None:
    assert words.duration(2 * 3600) == "2 h"
    assert words.duration(2 * 3600 + 300) == "2 h 5 min"
    assert words.duration(5 * 86_400) == "5 days"


def test_parties_have_a_letter_for_their_role() -> None:
    party = PartyId(bytes.fromhex("ab" * 32))
    assert words.party("solver", party) == "s-ababab"
    assert words.party("verifier", party) == "v-ababab"
    assert words.party("anything", party) == "p-ababab"
    assert words.party("solver", None) == "nobody"


@given(st.integers(0, (1 << 32) - 1))
def test_a_decimal_gives_the_same_float32_again(word: int) -> None:
    value = struct.unpack("<f", struct.pack("<I", word))[0]
    text = words.element(DType.FLOAT32, word)
    if value == value:  # noqa: PLR0124 - not a NaN
        assert struct.unpack("<I", struct.pack("<f", float(text)))[0] == word


def test_other_elements() -> None:
    assert words.element(DType.INT64, (1 << 64) - 1) == "-1"
    assert words.element(DType.BOOL, 1) == "true"
    assert words.element(DType.BFLOAT16, 0x3F80) == "1"
    assert words.pattern(DType.FLOAT32, 0x3F800000) == "3f800000"
    assert words.pattern(DType.BOOL, 1) == "01"


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 30))
def test_a_bar_has_its_width_and_never_runs_over(done: int, total: int, width: int) -> None:
    bar = words.bar(done, total, width)
    assert len(bar) == width
    assert (bar == "█" * width) == (total > 0 and done >= total)


@given(st.lists(st.floats(), max_size=200), st.integers(0, 60))
def test_a_curve_stays_within_its_width(values: list[float], width: int) -> None:
    assert len(words.sparkline(values, width)) <= width


def test_a_falling_curve_falls() -> None:
    curve = words.sparkline([8.0, 6.0, 4.0, 2.0], 4)
    assert curve == "".join(sorted(curve, reverse=True))
    assert curve[0] != curve[-1]
