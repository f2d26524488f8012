"""The random generator: known answers, uniforms and indices."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.protocol.arithmetic import bounded, philox4x32, uniform24
from identic.protocol.arithmetic.philox import Counter, Key
from tests.protocol.arithmetic.oracle import nearest

words = st.integers(0, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("counter", "key", "want"),
    [
        # The three vectors of Random123 (kat_vectors, philox 4 32 10).
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
            (0xFFFFFFFF, 0xFFFFFFFF),
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_num_15__known_answers_of_random123(
    counter: Counter, key: Key, want: tuple[int, int, int, int]
) -> None:
    assert philox4x32(key, counter) == want


@given(key=st.tuples(words, words), low=words)
def test_num_15__different_counters_give_different_blocks(key: Key, low: int) -> None:
    block = philox4x32(key, (low, 0, 0, 0))
    assert all(0 <= w < 1 << 32 for w in block)
    assert block != philox4x32(key, (low ^ 1, 0, 0, 0))
    assert block != philox4x32(key, (low, 0, 0, 1))
    assert block != philox4x32((key[0] ^ 1, key[1]), (low, 0, 0, 0))


@given(word=words)
def test_num_16__a_uniform_is_a_multiple_of_two_to_the_minus_24(word: int) -> None:
    assert uniform24(word) == nearest(Fraction(word >> 8, 1 << 24))
    assert 0 <= uniform24(word) < 0x3F800000
    assert uniform24(word) == uniform24(word | 0xFF)


def test_num_16__the_ends_of_the_uniforms() -> None:
    assert uniform24(0) == uniform24(0xFF) == 0
    assert uniform24(0x100) == 0x33800000
    assert uniform24(0xFFFFFFFF) == 0x3F7FFFFF


@given(lo=words, hi=words, bound=st.integers(1, (1 << 63) - 1))
def test_num_16__an_index_is_below_its_bound(lo: int, hi: int, bound: int) -> None:
    index = bounded(lo, hi, bound)
    assert 0 <= index < bound
    assert index == (hi * 2**32 + lo) * bound // 2**64


def test_num_16__the_ends_of_the_indices() -> None:
    assert bounded(0, 0, 10) == 0
    assert bounded(0xFFFFFFFF, 0xFFFFFFFF, 10) == 9
    assert bounded(0, 0x80000000, 10) == 5
    assert bounded(0xFFFFFFFF, 0x7FFFFFFF, 10) == 4
