"""The dispute as a pure machine: ``step(state, event) -> (state, commands)``.

Both sides publish the children of the node in dispute; the machine checks each list against
that side's own claim, takes the leftmost difference and goes down. When a question is left,
either side gives the evidence and the referee computes the answer. The time of an event is
its field ``at``; nothing here reads a clock, a file or a device.

* An event that is refused raises ``IllegalMove`` and leaves the state as it was.
* A side that never makes a valid move loses by time.
* Whose signature a move carries is checked before (``proofs/arbiter.py``).

Spec: docs/spec/dispute.md, where the table of transitions is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from identic.protocol.dispute.clocks import Clock, Pause, allowance_ms, first_clock
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.levels import run_level
from identic.protocol.dispute.moves import (
    MAX_EVIDENCE_BYTES,
    NO_EVIDENCE,
    Evidence,
    Move,
    Pair,
    Side,
)
from identic.protocol.dispute.questions import Question, StepQuestion, Where
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Dispute, Finding, Phase, Round, Ruling
from identic.protocol.encoding import encode
from identic.protocol.errors import IllegalMove
from identic.protocol.ids import Count, Millis, StepIndex, TraceIndex, Unsigned
from identic.protocol.job.entries import Verdicts

# ---- events ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoveMade:
    """A move arrived; its signature is already checked."""

    at: Millis
    """Unix time of arrival."""
    side: Side
    move: Move


@dataclass(frozen=True)
class TimeCalled:
    """Somebody, anybody, says that the clock has run down."""

    at: Millis
    """Unix time of the call."""


@dataclass(frozen=True)
class Judged:
    """The referee has answered the question."""

    at: Millis
    """Unix time of the answer."""
    finding: Finding


Event = MoveMade | TimeCalled | Judged | Pause

# ---- commands -------------------------------------------------------------------------------


@dataclass(frozen=True)
class AwaitMoves:
    """Ask these sides to move, and set their clocks."""

    sides: tuple[Side, ...]
    deadlines: Pair[Millis]


@dataclass(frozen=True)
class Judge:
    """Let the referee answer the question from this evidence, or refuse the evidence."""

    question: Question
    evidence: Evidence


@dataclass(frozen=True)
class Announce:
    """The dispute is over."""

    ruling: Ruling


Command = AwaitMoves | Judge | Announce

Outcome = tuple[Dispute, tuple[Command, ...]]


def open_dispute(setup: Setup) -> Outcome:
    """Start a dispute.

    Raises:
        IllegalMove: the claims cannot be disputed (DSP-2).
    """
    setup.check()
    at, clock = setup.opening.at, first_clock(setup)
    blank = Dispute(setup, Phase.AWAIT_BOTH, None, None, None, (), clock, at, None)
    return _go_to(blank, run_level(setup), at)


def step(state: Dispute, event: Event) -> Outcome:
    """Apply one event to a dispute.

    Raises:
        IllegalMove: the event is not allowed now, or the move does not fit; the peer's fault.
    """
    handler = TRANSITIONS.get((state.phase, type(event)))
    # DSP-1: an event has a handler in the present phase.
    if handler is None:
        want = [kind.__name__ for phase, kind in TRANSITIONS if phase is state.phase]
        raise IllegalMove("DSP-1", got=f"{type(event).__name__} while {state.phase}", want=want)
    # DSP-3: events come in the order of their times.
    if event.at < state.now:
        raise IllegalMove("DSP-3", got=f"time {event.at}", want=f"at least {state.now}")
    return handler(state, event)


# ---- moves ----------------------------------------------------------------------------------


def on_first_move(state: Dispute, event: MoveMade) -> Outcome:
    """Keep the first move of a round and wait for the other side."""
    clock = _charged(state, event)
    _check_move(state, event)
    waits = Phase.AWAIT_DEFENDER if event.side is Side.CHALLENGER else Phase.AWAIT_CHALLENGER
    after = replace(state, phase=waits, pending=event.move, clock=clock, now=event.at)
    return after, (_await(after),)


def on_second_move(state: Dispute, event: MoveMade) -> Outcome:
    """Compare the two lists and go down at the leftmost difference."""
    # DSP-4: a side moves once a round.
    if event.side not in state.due:
        raise IllegalMove("DSP-4", got=f"another move by {event.side.name}", want=state.phase)
    clock = _charged(state, event)
    level = _check_move(state, event)
    pending: Any = state.pending
    ours, theirs = (
        event.move if side is event.side else pending for side in (Side.DEFENDER, Side.CHALLENGER)
    )
    moves: Pair[Any] = Pair(ours, theirs)
    # DSP-7: the leftmost difference is in dispute; everything before it is agreed.
    items = zip(level.items(state.setup, ours), level.items(state.setup, theirs), strict=True)
    index = next(i for i, (a, b) in enumerate(items) if a != b)
    line = Round(
        level=level.name,
        subject=Unsigned(level.subject),
        first=Unsigned(level.first),
        block=Count(level.block),
        compared=Count(level.count(state.setup)),
        differ=Unsigned(index),
        defender_bytes=Count(len(encode(ours))),
        challenger_bytes=Count(len(encode(theirs))),
        moved_first=event.side.other,
    )
    below = level.descend(state.setup, moves, index)
    return _go_to(replace(state, rounds=(*state.rounds, line), clock=clock), below, event.at)


def on_evidence(state: Dispute, event: MoveMade) -> Outcome:
    """Hand evidence to the referee."""
    clock = _charged(state, event)
    question = _question(state)
    # DSP-5: a move is of the kind that the level asks for, with as many items.
    if not isinstance(event.move, Evidence):
        raise IllegalMove("DSP-5", got=type(event.move).__name__, want="Evidence")
    size = len(encode(event.move))
    # REF-1: evidence is at most 64 KiB.
    if size > MAX_EVIDENCE_BYTES:
        raise IllegalMove("REF-1", got=f"{size} bytes", want=f"at most {MAX_EVIDENCE_BYTES}")
    after = replace(state, phase=Phase.JUDGING, clock=clock, now=event.at)
    return after, (Judge(question, event.move),)


def _charged(state: Dispute, event: MoveMade) -> Clock:
    """The clock with the mover's time taken from its reserve."""
    deadline = state.clock.deadline(event.side)
    # DSP-9: a move arrives by its side's deadline.
    if event.at > deadline:
        raise IllegalMove("DSP-9", got=f"a move at {event.at}", want=f"by {deadline}")
    return state.clock.charged(event.side, event.at)


def _check_move(state: Dispute, event: MoveMade) -> Level[Any]:
    level, setup, move = _level(state), state.setup, event.move
    # DSP-5: a move is of the kind that the level asks for, with as many items.
    if type(move) is not level.kind:
        raise IllegalMove("DSP-5", got=type(move).__name__, want=level.kind.__name__)
    got, want = len(level.items(setup, move)), level.count(setup)
    if got != want:
        raise IllegalMove("DSP-5", got=f"{got} items", want=want)
    # DSP-6: the children fit the side's own claim about their parent.
    if not level.bound(setup, event.side, move):
        raise IllegalMove(
            "DSP-6", got=f"other children of {level.name} {level.subject}", want="its claim"
        )
    return level


def _level(state: Dispute) -> Level[Any]:
    if state.level is None:
        raise RuntimeError(f"no level while {state.phase}")
    return state.level


def _question(state: Dispute) -> Question:
    if state.question is None:
        raise RuntimeError(f"no question while {state.phase}")
    return state.question


def _go_to(state: Dispute, below: Level[Any] | Question, at: Millis) -> Outcome:
    """Put the dispute on a level or before a question."""
    setup = state.setup
    # DSP-10: what a round allows follows from what its level asks for.
    again = below.again(setup) if isinstance(below, Level) else None
    clock = state.clock.round(at, allowance_ms(setup, again))
    after = replace(state, pending=None, now=at, clock=clock)
    if isinstance(below, Level):
        after = replace(after, phase=Phase.AWAIT_BOTH, level=below)
        return after, (_await(after),)
    after = replace(after, level=None, question=below)
    if below.immediate:
        return replace(after, phase=Phase.JUDGING), (Judge(below, NO_EVIDENCE),)
    after = replace(after, phase=Phase.AWAIT_EVIDENCE)
    return after, (_await(after),)


def _await(state: Dispute) -> AwaitMoves:
    ours, theirs = (state.clock.deadline(side) for side in (Side.DEFENDER, Side.CHALLENGER))
    return AwaitMoves(state.due, Pair(ours, theirs))


# ---- endings --------------------------------------------------------------------------------


def on_judged(state: Dispute, event: Judged) -> Outcome:
    """Rule against the side whose claim is not the computed answer."""
    question, found = _question(state), event.finding
    claims = Pair(_shown(question.claims.defender), _shown(question.claims.challenger))
    # REF-2: a side whose claim is not the computed answer is wrong; the defender, if both are.
    loser = Side.DEFENDER if claims.defender != found.computed else Side.CHALLENGER
    path = question.path if isinstance(question, StepQuestion) else ()
    return _rule(
        state,
        Ruling(
            dispute=state.setup.opening.dispute,
            verdict=Verdicts.WRONG,
            loser=loser,
            rule=found.rule,
            level=question.name,
            path=tuple(Unsigned(i) for i in path),
            primitive=found.primitive,
            operands=found.operands,
            defender=claims.defender,
            challenger=claims.challenger,
            computed=found.computed,
            read_bytes=found.read_bytes,
            rounds=state.rounds,
            at=event.at,
            **_place(question.where),
        ),
    )


def on_time(state: Dispute, event: TimeCalled) -> Outcome:
    """Rule against the side that is late; if both are, nobody can tell."""
    # DSP-12: time is called after the deadlines of all that have not moved, however late.
    if event.at <= state.deadline:
        raise IllegalMove("DSP-12", got=f"time called at {event.at}", want=f"> {state.deadline}")
    node = state.level or _question(state)
    silent = state.due
    loser = silent[0] if len(silent) == 1 else None
    return _rule(
        state,
        Ruling(
            dispute=state.setup.opening.dispute,
            verdict=Verdicts.LATE if loser else Verdicts.CANNOT_TELL,
            loser=loser,
            rule="DSP-12" if loser else "DSP-13",
            level=node.name if state.level else "evidence",
            path=(),
            primitive="",
            operands=(),
            defender=b"",
            challenger=b"",
            computed=b"",
            read_bytes=Count(0),
            rounds=state.rounds,
            at=event.at,
            **_place(node.where),
        ),
    )


def on_pause(state: Dispute, event: Pause) -> Outcome:
    """Move the clocks on by a time in which nobody could move."""
    # DSP-18: a pause begins after the last event, and lasts.
    if not state.now <= event.since < event.at:
        raise IllegalMove(
            "DSP-18", got=f"a pause from {event.since} to {event.at}", want=f"from {state.now} on"
        )
    after = replace(state, clock=state.clock.after(event), now=event.at)
    return after, (_await(after),)


def _place(where: Where) -> dict[str, Any]:
    return {
        "step": None if where.step is None else StepIndex(where.step),
        "value": None if where.value is None else TraceIndex(where.value),
        "element": None if where.element is None else Unsigned(where.element),
    }


def _shown(claim: bytes | int) -> bytes:
    return claim.to_bytes(8, "big") if isinstance(claim, int) else bytes(claim)


def _rule(state: Dispute, ruling: Ruling) -> Outcome:
    after = replace(state, phase=Phase.RULED, ruling=ruling, now=ruling.at, pending=None)
    return after, (Announce(ruling),)


# ---- the table ------------------------------------------------------------------------------

Handler = Callable[[Dispute, Any], Outcome]

TRANSITIONS: dict[tuple[Phase, type[Event]], Handler] = {
    (Phase.AWAIT_BOTH, MoveMade): on_first_move,
    (Phase.AWAIT_BOTH, TimeCalled): on_time,
    (Phase.AWAIT_BOTH, Pause): on_pause,
    (Phase.AWAIT_DEFENDER, MoveMade): on_second_move,
    (Phase.AWAIT_DEFENDER, TimeCalled): on_time,
    (Phase.AWAIT_DEFENDER, Pause): on_pause,
    (Phase.AWAIT_CHALLENGER, MoveMade): on_second_move,
    (Phase.AWAIT_CHALLENGER, TimeCalled): on_time,
    (Phase.AWAIT_CHALLENGER, Pause): on_pause,
    (Phase.AWAIT_EVIDENCE, MoveMade): on_evidence,
    (Phase.AWAIT_EVIDENCE, TimeCalled): on_time,
    (Phase.AWAIT_EVIDENCE, Pause): on_pause,
    (Phase.JUDGING, Judged): on_judged,
}
"""What may happen when; an absent pair is an illegal move (DSP-1)."""


def table() -> str:
    """The transitions as a table, as docs/spec/dispute.md prints it."""
    lines = ["| phase | event | handler | what it does |", "|---|---|---|---|"]
    for (phase, kind), handler in TRANSITIONS.items():
        does = (handler.__doc__ or "").splitlines()[0]
        lines.append(f"| {phase} | {kind.__name__} | `{handler.__name__}` | {does} |")
    return "\n".join(lines) + "\n"
