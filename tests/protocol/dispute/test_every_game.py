"""Every game about the toy job: the honest side wins all of them."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.dispute.moves import Children, Chunk, Entries, Evidence, Move, Side
from identic.protocol.dispute.state import Dispute
from identic.protocol.hashing import sha256
from identic.protocol.ids import Unsigned
from identic.protocol.job.entries import Verdicts
from tests.helpers.counter_trace import counter_data, counter_plan, counter_state
from tests.helpers.effort import examples
from tests.helpers.execution import MemoryExecution
from tests.helpers.game import (
    Game,
    Strategy,
    honest,
    most_rounds,
    play,
    setup_between,
    terms_of,
)
from tests.helpers.scripted import Chooser, Scripted, every

PLAN = counter_plan()
TERMS = terms_of(PLAN, counter_state(), counter_data(), steps=5, cadence=2)
GOOD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data())


def against(liar: Scripted, strategy: Strategy, side: Side, width: int, first: Side) -> Game:
    """Play the honest run on ``side`` against a liar that plays ``strategy``."""
    ours, theirs = GOOD.run_leaves(), liar.leaves
    if side is Side.DEFENDER:
        setup = setup_between(TERMS, PLAN, ours, theirs, width=width)
        game = play(setup, honest(GOOD), strategy, first=first)
    else:
        setup = setup_between(TERMS, PLAN, theirs, ours, width=width)
        game = play(setup, strategy, honest(GOOD), first=first)
    assert len(game.ruling.rounds) <= most_rounds(setup)
    assert [s for s, _ in game.refused if s is side] == []
    return game


@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize("side", list(Side))
def test_dsp_15__the_honest_side_wins_every_game(side: Side, width: int) -> None:
    ends: Counter[tuple[Verdicts, str]] = Counter()

    def run(chooser: Chooser) -> Game:
        liar = Scripted(GOOD, chooser.pick)
        return against(liar, liar, side, width, first=side if len(ends) % 2 else side.other)

    for game in every(run):
        assert game.ruling.loser is side.other
        ends[game.ruling.verdict, game.ruling.level] += 1
    questions = {"start", "load", "header", "state", "primitive"}
    assert {level for verdict, level in ends if verdict is Verdicts.WRONG} == questions
    # Late: where the liar has claimed what it cannot open.
    assert {level for verdict, level in ends if verdict is Verdicts.LATE} == {"state", "output"}
    # A wrong start; in each of 5 steps 3 loads, 3 unopenable results, 13 ways through the folds
    # of 5 elements, 3 leaves of the state, and an unopenable state.
    assert sum(ends.values()) == 1 + 5 * (3 + 3 + 13 + 3 + 1)


@st.composite
def garbage(draw: st.DrawFn, move: Move | None) -> Move | None:
    """A move, or something like it that should not help."""
    way = draw(st.integers(0, 9))
    digests = tuple(sha256(bytes([i])) for i in range(draw(st.integers(0, 5))))
    words = tuple(Unsigned(i) for i in range(draw(st.integers(0, 5))))
    if way == 0:
        return None
    if way == 1:
        return Children(digests)
    if way == 2:
        return Chunk(draw(st.binary(max_size=9)))
    if way == 3:
        return Entries(words)
    if way == 4:
        return Evidence((), (), ())
    if way == 5 and isinstance(move, Children):
        return Children((*move.digests, *digests))
    if way == 6 and isinstance(move, Children) and move.digests:
        at = draw(st.integers(0, len(move.digests) - 1))
        return Children((*move.digests[:at], sha256(b"other"), *move.digests[at + 1 :]))
    if way == 7 and isinstance(move, Entries):
        return Entries((*(Unsigned(2**64 - 1) for _ in move.words[:-1]), *move.words[-1:]))
    return move


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data(), side=st.sampled_from(Side), width=st.sampled_from([2, 4, 2048]))
def test_dsp_15__random_play_never_beats_honest_play(
    data: st.DataObject, side: Side, width: int
) -> None:
    liar = Scripted(GOOD, lambda options: data.draw(st.integers(0, options - 1)))

    def strategy(dispute: Dispute, who: Side) -> Move | None:
        return data.draw(garbage(liar(dispute, who)))

    game = against(liar, strategy, side, width, first=data.draw(st.sampled_from(Side)))
    assert game.ruling.loser is side.other
