"""Silence loses at every level, for either side; about the evidence it helps nobody."""

from functools import cache

import pytest

from identic.protocol.dispute.moves import Move, Side
from identic.protocol.dispute.state import Dispute, Phase
from identic.protocol.job.entries import Verdicts
from tests.helpers.counter_trace import counter_data, counter_plan, counter_state
from tests.helpers.execution import MemoryExecution
from tests.helpers.game import Game, Strategy, honest, play, setup_between, silent_from, terms_of
from tests.helpers.scripted import Chooser, Scripted

PLAN = counter_plan()
TERMS = terms_of(PLAN, counter_state(), counter_data(), steps=5, cadence=2)
GOOD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data())
ELEMENT, STATE = (1, 1, 3, 1, 0), (1, 1, 6, 1)
"""Where a liar lies: in an element of an operator's result, or in the header of a new state."""
GAMES = {
    "run": ELEMENT,
    "interval": ELEMENT,
    "step": ELEMENT,
    "state": STATE,
    "output": ELEMENT,
    "chunk": ELEMENT,
    "fold": ELEMENT,
}
EVIDENCE = "evidence"


@cache
def played(choices: tuple[int, ...], liar: Side, quiet: tuple[tuple[Side, int], ...] = ()) -> Game:
    """Play with these sides silent from a turn on."""
    lies, right = Scripted(GOOD, Chooser(list(choices)).pick), honest(GOOD)

    def lying(dispute: Dispute, side: Side) -> Move | None:
        asked = dispute.phase is Phase.AWAIT_EVIDENCE
        return right(dispute, side) if asked else lies(dispute, side)

    players: dict[Side, Strategy] = {liar.other: right, liar: lying}
    for side, turn in quiet:
        players[side] = silent_from(players[side], turn)
    leaves = {liar.other: GOOD.run_leaves(), liar: lies.leaves}
    setup = setup_between(TERMS, PLAN, leaves[Side.DEFENDER], leaves[Side.CHALLENGER], width=4)
    return play(setup, players[Side.DEFENDER], players[Side.CHALLENGER])


def turns(level: str, liar: Side) -> list[int]:
    """The rounds of the whole game on a level; one after all rounds for the evidence."""
    whole = played(GAMES.get(level, ELEMENT), liar)
    if level == EVIDENCE:
        return [len(whole.ruling.rounds)]
    return [turn for turn, line in enumerate(whole.ruling.rounds) if line.level == level]


@pytest.mark.parametrize("liar", list(Side))
@pytest.mark.parametrize("quiet", list(Side))
@pytest.mark.parametrize("level", GAMES)
def test_dsp_12__silence_loses_at_every_level(level: str, quiet: Side, liar: Side) -> None:
    assert turns(level, liar)
    for turn in turns(level, liar):
        ruling = played(GAMES[level], liar, ((quiet, turn),)).ruling
        assert (ruling.verdict, ruling.loser) == (Verdicts.LATE, quiet)
        assert (ruling.rule, ruling.level) == ("DSP-12", level)
        assert len(ruling.rounds) == turn


@pytest.mark.parametrize("liar", list(Side))
@pytest.mark.parametrize("quiet", list(Side))
def test_dsp_12__silence_about_the_evidence_does_not_help_a_liar(quiet: Side, liar: Side) -> None:
    """Either side may give it, and it says the same whoever does."""
    (turn,) = turns(EVIDENCE, liar)
    ruling = played(ELEMENT, liar, ((quiet, turn),)).ruling
    assert (ruling.verdict, ruling.loser, ruling.rule) == (Verdicts.WRONG, liar, "REF-12")


@pytest.mark.parametrize("liar", list(Side))
@pytest.mark.parametrize("level", [*GAMES, EVIDENCE])
def test_dsp_13__when_both_are_silent_nobody_loses_at_any_level(level: str, liar: Side) -> None:
    choices = GAMES.get(level, ELEMENT)
    for turn in turns(level, liar):
        ruling = played(choices, liar, tuple((side, turn) for side in Side)).ruling
        assert (ruling.verdict, ruling.loser) == (Verdicts.CANNOT_TELL, None)
        assert (ruling.rule, ruling.level) == ("DSP-13", level)
