"""A dispute as a value: what was agreed, who is due, and how it ended.

Spec: docs/spec/dispute.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from identic.protocol.dispute.clocks import Clock
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.moves import Move, Side
from identic.protocol.dispute.questions import Question
from identic.protocol.dispute.setup import Setup
from identic.protocol.ids import Count, Digest, Millis, StepIndex, TraceIndex, Unsigned
from identic.protocol.job.entries import Verdicts


class Phase(StrEnum):
    """Who is due."""

    AWAIT_BOTH = "await both"
    AWAIT_DEFENDER = "await defender"
    AWAIT_CHALLENGER = "await challenger"
    AWAIT_EVIDENCE = "await evidence"
    JUDGING = "judging"
    RULED = "ruled"


@dataclass(frozen=True)
class Round:
    """One completed round, for screens: a line of the descent."""

    level: str
    """Name of the level."""
    subject: Unsigned
    """Number of the node: mark, step, value, chunk, element or entry."""
    first: Unsigned
    """Number of the first child compared."""
    block: Count
    """Children that an item stands for; 1 for children themselves."""
    compared: Count
    """Items of each side."""
    differ: Unsigned
    """First item that differs; all before it are agreed."""
    defender_bytes: Count
    """Encoded length of the defender's move."""
    challenger_bytes: Count
    """Encoded length of the challenger's move."""
    moved_first: Side
    """Whose move arrived first."""


@dataclass(frozen=True)
class Operand:
    """An operand of the primitive step, as the referee read it."""

    source: str
    """``constant``, ``element`` (opened from a tensor), ``agreed`` (an earlier entry), or
    ``outside`` (an index outside its table reads 0)."""
    word: Unsigned
    """Bit pattern."""
    value: TraceIndex | None
    """Plan value of an element."""
    element: Unsigned | None
    """Flat position of an element."""


@dataclass(frozen=True)
class Finding:
    """The referee's answer to the last question."""

    rule: str
    """Rule by which the answer follows (REF)."""
    computed: bytes
    """The answer: a digest, or a word in eight bytes, big end first."""
    primitive: str
    """Name of the primitive step, or empty."""
    operands: tuple[Operand, ...]
    """Operands of the primitive step, in order."""
    read_bytes: Count
    """Encoded length of the evidence that was read."""


@dataclass(frozen=True)
class Ruling:
    """How a dispute ended, and everything a reader needs to see why."""

    dispute: Digest
    verdict: Verdicts
    loser: Side | None
    """Nobody exactly when the verdict is *cannot tell*."""
    rule: str
    """Rule that decided: DSP for time, REF for a computed answer."""
    level: str
    """Where the game stood: a level's name, ``evidence`` for a question nobody answered, or
    the kind of question that was answered."""
    step: StepIndex | None
    value: TraceIndex | None
    """Plan value."""
    element: Unsigned | None
    """Flat position in the value."""
    path: tuple[Unsigned, ...]
    """Entries of the nested folds, outermost first."""
    primitive: str
    operands: tuple[Operand, ...]
    defender: bytes
    """What the defender claimed: a digest, a word in eight bytes, or nothing when late."""
    challenger: bytes
    """What the challenger claimed, likewise."""
    computed: bytes
    """What the referee computed, or nothing."""
    read_bytes: Count
    """Bytes of evidence that the referee read."""
    rounds: tuple[Round, ...]
    at: Millis
    """Unix time of the ruling's event."""

    @property
    def both_wrong(self) -> bool:
        """Whether neither side claimed what was computed; the defender then loses."""
        return bool(self.computed) and self.computed not in (self.defender, self.challenger)


@dataclass(frozen=True)
class Dispute:
    """A dispute between two events."""

    setup: Setup
    phase: Phase
    level: Level[Any] | None
    """Node in dispute, until the descent ends."""
    question: Question | None
    """What is left when it has ended."""
    pending: Move | None
    """The move of the side that has moved in this round."""
    rounds: tuple[Round, ...]
    clock: Clock
    """Of the round; each side has its own deadline."""
    now: Millis
    """Unix time of the last event."""
    ruling: Ruling | None

    @property
    def turn(self) -> Count:
        """Number of rounds completed; every move names it."""
        return Count(len(self.rounds))

    @property
    def deadline(self) -> Millis:
        """Unix time after which every side that is due is late, and time can be called."""
        return Millis(max(self.clock.deadline(side) for side in self.due or Side))

    @property
    def due(self) -> tuple[Side, ...]:
        """Sides that are expected to move; at the evidence either will do."""
        return {
            Phase.AWAIT_BOTH: (Side.DEFENDER, Side.CHALLENGER),
            Phase.AWAIT_EVIDENCE: (Side.DEFENDER, Side.CHALLENGER),
            Phase.AWAIT_DEFENDER: (Side.DEFENDER,),
            Phase.AWAIT_CHALLENGER: (Side.CHALLENGER,),
        }.get(self.phase, ())
