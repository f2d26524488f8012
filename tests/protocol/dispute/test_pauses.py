"""While the coordinator is away no clock runs, and nothing else about a dispute changes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.machine import AwaitMoves, MoveMade, TimeCalled, open_dispute, step
from identic.protocol.dispute.moves import Pair, Side
from identic.protocol.dispute.state import Dispute, Phase, Ruling
from identic.protocol.errors import IllegalMove
from identic.protocol.ids import Millis
from identic.protocol.job.entries import Verdicts
from tests.helpers.counter_trace import counter_data, counter_plan, counter_state
from tests.helpers.effort import examples
from tests.helpers.execution import Lie, MemoryExecution
from tests.helpers.game import (
    BUDGET_MS,
    MOVE_MS,
    Game,
    Strategy,
    honest,
    judged,
    setup_between,
    terms_of,
)

PLAN = counter_plan()
TERMS = terms_of(PLAN, counter_state(), counter_data(), steps=5, cadence=2)
GOOD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data())
BAD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data(), Lie(3, 3, 1, (1, 1), 99))
SETUP = setup_between(TERMS, PLAN, BAD.run_leaves(), GOOD.run_leaves(), width=4)
PLAYERS: dict[Side, Strategy] = {Side.DEFENDER: honest(BAD), Side.CHALLENGER: honest(GOOD)}
AWAY = 1_000_000
PHASES = (Phase.AWAIT_BOTH, Phase.AWAIT_DEFENDER, Phase.AWAIT_CHALLENGER, Phase.AWAIT_EVIDENCE)


def moved(state: Dispute, side: Side, at: int) -> Dispute:
    """The dispute after the side's own move."""
    move = PLAYERS[side](state, side)
    assert move is not None
    return judged(Game(state), step(state, MoveMade(Millis(at), side, move)))


def in_phase(phase: Phase) -> Dispute:
    """A dispute that waits for these."""
    state, _ = open_dispute(SETUP)
    if phase is Phase.AWAIT_EVIDENCE:
        while state.phase is not phase:
            for side in Side:
                state = moved(state, side, state.now + 10)
    if phase is Phase.AWAIT_DEFENDER:
        state = moved(state, Side.CHALLENGER, state.now + 10)
    if phase is Phase.AWAIT_CHALLENGER:
        state = moved(state, Side.DEFENDER, state.now + 10)
    assert state.phase is phase
    return state


@pytest.mark.parametrize("phase", PHASES)
def test_dsp_18__deadlines_move_on_by_the_pause_and_reserves_stay(phase: Phase) -> None:
    state = in_phase(phase)
    since = state.now + 100
    after, commands = step(state, Pause(Millis(since), Millis(since + AWAY)))
    for side in Side:
        assert after.clock.deadline(side) == state.clock.deadline(side) + AWAY
    assert after.clock.reserves == state.clock.reserves
    deadlines = Pair(*(after.clock.deadline(side) for side in Side))
    assert commands == (AwaitMoves(state.due, deadlines),)
    same = replace(after, clock=state.clock, now=state.now)
    assert same == state


@pytest.mark.parametrize("phase", PHASES)
def test_dsp_18__a_pause_that_is_none_or_began_before_the_last_event_is_refused(
    phase: Phase,
) -> None:
    state = in_phase(phase)
    for since, at in ((state.now - 1, state.now + 9), (state.now + 9,) * 2, (state.now + 9, 0)):
        with pytest.raises(IllegalMove) as refused:
            step(state, Pause(Millis(since), Millis(at)))
        assert refused.value.rule in ("DSP-3", "DSP-18")


def test_dsp_18__who_was_late_before_the_pause_is_late_after_it() -> None:
    state = in_phase(Phase.AWAIT_DEFENDER)
    since = state.deadline + 1
    after, _ = step(state, Pause(Millis(since), Millis(since + AWAY)))
    with pytest.raises(IllegalMove):
        moved(after, Side.DEFENDER, after.now)
    late, _ = step(after, TimeCalled(after.now))
    assert late.ruling is not None
    assert (late.ruling.verdict, late.ruling.loser) == (Verdicts.LATE, Side.DEFENDER)


def test_dsp_18__a_pause_in_what_is_left_of_a_reserve_costs_nothing() -> None:
    state = in_phase(Phase.AWAIT_DEFENDER)
    since = SETUP.opening.at + MOVE_MS + 3_000
    after, _ = step(state, Pause(Millis(since), Millis(since + AWAY)))
    after = moved(after, Side.DEFENDER, after.now)
    assert after.clock.reserves == Pair(Millis(BUDGET_MS - 3_000), Millis(BUDGET_MS))


def played(delays: list[int], pauses: dict[int, int]) -> tuple[Ruling, int]:
    """Play with these delays before moves, and pauses in them; ruling and time of all pauses."""
    state, _ = open_dispute(SETUP)
    away = 0
    for number in range(10**3):
        if state.ruling is not None:
            break
        wait = delays[number % len(delays)]
        at = int(state.now)
        length = pauses.get(number, 0)
        if length:
            since = at + wait // 2
            state, _ = step(state, Pause(Millis(since), Millis(since + length)))
            away += length
        at += wait + length
        side = state.due[number % len(state.due)]
        if at > state.clock.deadline(side):
            at = max(at, state.deadline + 1)
            state, _ = step(state, TimeCalled(Millis(at)))
        else:
            state = moved(state, side, at)
    assert state.ruling is not None
    return state.ruling, away


@settings(max_examples=examples(80), deadline=None)
@given(
    delays=st.lists(st.sampled_from([0, 700, 5_000, 25_000]), min_size=1, max_size=7),
    pauses=st.dictionaries(st.integers(0, 17), st.integers(1, 10**7), max_size=6),
)
def test_dsp_18__pauses_change_nothing_but_the_time(
    delays: list[int], pauses: dict[int, int]
) -> None:
    plain, _ = played(delays, {})
    with_pauses, away = played(delays, pauses)
    assert replace(with_pauses, at=plain.at) == plain
    assert with_pauses.at == plain.at + away
