"""What the machine refuses, and that a refusal changes nothing."""

from dataclasses import replace

import pytest

from identic.protocol.commitments import RunHead
from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.machine import (
    TRANSITIONS,
    Event,
    Judged,
    MoveMade,
    TimeCalled,
    open_dispute,
    step,
)
from identic.protocol.dispute.moves import (
    NO_EVIDENCE,
    Children,
    Chunk,
    Entries,
    Move,
    Side,
)
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Dispute, Finding, Phase
from identic.protocol.errors import Code, IllegalMove
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, JobId, Millis, Unsigned
from identic.protocol.job.entries import Verdicts
from tests.helpers.counter_trace import counter_data, counter_plan, counter_state
from tests.helpers.execution import Lie, MemoryExecution
from tests.helpers.game import (
    Game,
    Strategy,
    honest,
    judged,
    play,
    setup_between,
    silent,
    terms_of,
)

PLAN = counter_plan()
TERMS = terms_of(PLAN, counter_state(), counter_data(), steps=5, cadence=2)
GOOD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data())
BAD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data(), Lie(2, 3, 1, (1, 1), 77))
SETUP = setup_between(TERMS, PLAN, BAD.run_leaves(), GOOD.run_leaves(), width=4)
PLAYERS: dict[Side, Strategy] = {Side.DEFENDER: honest(BAD), Side.CHALLENGER: honest(GOOD)}
LEVELS = ("run", "interval", "step", "step", "output", "chunk", "fold", "fold")


def at_round(turn: int, setup: Setup = SETUP) -> Dispute:
    """The dispute when round ``turn`` begins."""
    state, _ = open_dispute(setup)
    while state.turn < turn:
        state = both(state)
    return state


def both(state: Dispute) -> Dispute:
    """Let both sides make their moves."""
    for side in Side:
        move = PLAYERS[side](state, side)
        assert move is not None
        state = judged(Game(state), step(state, MoveMade(state.now, side, move)))
    return state


def refuses(state: Dispute, event: Event, rule: str) -> None:
    """Check that an event is refused under a rule and leaves the state as it was."""
    before = repr(state)
    with pytest.raises(IllegalMove) as refused:
        judged(Game(state), step(state, event))
    assert (refused.value.rule, refused.value.code) == (rule, Code.ILLEGAL_MOVE)
    assert repr(state) == before


def of(state: Dispute, side: Side) -> Move:
    """The side's own move now."""
    move = PLAYERS[side](state, side)
    assert move is not None
    return move


def test_the_game_passes_all_these_levels() -> None:
    names = [at_round(turn).level for turn in range(len(LEVELS))]
    assert tuple(level.name for level in names if level) == LEVELS
    assert at_round(len(LEVELS)).phase is Phase.AWAIT_EVIDENCE


def phases() -> dict[Phase, Dispute]:
    """A dispute in every phase."""
    start, _ = open_dispute(SETUP)
    first = {side: step(start, MoveMade(start.now, side, of(start, side)))[0] for side in Side}
    evidence = at_round(len(LEVELS))
    move = of(evidence, Side.CHALLENGER)
    judging, _ = step(evidence, MoveMade(evidence.now, Side.CHALLENGER, move))
    return {
        Phase.AWAIT_BOTH: start,
        Phase.AWAIT_CHALLENGER: first[Side.DEFENDER],
        Phase.AWAIT_DEFENDER: first[Side.CHALLENGER],
        Phase.AWAIT_EVIDENCE: evidence,
        Phase.JUDGING: judging,
        Phase.RULED: play(SETUP, honest(BAD), honest(GOOD)).dispute,
    }


def test_dsp_1__an_event_without_a_handler_is_refused_in_every_phase() -> None:
    finding = Finding("REF-12", bytes(8), "", (), Count(0))
    states = phases()
    assert set(states) == set(Phase)
    for phase, state in states.items():
        assert state.phase is phase
        late = Millis(state.now + 10**9)
        events = (
            MoveMade(late, Side.DEFENDER, Children(())),
            TimeCalled(late),
            Judged(late, finding),
            Pause(state.now, late),
        )
        for event in events:
            if (phase, type(event)) not in TRANSITIONS:
                refuses(state, event, "DSP-1")


def test_dsp_2__claims_that_cannot_be_disputed_are_refused() -> None:
    opening = SETUP.opening
    head = opening.defender_head
    other_job = replace(head, job=JobId(sha256(b"another job")))
    none, many = replace(head, marks=Count(0)), replace(head, marks=Count(9))
    for defender, challenger in (
        (other_job, opening.challenger_head),
        (opening.defender_head, replace(opening.challenger_head, job=other_job.job)),
        (replace(head, marks=Count(3)), opening.challenger_head),
        (none, replace(none, root=sha256(b"x"))),
        (many, replace(many, root=sha256(b"x"))),
        (head, head),
    ):
        changed = replace(opening, defender_head=defender, challenger_head=challenger)
        with pytest.raises(IllegalMove) as refused:
            open_dispute(replace(SETUP, opening=changed))
        assert refused.value.rule == "DSP-2"
    alone = replace(opening, challenger=opening.defender)
    with pytest.raises(IllegalMove) as refused:
        open_dispute(replace(SETUP, opening=alone))
    assert refused.value.rule == "DSP-2"


def test_dsp_2__claims_up_to_some_mark_are_disputed() -> None:
    # The lie is in step 2, so mark 2 is the first that differs: three marks are enough.
    cut = setup_between(TERMS, PLAN, BAD.run_leaves()[:3], GOOD.run_leaves()[:3])
    assert cut.opening.defender_head == RunHead(
        SETUP.opening.defender_head.job, Count(3), cut.roots.defender
    )
    assert play(cut, honest(BAD), honest(GOOD)).ruling.loser is Side.DEFENDER


def test_dsp_3__time_does_not_go_back() -> None:
    state = at_round(1)
    refuses(state, TimeCalled(Millis(state.now - 1)), "DSP-3")
    early = MoveMade(Millis(state.now - 1), Side.DEFENDER, of(state, Side.DEFENDER))
    refuses(state, early, "DSP-3")


@pytest.mark.parametrize("turn", range(len(LEVELS)))
def test_dsp_4__a_side_moves_once_a_round(turn: int) -> None:
    for side in Side:
        state = at_round(turn)
        state, _ = step(state, MoveMade(state.now, side, of(state, side)))
        assert state.due == (side.other,)
        again = MoveMade(state.now, side, PLAYERS[side](at_round(turn), side) or NO_EVIDENCE)
        refuses(state, again, "DSP-4")


@pytest.mark.parametrize("turn", range(len(LEVELS) + 1))
def test_dsp_5__a_move_of_another_kind_or_size_is_refused(turn: int) -> None:
    state = at_round(turn)
    moves: list[Move] = [
        Children((sha256(b"x"),) * 3000),
        Children(()),
        Chunk(b"abc"),
        Chunk(bytes(5000)),
        Entries(()),
        Entries((Unsigned(1),) * 3000),
    ]
    if state.phase is not Phase.AWAIT_EVIDENCE:
        moves.append(NO_EVIDENCE)
    own = of(state, Side.DEFENDER)
    if isinstance(own, Children):
        moves += [Children(own.digests[:-1]), Children((*own.digests, own.digests[0]))]
    if isinstance(own, Entries):
        moves += [Entries(own.words[:-1]), Entries((*own.words, own.words[0]))]
    for side in Side:
        for move in moves:
            refuses(state, MoveMade(state.now, side, move), "DSP-5")


@pytest.mark.parametrize("turn", range(len(LEVELS)))
def test_dsp_6__children_of_another_claim_are_refused(turn: int) -> None:
    state = at_round(turn)
    for side in Side:
        others = of(state, side.other)
        refuses(state, MoveMade(state.now, side, others), "DSP-6")
        own = of(state, side)
        if isinstance(own, Children) and (state.level is None or state.level.name != "interval"):
            last = Children((*own.digests[:-1], sha256(b"other")))
            refuses(state, MoveMade(state.now, side, last), "DSP-6")
        if isinstance(own, Chunk):
            data = bytes([own.data[0] ^ 1]) + own.data[1:]
            refuses(state, MoveMade(state.now, side, Chunk(data)), "DSP-6")


def test_dsp_7__rounds_record_the_leftmost_difference() -> None:
    game = play(SETUP, honest(BAD), honest(GOOD), first=Side.CHALLENGER)
    assert [
        (line.level, int(line.first + line.block * line.differ)) for line in game.ruling.rounds
    ] == [
        ("run", 2),
        ("interval", 0),
        ("step", 0),
        ("step", 3),
        ("output", 0),
        ("chunk", 1),
        ("fold", 1),
        ("fold", 1),
    ]
    assert {line.moved_first for line in game.ruling.rounds} == {Side.CHALLENGER}
    assert all(line.defender_bytes == line.challenger_bytes > 0 for line in game.ruling.rounds)


@pytest.mark.parametrize("turn", range(len(LEVELS) + 1))
def test_dsp_9__a_move_after_the_deadline_is_refused(turn: int) -> None:
    state = at_round(turn)
    for side in Side:
        move = of(state, side)
        refuses(state, MoveMade(Millis(state.deadline + 1), side, move), "DSP-9")
        step(state, MoveMade(state.deadline, side, move))


def test_dsp_11__folds_of_one_entry_are_entered_without_a_move() -> None:
    lie = Lie(2, 4, 0, (), 9)
    bad = MemoryExecution(TERMS, PLAN, counter_state(), counter_data(), lie)
    setup = setup_between(TERMS, PLAN, bad.run_leaves(), GOOD.run_leaves())
    game = play(setup, honest(bad), honest(GOOD))
    assert [line.level for line in game.ruling.rounds][-1] == "chunk"
    assert game.ruling.path == (0,)


@pytest.mark.parametrize("turn", range(len(LEVELS) + 1))
def test_dsp_12__time_is_called_after_the_deadline_only(turn: int) -> None:
    state = at_round(turn)
    for at in (state.now, state.deadline):
        refuses(state, TimeCalled(at), "DSP-12")


@pytest.mark.parametrize("late_ms", [1, 10**12])
def test_dsp_12__a_late_call_does_not_harm_the_winner(late_ms: int) -> None:
    for side in Side:
        players: dict[Side, Strategy] = {**PLAYERS, side: silent}
        game = play(SETUP, players[Side.DEFENDER], players[Side.CHALLENGER], late_call_ms=late_ms)
        assert (game.ruling.verdict, game.ruling.loser) == (Verdicts.LATE, side)


@pytest.mark.parametrize("turn", range(len(LEVELS) + 1))
def test_dsp_13__nobody_loses_when_nobody_speaks(turn: int) -> None:
    state = at_round(turn)
    after, _ = step(state, TimeCalled(Millis(state.deadline + 1)))
    assert after.ruling is not None
    assert (after.ruling.verdict, after.ruling.loser) == (Verdicts.CANNOT_TELL, None)
    assert after.ruling.rule == "DSP-13"
    assert after.ruling.level == (*LEVELS, "evidence")[turn]


def test_ref_2__the_defender_loses_if_both_are_wrong() -> None:
    other = MemoryExecution(TERMS, PLAN, counter_state(), counter_data(), Lie(2, 3, 1, (1, 1), 78))
    setup = setup_between(TERMS, PLAN, BAD.run_leaves(), other.run_leaves())
    game = play(setup, honest(BAD), honest(other))
    assert game.ruling.loser is Side.DEFENDER
    assert game.ruling.both_wrong
