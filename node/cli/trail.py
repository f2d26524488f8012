"""The course of a dispute: every round with both moves, from the record alone.

Spec: docs/spec/dispute.md (DSP-4, DSP-7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from identic.proofs.arbiter import party_of
from identic.proofs.transcript import TimedMove
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.levels import run_level
from identic.protocol.dispute.moves import Move, Pair, Side
from identic.protocol.dispute.questions import Question
from identic.protocol.dispute.state import Dispute, Round
from identic.protocol.encoding import encode
from identic.protocol.ids import Millis


@dataclass(frozen=True)
class Said:
    """A move that counted.

    Attributes:
        side: who moved.
        at: Unix time of its arrival.
        move: what was published.
        nbytes: encoded length of the move, as rounds count it.
    """

    side: Side
    at: Millis
    move: Move
    nbytes: int


@dataclass(frozen=True)
class Stage:
    """A round, or the question at the end.

    Attributes:
        node: level, or question, in dispute.
        began: Unix time at which it began.
        said: moves in the order of their arrival.
        line: the round once both have moved; None before, and for a question.
    """

    node: Level[Any] | Question
    began: Millis
    said: tuple[Said, ...]
    line: Round | None

    def of(self, side: Side) -> Any:
        """The move of a side; None where it has not moved."""
        return next((s.move for s in self.said if s.side is side), None)


def stages(dispute: Dispute, moves: Sequence[TimedMove]) -> list[Stage]:
    """All rounds and the question of a dispute whose accepted moves these are."""
    setup = dispute.setup
    sides = {party_of(setup, side): side for side in Side}
    node: Level[Any] | Question = run_level(setup)
    began, out = setup.opening.at, []
    for turn in range(len(dispute.rounds) + 1):
        said = tuple(
            Said(sides[m.move.body.party], m.at, m.move.body.move, len(encode(m.move.body.move)))
            for m in moves
            if m.move.body.turn == turn
        )
        line = dispute.rounds[turn] if turn < len(dispute.rounds) else None
        stage = Stage(node, began, said, line)
        out.append(stage)
        if line is None or not isinstance(node, Level):
            break
        both: Pair[Any] = Pair(stage.of(Side.DEFENDER), stage.of(Side.CHALLENGER))
        node, began = node.descend(setup, both, int(line.differ)), said[-1].at
    return out
