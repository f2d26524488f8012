"""The printed table of transitions is the one the machine runs."""

import re
from pathlib import Path

from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.machine import TRANSITIONS, Judged, MoveMade, TimeCalled, table
from identic.protocol.dispute.state import Phase

SPEC = Path(__file__).parents[3] / "docs" / "spec" / "dispute.md"
PRINTED = re.compile(r"<!-- transitions:[^\n]*-->\n(.*?)<!-- end of transitions -->", re.DOTALL)


def test_the_specification_prints_the_table() -> None:
    match = PRINTED.search(SPEC.read_text(encoding="utf-8"))
    assert match is not None
    assert match[1].strip() == table().strip()


def test_every_phase_but_the_last_goes_on() -> None:
    assert {phase for phase, _ in TRANSITIONS} == set(Phase) - {Phase.RULED}
    assert {kind for _, kind in TRANSITIONS} == {MoveMade, TimeCalled, Judged, Pause}
