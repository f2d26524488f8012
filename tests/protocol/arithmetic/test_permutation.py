"""The keyed permutation: a bijection for every size, fixed by key, epoch and position."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.protocol.arithmetic import permute, philox4x32
from identic.protocol.arithmetic.permutation import half_bits
from identic.protocol.arithmetic.philox import Key

words = st.integers(0, 0xFFFFFFFF)
keys = st.tuples(words, words)
KEY = (0x243F6A88, 0x85A308D3)


def test_num_18__is_a_bijection_for_every_size_up_to_300() -> None:
    for n in range(1, 301):
        assert sorted(permute(KEY, n, n, p) for p in range(n)) == list(range(n))


@given(key=keys, epoch=st.integers(0, (1 << 64) - 1), n=st.integers(1, 70))
def test_num_18__is_a_bijection_for_any_key(key: Key, epoch: int, n: int) -> None:
    assert sorted(permute(key, epoch, n, p) for p in range(n)) == list(range(n))


@given(key=keys, n=st.integers(1, (1 << 63) - 1), data=st.data())
def test_num_18__large_sizes_stay_inside(key: Key, n: int, data: st.DataObject) -> None:
    p = data.draw(st.integers(0, n - 1))
    assert 0 <= permute(key, 3, n, p) < n


def test_num_18__the_network_is_the_one_the_rule_spells_out() -> None:
    n, epoch, position = 1 << 20, (7 << 32) | 5, 0xABCDE
    left, right = position >> 10, position & 0x3FF
    for r in range(6):
        left, right = right, left ^ (philox4x32(KEY, (right, r, 5, 7))[0] % 1024)
    assert permute(KEY, epoch, n, position) == left * 1024 + right


def test_num_18__the_halves_are_the_narrowest_that_hold_the_size() -> None:
    for n in range(1, 5000):
        h = half_bits(n)
        assert h >= 1
        assert 4**h >= n
        assert h == 1 or 4 ** (h - 1) < n
    assert half_bits((1 << 62) + 1) == half_bits((1 << 63) - 1) == 32


def test_num_18__key_words_and_epoch_each_change_the_order() -> None:
    def order(key: Key, epoch: int) -> tuple[int, ...]:
        return tuple(permute(key, epoch, 100, p) for p in range(100))

    orders = {order(k, e) for k in ((0, 0), (1, 0), (0, 1)) for e in (0, 1, 1 << 32)}
    assert len(orders) == 9


@pytest.mark.parametrize("n", [2, 3, 5, 16, 17, 33])
def test_num_18__over_keys_a_position_goes_everywhere(n: int) -> None:
    # Deterministic: 200 keys for each image, expected 200 of each, six standard deviations.
    images = Counter(permute((k, 0), 0, n, n // 2) for k in range(200 * n))
    assert set(images) == set(range(n))
    assert all(abs(count - 200) < 6 * 200**0.5 for count in images.values())


def test_refuses_a_position_or_epoch_out_of_range() -> None:
    for epoch, n, position in [(0, 5, 5), (0, 5, -1), (0, 0, 0), (-1, 5, 0), (1 << 64, 5, 0)]:
        with pytest.raises(ValueError, match=r"position|epoch"):
            permute(KEY, epoch, n, position)
