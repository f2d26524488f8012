"""Allowances, reserves and deadlines, and how long the slowest disputes last."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.dispute.clocks import (
    LONG,
    LOOKED,
    MOST,
    SLOWER,
    Clock,
    allowance_ms,
    longest_ms,
    reserve_ms,
    weight,
)
from identic.protocol.dispute.machine import AwaitMoves, MoveMade, TimeCalled, open_dispute, step
from identic.protocol.dispute.moves import Pair, Side
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Dispute, Phase
from identic.protocol.errors import IllegalMove
from identic.protocol.ids import Count, Millis
from identic.protocol.job.entries import Verdicts
from identic.protocol.ops.folds import Element, Fold, Nested, Step, chain
from tests.helpers.calls import BUILDERS, Maker
from tests.helpers.counter_trace import counter_data, counter_plan, counter_state
from tests.helpers.effort import examples
from tests.helpers.execution import Lie, MemoryExecution
from tests.helpers.game import (
    BUDGET_MS,
    MOVE_MS,
    RERUN_MS,
    Game,
    Strategy,
    honest,
    judged,
    most_rounds,
    setup_between,
    terms_of,
)

PLAN = counter_plan()
TERMS = terms_of(PLAN, counter_state(), counter_data(), steps=5, cadence=2)
GOOD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data())
BAD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data(), Lie(3, 3, 1, (1, 1), 99))
PLAYERS: dict[Side, Strategy] = {Side.DEFENDER: honest(BAD), Side.CHALLENGER: honest(GOOD)}
ROUNDS = {
    "run": None,
    "interval": 2,
    "step": 2,
    "step inside": None,
    "output": 1,
    "chunk": None,
    "fold": None,
    "fold inside": None,
    "evidence": None,
}
"""The rounds of the game at width 4, and how many steps are executed again for each."""


@cache
def setup(step_ms: int = 0, load: int = 1) -> Setup:
    """The dispute of these tests."""
    roots = (BAD.run_leaves(), GOOD.run_leaves())
    return setup_between(TERMS, PLAN, *roots, width=4, step_ms=step_ms, load=load)


def moved(state: Dispute, side: Side, at: int) -> Dispute:
    """The dispute after the side's own move."""
    move = PLAYERS[side](state, side)
    assert move is not None
    return judged(Game(state), step(state, MoveMade(Millis(at), side, move)))


def at_round(turn: int, of: Setup | None = None) -> Dispute:
    """The dispute when round ``turn`` begins; nobody has used any time."""
    state, _ = open_dispute(of or setup())
    while state.turn < turn:
        for side in Side:
            state = moved(state, side, state.now)
    return state


def late(state: Dispute, at: int) -> tuple[Verdicts, Side | None]:
    """Who loses when time is called."""
    after, _ = step(state, TimeCalled(Millis(at)))
    assert after.ruling is not None
    return after.ruling.verdict, after.ruling.loser


# ---- allowances -----------------------------------------------------------------------------


@pytest.mark.parametrize(("step_ms", "load"), [(0, 1), (1_000, 1), (10**9, 1), (700, 3)])
def test_dsp_10__a_round_allows_what_its_level_needs(step_ms: int, load: int) -> None:
    for turn, again in enumerate(ROUNDS.values()):
        allowed = at_round(turn, setup(step_ms, load)).clock.allowance
        if again is None:
            assert allowed == MOVE_MS
        else:
            priced = max(RERUN_MS, SLOWER * step_ms * (again + LOOKED))
            assert allowed == load * min(priced, MOST * RERUN_MS)


def test_dsp_10__a_liar_in_a_hurry_shortens_nothing_and_a_slow_one_at_most_quadruples() -> None:
    allowed = [allowance_ms(setup(speed), 2) for speed in (0, 1, 450, 1_000, 10**12)]
    assert allowed == [RERUN_MS, RERUN_MS, RERUN_MS, 64_000, MOST * RERUN_MS]


def test_dsp_10__steps_are_counted_from_the_last_state_that_the_terms_have_stored() -> None:
    terms = replace(TERMS, checkpoint=Count(2))
    good, bad = (replace_terms(run) for run in (GOOD, BAD))
    roots = (bad.run_leaves(), good.run_leaves())
    state, _ = open_dispute(setup_between(terms, PLAN, *roots, width=4, step_ms=5_000))
    for side in Side:
        state = moved(state, side, state.now)
    # The stored states are those of steps 0 and 4; the interval ends after step 4.
    assert state.level is not None
    assert (state.level.name, state.level.again(state.setup)) == ("interval", 4)
    for side in Side:
        state = moved(state, side, state.now)
    assert state.level is not None
    assert (state.level.name, state.level.again(state.setup)) == ("step", 4)


def replace_terms(run: MemoryExecution) -> MemoryExecution:
    """The same run of a job that stores every second mark."""
    terms = replace(run.terms, checkpoint=Count(2))
    return MemoryExecution(terms, PLAN, counter_state(), counter_data(), *run.lies)


@pytest.mark.parametrize("load", [0, (1 << 16) + 1])
def test_dsp_10__an_impossible_number_of_games_is_refused(load: int) -> None:
    with pytest.raises(IllegalMove) as refused:
        open_dispute(setup(load=load))
    assert refused.value.rule == "DSP-10"


def primitives(fold: Fold) -> int:
    """Primitive steps of a fold, counted one by one."""
    entries = (fold.entry(index) for index in range(fold.length))
    return sum(primitives(e.fold) if isinstance(e, Nested) else 1 for e in entries)


@pytest.mark.parametrize("name", BUILDERS)
def test_dsp_10__no_fold_of_any_operator_has_more_steps_than_its_weight(name: str) -> None:
    for seed in range(6):
        call = BUILDERS[name](Maker(seed)).call
        for element in {0, call.output.elements // 2, call.output.elements - 1}:
            if 0 <= element < call.output.elements:
                fold = call.op.fold(call, element)
                assert primitives(fold) <= weight(fold) <= 4 * primitives(fold) + 4_096


def test_dsp_10__long_folds_have_the_longer_allowance() -> None:
    short, long = (
        chain(length, lambda i, acc: Step("add.int32", (acc, Element(0, i))), Element(1, 0))
        for length in (LONG - 1024, LONG + 1)
    )
    assert weight(short) <= LONG < weight(long)
    nested = long.entry(0)
    assert isinstance(nested, Nested)
    assert weight(nested.fold) <= LONG


# ---- reserves -------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [1, 3])
def test_dsp_17__both_sides_begin_with_the_same_reserve(load: int) -> None:
    state, commands = open_dispute(setup(load=load))
    deadline = state.now + MOVE_MS + load * BUDGET_MS
    assert commands == (AwaitMoves(tuple(Side), Pair(Millis(deadline), Millis(deadline))),)
    assert reserve_ms(setup(load=load)) == load * BUDGET_MS


def test_dsp_17__what_a_side_takes_beyond_the_allowance_is_gone() -> None:
    state = at_round(0)
    slow, quick = Side.DEFENDER, Side.CHALLENGER
    state = moved(state, quick, state.now + MOVE_MS)
    state = moved(state, slow, state.now + 7_000)
    assert state.clock.reserves == Pair(Millis(BUDGET_MS - 7_000), Millis(BUDGET_MS))
    assert state.clock.deadline(quick) - state.clock.deadline(slow) == 7_000
    assert state.clock.deadline(slow) == state.now + RERUN_MS + BUDGET_MS - 7_000
    # Exactly at its deadline a side is in time, and has nothing left.
    state = moved(state, slow, state.clock.deadline(slow))
    state = moved(state, quick, state.now)
    assert state.clock.reserves.of(slow) == 0


def test_dsp_17__sides_of_one_round_have_deadlines_of_their_own() -> None:
    state = at_round(0)
    state = moved(state, Side.CHALLENGER, state.now)
    state = moved(state, Side.DEFENDER, state.now + MOVE_MS + 5_000)
    early, last = (state.clock.deadline(side) for side in Side)
    assert last - early == 5_000
    with pytest.raises(IllegalMove) as refused:
        moved(state, Side.DEFENDER, early + 1)
    assert refused.value.rule == "DSP-9"
    state = moved(state, Side.CHALLENGER, last)
    assert state.phase is Phase.AWAIT_DEFENDER
    assert late(state, last + 1) == (Verdicts.LATE, Side.DEFENDER)


def test_dsp_12__a_side_that_has_moved_is_not_harmed_by_the_time_it_has_left() -> None:
    state = at_round(1)
    before = state.clock
    state = moved(state, Side.CHALLENGER, before.deadline(Side.CHALLENGER))
    for at in (state.deadline + 1, state.deadline + 10**9):
        assert late(state, at) == (Verdicts.LATE, Side.DEFENDER)


def test_dsp_13__silence_with_more_in_reserve_wins_nothing() -> None:
    state = at_round(0)
    state = moved(state, Side.CHALLENGER, state.now)
    state = moved(state, Side.DEFENDER, state.now + MOVE_MS + 5_000)
    early, last = (state.clock.deadline(side) for side in Side)
    for at in (early + 1, last):
        with pytest.raises(IllegalMove) as refused:
            late(state, at)
        assert refused.value.rule == "DSP-12"
    assert late(state, last + 1) == (Verdicts.CANNOT_TELL, None)


@given(times=st.lists(st.integers(0, 60_000), max_size=20), allowance=st.integers(0, 50_000))
def test_dsp_17__a_reserve_only_shrinks_and_by_what_was_taken(
    times: list[int], allowance: int
) -> None:
    clock = Clock(Millis(0), Millis(0), Pair(Millis(100_000), Millis(100_000)))
    for taken in times:
        clock = clock.round(clock.began, allowance)
        at = min(clock.began + taken, clock.deadline(Side.DEFENDER))
        after = clock.charged(Side.DEFENDER, Millis(at))
        spent = clock.reserves.defender - after.reserves.defender
        assert spent == max(0, at - clock.began - allowance)
        assert after.reserves.challenger == clock.reserves.challenger
        clock = after.round(Millis(at), allowance)


# ---- how long it takes ----------------------------------------------------------------------

Delay = Callable[[Dispute, Side], int]
"""When a side moves, in milliseconds before its deadline; beyond the round's beginning at once."""


def dripped(of: Setup, delay: Delay) -> Dispute:
    """Play to the end with both sides as slow as ``delay`` says; time is called at once."""
    state, _ = open_dispute(of)
    while state.ruling is None:
        side = min(state.due, key=lambda s: state.clock.deadline(s) - delay(state, s))
        at = max(state.now, state.clock.deadline(side) - delay(state, side))
        if at > state.clock.deadline(side):
            state, _ = step(state, TimeCalled(Millis(state.deadline + 1)))
        else:
            state = moved(state, side, at)
    return state


def slow_side(side: Side, least: int = 0) -> Delay:
    """One side always moves in the last moment, the other at once."""
    return lambda _, who: least if who is side else 10**9


@pytest.mark.parametrize("step_ms", [0, 4_000, 10**9])
@pytest.mark.parametrize("load", [1, 3])
def test_dsp_17__slow_drip_ends_within_the_bound(step_ms: int, load: int) -> None:
    of = setup(step_ms, load)
    bound = longest_ms(of, most_rounds(of))
    slowest = 0
    for delay in (slow_side(Side.DEFENDER), slow_side(Side.CHALLENGER), lambda _, __: 0):
        state = dripped(of, delay)
        assert state.ruling is not None
        assert (state.ruling.verdict, state.ruling.loser) == (Verdicts.WRONG, Side.DEFENDER)
        slowest = max(slowest, state.ruling.at - of.opening.at)
        assert slowest <= bound
    # The bound is not far from what the slowest game takes, when runs were slow.
    assert step_ms < 10**9 or bound <= 3 * slowest


def test_dsp_17__a_side_that_is_silent_after_slow_drip_is_late_within_the_bound() -> None:
    of = setup(10**9)
    for turn in range(len(ROUNDS)):

        def delay(state: Dispute, side: Side, turn: int = turn) -> int:
            if side is Side.CHALLENGER:
                return 10**9
            return -1 if state.turn == turn else 0

        state = dripped(of, delay)
        assert state.ruling is not None
        assert state.ruling.at - of.opening.at <= longest_ms(of, most_rounds(of))
        if turn < len(ROUNDS) - 1:
            assert (state.ruling.verdict, state.ruling.loser) == (Verdicts.LATE, Side.DEFENDER)


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), load=st.integers(1, 3), step_ms=st.integers(0, 20_000))
def test_dsp_17__random_delays_never_harm_who_keeps_its_clock(
    seed: int, load: int, step_ms: int
) -> None:
    of, chance = setup(step_ms, load), random.Random(seed)
    delays: dict[tuple[int, Side], int] = {}

    def delay(state: Dispute, side: Side) -> int:
        key = (int(state.turn), side)
        return delays.setdefault(key, chance.choice((0, 1, 500, 20_000, 10**6)))

    state = dripped(of, delay)
    assert state.ruling is not None
    assert state.ruling.loser is Side.DEFENDER
    assert state.ruling.at - of.opening.at <= longest_ms(of, most_rounds(of))
