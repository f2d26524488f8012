"""Plays disputes between two strategies on a clock made of integers.

A strategy is a function of the public dispute and the side; ``honest`` is the one of
``protocol/dispute/player.py``. After every game ``play`` checks what must hold at any end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from identic.proofs.referee import judge
from identic.proofs.report import Report
from identic.proofs.runlog import run_root
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.levels import StateLevel
from identic.protocol.dispute.machine import (
    Judge,
    Judged,
    MoveMade,
    Outcome,
    TimeCalled,
    open_dispute,
    step,
)
from identic.protocol.dispute.moves import MAX_EVIDENCE_BYTES, WIDTH, Children, Move, Side
from identic.protocol.dispute.player import Execution, next_move
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Dispute, Ruling
from identic.protocol.encoding import encode
from identic.protocol.errors import IllegalMove
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Credits, Digest, Millis, PartyId, Unsigned
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.terms import Clocks, JobTerms, Prices, job_id
from identic.protocol.ops.base import Call
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.program.codec import program_digest
from identic.protocol.program.plan import StepPlan
from tests.helpers.execution import MemoryExecution

DEFENDER = PartyId(sha256(b"defender"))
CHALLENGER = PartyId(sha256(b"challenger"))

MOVE_MS, RERUN_MS, BUDGET_MS = 1_000, 30_000, 20_000

Strategy = Callable[[Dispute, Side], Move | None]


def terms_of(
    plan: StepPlan,
    state: list[bytes],
    data: list[bytes],
    *,
    steps: int = 1,
    cadence: int = 1,
    seed: int = 11,
) -> JobTerms:
    """Terms of a job over these tensors."""
    terms = JobTerms(
        version=Count(1),
        submitter=PartyId(sha256(b"submitter")),
        program=program_digest(plan.program),
        initial_state=Digest(bytes(32)),
        data=tuple(
            tensor_digest(variable.type, tensor)
            for variable, tensor in zip(plan.program.data, data, strict=True)
        ),
        seed=Unsigned(seed),
        steps=Count(steps),
        cadence=Count(cadence),
        checkpoint=Count(1),
        kernel_set=Count(1),
        verifiers=Count(1),
        prices=Prices(Credits(5), Credits(2), Credits(10), Credits(4), Credits(3)),
        clocks=Clocks(Millis(MOVE_MS), Millis(RERUN_MS), Millis(60_000), Millis(BUDGET_MS)),
        nonce=Digest(bytes(32)),
    )
    idle = replace(terms, steps=Count(0))
    start = MemoryExecution(idle, plan, state, data).roots[0]
    return replace(terms, initial_state=start)


def setup_between(
    terms: JobTerms,
    plan: StepPlan,
    defender: list[Digest],
    challenger: list[Digest],
    *,
    width: int = WIDTH,
    step_ms: int = 0,
    load: int = 1,
) -> Setup:
    """A dispute about two lists of state roots at the marks."""
    heads = [
        RunHead(job_id(terms), Count(len(states)), run_root(states, terms.cadence, terms.steps))
        for states in (defender, challenger)
    ]
    opening = Opening(
        sha256(b"dispute"),
        DEFENDER,
        CHALLENGER,
        heads[0],
        heads[1],
        Millis(1_000),
        Millis(step_ms),
        Count(load),
    )
    return Setup(terms, plan, opening, width)


def honest(execution: Execution) -> Strategy:
    """What an honest party with this execution does; also a liar that believes in its lie."""

    def move(dispute: Dispute, side: Side) -> Move | None:
        made = next_move(dispute, side, execution)
        level = dispute.level
        if not isinstance(level, StateLevel) or not isinstance(made, Children):
            return made
        # A liar about the header publishes its own, which next_move would never do.
        if isinstance(execution, MemoryExecution) and (level.first, level.block) == (0, 1):
            return Children((execution.header(level.step + 1), *made.digests[1:]))
        return made

    return move


def silent_from(strategy: Strategy, turn: int) -> Strategy:
    """The same strategy, that says nothing from round ``turn`` on."""
    return lambda dispute, side: None if dispute.turn >= turn else strategy(dispute, side)


def silent(dispute: Dispute, side: Side) -> Move | None:
    """Says nothing."""
    del dispute, side
    return None


@dataclass
class Game:
    """A finished game."""

    dispute: Dispute
    reports: list[Report] = field(default_factory=list)
    refused: list[tuple[Side, IllegalMove]] = field(default_factory=list)
    moves: list[tuple[Side, Move]] = field(default_factory=list)

    @property
    def ruling(self) -> Ruling:
        """How it ended."""
        assert self.dispute.ruling is not None
        return self.dispute.ruling


def play(
    setup: Setup,
    defender: Strategy,
    challenger: Strategy,
    *,
    first: Side = Side.DEFENDER,
    late_call_ms: int = 1,
) -> Game:
    """Play to the end and check what holds at every end.

    A refused move counts as none: a strategy gets one try a round.
    """
    strategies = {Side.DEFENDER: defender, Side.CHALLENGER: challenger}
    state, _ = open_dispute(setup)
    game = Game(state)
    while state.ruling is None:
        turn = state.turn
        for side in (first, first.other):
            if side in state.due and state.turn == turn and state.ruling is None:
                state = _try(game, state, side, strategies[side])
        if state.turn == turn and state.ruling is None:
            state, _ = step(state, TimeCalled(Millis(state.deadline + late_call_ms)))
    game.dispute = state
    check_end(game)
    return game


def _try(game: Game, state: Dispute, side: Side, strategy: Strategy) -> Dispute:
    move = strategy(state, side)
    if move is None:
        return state
    try:
        after = judged(game, step(state, MoveMade(Millis(state.now + 1), side, move)))
    except IllegalMove as error:
        game.refused.append((side, error))
        return state
    game.moves.append((side, move))
    return after


def judged(game: Game, outcome: Outcome) -> Dispute:
    """Let the referee answer when the machine asks for it."""
    state, commands = outcome
    for command in commands:
        if isinstance(command, Judge):
            judgement = judge(state.setup, command.question, command.evidence)
            game.reports.append(judgement.report)
            if judgement.finding is None:
                bad = judgement.report.failed
                assert bad is not None
                raise IllegalMove(bad.rule, got=bad.got, want=bad.want)
            state, _ = step(state, Judged(state.now, judgement.finding))
    return state


def most_rounds(setup: Setup) -> int:
    """A bound on the rounds of any game: the depth of every level it can pass."""

    def depth(leaves: int) -> int:
        rounds, block = 1, 1
        while -(-leaves // block) + 1 > setup.width:
            block *= setup.width
            rounds += 1
        return rounds

    plan = setup.plan
    results = [depth(plan.type(v).chunks) for v in range(plan.values) if plan.call(v)]
    folds = 1 + max(_nesting(planned.call) for planned in plan.calls)
    below = max(depth(1 + len(plan.outputs)), max(results) + 1 + folds)
    return depth(setup.marks) + 1 + depth(plan.values) + below


def _nesting(call: Call) -> int:
    """How deep the folds of a result nest."""

    def depth(fold: Fold) -> int:
        entries = (fold.entry(i) for i in range(fold.length))
        return 1 + max((depth(e.fold) for e in entries if isinstance(e, Nested)), default=0)

    return depth(call.op.fold(call, 0)) if call.output.elements else 0


def check_end(game: Game) -> None:
    """What must hold at the end of every game.

    Rationale: a ruling is explainable (its rounds and rule are there), small (every move
    fits one message), and leaves nothing to do (nobody is due).
    """
    ruling = game.ruling
    assert game.dispute.due == ()
    assert ruling.rounds == game.dispute.rounds
    assert (ruling.loser is None) == (ruling.verdict is Verdicts.CANNOT_TELL)
    assert ruling.rule.startswith(("DSP-", "REF-"))
    for _, move in game.moves:
        assert len(encode(move)) <= max(MAX_EVIDENCE_BYTES, 4 + 32 * WIDTH)
    if ruling.verdict is Verdicts.WRONG:
        claims = {Side.DEFENDER: ruling.defender, Side.CHALLENGER: ruling.challenger}
        assert ruling.loser is not None
        assert ruling.defender != ruling.challenger
        assert claims[ruling.loser] != ruling.computed
        assert claims[ruling.loser.other] == ruling.computed or ruling.both_wrong
