"""The JSON form: the same value back, and nothing but it."""

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.proofs.json_form import parse, render
from identic.protocol.errors import ProtocolError
from identic.protocol.ids import Count, Digest, Unsigned


class Colour(IntEnum):
    """An enumeration."""

    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Circle:
    """A member of a union."""

    TAG: ClassVar[int] = 1
    radius: Count


@dataclass(frozen=True)
class Square:
    """Another."""

    TAG: ClassVar[int] = 2
    side: int


@dataclass(frozen=True)
class Drawing:
    """Every kind of field."""

    name: str
    visible: bool
    colour: Colour
    shapes: tuple[Circle | Square, ...]
    digest: Digest | None
    data: bytes
    background: Circle


WORDS = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 2**53 - 1, 2**53, 2**53 + 1, 2**64 - 1])
)
SIGNED = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), -(2**53), 1 - 2**53, 2**53])
)
SHAPES = st.one_of(st.builds(lambda n: Circle(Count(n)), WORDS), st.builds(Square, SIGNED))
DRAWINGS = st.builds(
    Drawing,
    name=st.text(),
    visible=st.booleans(),
    colour=st.sampled_from(Colour),
    shapes=st.lists(SHAPES, max_size=4).map(tuple),
    digest=st.none() | st.binary(min_size=32, max_size=32).map(Digest),
    data=st.binary(max_size=9),
    background=WORDS.map(lambda n: Circle(Count(n))),
)

ONE = Drawing(
    "a", True, Colour.RED, (Circle(Count(1)), Square(-2)), None, b"\x01\xff", Circle(Count(2**60))
)


@given(drawing=DRAWINGS)
def test_rcp_4__a_value_comes_back(drawing: Drawing) -> None:
    assert parse(Drawing, render(drawing)) == drawing


def test_rcp_4__the_form_is_as_it_is_written_down() -> None:
    assert json.loads(render(ONE)) == {
        "name": "a",
        "visible": True,
        "colour": "red",
        "shapes": [{"kind": "Circle", "radius": 1}, {"kind": "Square", "side": -2}],
        "digest": None,
        "data": "01ff",
        "background": {"radius": str(2**60)},
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"name": "a"', '"name": 1'),
        ('"name": "a"', '"name": "\\ud800"'),
        ('"kind": "Circle"', '"kind": []'),
        ('"kind": "Circle"', '"kind": {"a": 1}'),
        ('"name": "a"', '"name": "a", "name": "a"'),
        ('"name": "a"', '"other": "a"'),
        ('"name": "a",', ""),
        ('"name": "a"', '"name": "a", "more": 1'),
        ('"visible": true', '"visible": 1'),
        ('"visible": true', '"visible": "true"'),
        ('"red"', '"RED"'),
        ('"red"', "1"),
        ('"Circle"', '"Ball"'),
        ('"kind": "Circle",', ""),
        ('"radius": 1', '"radius": 1.0'),
        ('"radius": 1', '"radius": 1e3'),
        ('"radius": 1', '"radius": -1'),
        ('"radius": 1', '"radius": "1"'),
        ('"radius": 1', '"radius": true'),
        ('"radius": 1', '"radius": null'),
        ('"radius": 1', '"radius": NaN'),
        ('"radius": 1', f'"radius": {2**60}'),
        ('"radius": 1', f'"radius": "{2**64}"'),
        ('"radius": 1', f'"radius": "0{2**60}"'),
        ('"radius": 1', f'"radius": "+{2**60}"'),
        ('"radius": 1', '"radius": "٣"'),
        ('"side": -2', f'"side": "{-(2**64)}"'),
        ('"side": -2', '"side": "-"'),
        ('"01ff"', '"01FF"'),
        ('"01ff"', '"01f"'),
        ('"01ff"', '" 01ff"'),
        ('"digest": null', '"digest": "01ff"'),
        ('"digest": null', '"digest": false'),
    ],
)
def test_rcp_4__anything_else_is_refused(old: str, new: str) -> None:
    text = render(ONE)
    assert old in text
    with pytest.raises(ProtocolError):
        parse(Drawing, text.replace(old, new, 1))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "1", '"x"', "[" * 100_000, "9" * 9_999, "\x00"]
)
def test_rcp_4__what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse(Drawing, text)
    assert refused.value.rule == "RCP-4"


def test_integers_keep_their_kind() -> None:
    assert type(parse(Circle, render(Circle(Count(7)))).radius) is Count
    with pytest.raises(ProtocolError):
        Unsigned(-1)
