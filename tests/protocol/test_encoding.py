"""The canonical encoding: one byte string for one value, and back, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Count, Digest, Unsigned


class Colour(IntEnum):
    """An enumeration."""

    RED = 1
    BLUE = 7


@dataclass(frozen=True)
class Circle:
    """A member of a union."""

    TAG: ClassVar[int] = 1
    radius: Count


@dataclass(frozen=True)
class Label:
    """Another member."""

    TAG: ClassVar[int] = 2
    text: str


@dataclass(frozen=True)
class Everything:
    """A record with a field of every kind."""

    flag: bool
    signed: int
    count: Count
    digest: Digest
    blob: bytes
    text: str
    colour: Colour
    many: tuple[Unsigned, ...]
    maybe: Label | None
    shape: Circle | Label


@dataclass(frozen=True)
class Small:
    """The record of the specification's example."""

    count: Count
    name: str
    flag: bool


unsigned = st.integers(0, 2**64 - 1)
labels = st.builds(Label, st.text(max_size=8))
everything = st.builds(
    Everything,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    unsigned.map(Count),
    st.binary(min_size=32, max_size=32).map(Digest),
    st.binary(max_size=9),
    st.text(max_size=9),
    st.sampled_from(Colour),
    st.lists(unsigned.map(Unsigned), max_size=3).map(tuple),
    st.none() | labels,
    labels | st.builds(Circle, unsigned.map(Count)),
)


def attempt(data: bytes) -> Everything | None:
    """The value, or ``None`` where the bytes are refused."""
    try:
        return decode(Everything, data)
    except ProtocolError:
        return None


def refused(rule: str, kind: type, data: bytes, code: Code = Code.MALFORMED) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(kind, data)
    assert (caught.value.rule, caught.value.code) == (rule, code)


def test_enc_1__the_example_of_the_specification() -> None:
    data = bytes.fromhex("0000000000000003 00000001 77 01")
    assert encode(Small(Count(3), "w", True)) == data
    assert decode(Small, data) == Small(Count(3), "w", True)


@given(value=everything)
def test_enc_1__a_value_comes_back(value: Everything) -> None:
    assert decode(Everything, encode(value)) == value


@given(data=st.binary(max_size=150))
def test_enc_1__any_bytes_are_refused_or_canonical(data: bytes) -> None:
    value = attempt(data)
    assert value is None or encode(value) == data


@given(value=everything, at=st.integers(0, 400), to=st.integers(0, 255))
def test_enc_1__a_changed_byte_is_refused_or_another_value(
    value: Everything, at: int, to: int
) -> None:
    data = bytearray(encode(value))
    data[at % len(data)] = to
    other = attempt(bytes(data))
    if other is not None:
        assert encode(other) == data
        assert (other == value) == (data == encode(value))


@given(value=everything, cut=st.integers(1, 200), tail=st.binary(min_size=1, max_size=4))
def test_enc_1__short_and_long_bytes_are_refused(value: Everything, cut: int, tail: bytes) -> None:
    data = encode(value)
    with pytest.raises(ProtocolError):
        decode(Everything, data[: max(0, len(data) - cut)])
    refused("ENC-1", Everything, data + tail)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_enc_2__unsigned_numbers_outside_their_range_are_refused(number: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        Count(number)
    assert (caught.value.rule, caught.value.code) == ("ENC-2", Code.OUT_OF_RANGE)


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**63])
def test_enc_2__signed_numbers_outside_their_range_are_refused(number: int) -> None:
    @dataclass(frozen=True)
    class Signed:
        value: int

    with pytest.raises(ProtocolError) as caught:
        encode(Signed(number))
    assert caught.value.rule == "ENC-2"


def test_enc_2__the_big_end_comes_first() -> None:
    assert encode(Circle(Count(1))) == bytes(7) + b"\x01"


def test_enc_3__a_length_beyond_the_bytes_left_is_refused() -> None:
    refused("ENC-3", Label, b"\xff\xff\xff\xff", Code.TOO_LARGE)
    refused("ENC-3", Label, b"\x00\x00\x00\x02a", Code.TOO_LARGE)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_enc_4__another_length_is_refused(size: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        Digest(bytes(size))
    assert caught.value.rule == "ENC-4"


def test_enc_5__a_truth_value_is_0_or_1() -> None:
    refused("ENC-5", Small, bytes(8) + bytes(4) + b"\x02")


def test_enc_6__text_is_utf_8() -> None:
    refused("ENC-6", Label, b"\x00\x00\x00\x01\xff")


def test_enc_7__unknown_choices_are_refused() -> None:
    @dataclass(frozen=True)
    class Chosen:
        colour: Colour

    @dataclass(frozen=True)
    class Either:
        shape: Circle | Label

    refused("ENC-7", Chosen, b"\x02", Code.UNKNOWN)
    refused("ENC-7", Either, b"\x03", Code.UNKNOWN)
    assert decode(Chosen, b"\x07") == Chosen(Colour.BLUE)
