"""A dispute as a tree: each round under the one it came from, with who moved when.

``describe`` turns a dispute and its moves into a ``GameView``; ``lines`` draws one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.segment import Segment
from rich.text import Text
from rich.tree import Tree

from identic.node.cli import words
from identic.node.cli.screens.descent import LevelLine, Places, level_line
from identic.node.cli.trail import Said, Stage
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Dispute

WIDE = 10_000
"""Columns for drawing; lines are never wrapped."""


_QUESTIONS: Final = {
    "start": "question: which state the run starts from",
    "load": "question: what the step loads",
    "empty": "question: the digest of a result without elements",
    "header": "question: the header of the new state",
    "state": "question: which value a tensor of the new state is",
    "primitive": "question: one primitive step",
}
"""What is left when the descent has ended."""


@dataclass(frozen=True)
class MoveLine:
    """A move.

    Attributes:
        side: "defender" or "challenger".
        who: how screens call the party.
        at_ms: Unix time of its arrival.
        after_ms: time since the round began.
        nbytes: its encoded length.
    """

    side: str
    who: str
    at_ms: int
    after_ms: int
    nbytes: int


@dataclass(frozen=True)
class RoundLine:
    """A completed round.

    Attributes:
        level: what was compared, and where it differs, in words.
        name: of the level.
        compared: items of each side.
        first: number of the first child compared.
        block: children that an item stands for.
        differs_at: number of the first child that differs, or of the first of its block.
        moves: in the order of arrival.
    """

    level: LevelLine
    name: str
    compared: int
    first: int
    block: int
    differs_at: int
    moves: tuple[MoveLine, ...]


@dataclass(frozen=True)
class GameView:
    """A game as far as it has come.

    Attributes:
        name: of the dispute.
        rounds: completed rounds.
        node: the question that is left, in words; empty while the descent goes on.
        moves: moves made about it.
        end: how it ended, or who is due, in words.
    """

    name: str
    rounds: tuple[RoundLine, ...]
    node: str
    moves: tuple[MoveLine, ...]
    end: str


def describe(
    dispute: Dispute,
    stages: Sequence[Stage],
    *,
    roles: tuple[str, str],
    places: Places | None = None,
    end: str = "",
) -> GameView:
    """Say in words how a game went.

    Args:
        dispute: as far as it has come.
        stages: its rounds with their moves.
        roles: of the defender and of the challenger.
        places: where plan values come from in the submitter's source.
        end: how it ended; who is due if empty.
    """
    setup, last = dispute.setup, stages[-1].node
    found = (last.where.value, last.where.element)
    rounds = tuple(
        RoundLine(
            level=level_line(setup, stage.line, found, places or {}, roles),
            name=stage.line.level,
            compared=int(stage.line.compared),
            first=int(stage.line.first),
            block=int(stage.line.block),
            differs_at=int(stage.line.first + stage.line.differ * stage.line.block),
            moves=_moves(setup, stage, roles),
        )
        for stage in stages
        if stage.line is not None
    )
    node = "" if isinstance(last, Level) else _QUESTIONS.get(last.name, last.name)
    open_moves = _moves(setup, stages[-1], roles) if stages[-1].line is None else ()
    return GameView(
        name=f"d-{setup.opening.dispute.hex()[:6]}",
        rounds=rounds,
        node=node,
        moves=open_moves,
        end=end or _waiting(dispute, roles),
    )


def _moves(setup: Setup, stage: Stage, roles: tuple[str, str]) -> tuple[MoveLine, ...]:
    opening = setup.opening

    def line(said: Said) -> MoveLine:
        defends = said.side is Side.DEFENDER
        role = roles[0] if defends else roles[1]
        party = opening.defender if defends else opening.challenger
        return MoveLine(
            side="defender" if defends else "challenger",
            who=f"{role} {words.party(role, party)}",
            at_ms=int(said.at),
            after_ms=int(said.at - stage.began),
            nbytes=said.nbytes,
        )

    return tuple(line(said) for said in stage.said)


def _waiting(dispute: Dispute, roles: tuple[str, str]) -> str:
    due = [roles[0] if side is Side.DEFENDER else roles[1] for side in dispute.due]
    return f"waiting for {' and '.join(due)}" if due else "the referee is at it"


# ---- drawing --------------------------------------------------------------------------------


def lines(view: GameView) -> list[Text]:
    """The tree."""
    tree = Tree(Text(view.name, style="bold"), guide_style="dim")
    node = tree
    for line in view.rounds:
        node = node.add(_round(line.level))
        for move in line.moves:
            node.add(_move(move))
    if view.node:
        node = node.add(Text(view.node))
    for move in view.moves:
        node.add(_move(move))
    node.add(Text(view.end, style="bold"))
    return drawn(tree)


def _round(level: LevelLine) -> Text:
    agreed = f"agree up to {level.agreed}" if level.agreed else "agree on none"
    text = Text(f"{level.level}: {level.compared}, {agreed}, differ at ")
    return text.append(level.differ, style="bold")


def _move(move: MoveLine) -> Text:
    after = words.duration(move.after_ms / 1000)
    return Text(f"{move.who} after {after}, {words.size(move.nbytes)}", style="dim")


def drawn(tree: Tree) -> list[Text]:
    """The lines of a tree as texts."""
    console = Console(width=WIDE, highlight=False, markup=False, emoji=False)
    options = console.options.update(width=WIDE)
    options.encoding = "utf-8"
    rows = console.render_lines(tree, options, pad=False)
    return [_text(row) for row in rows]


def _text(row: Sequence[Segment]) -> Text:
    text = Text()
    for segment in row:
        text.append(segment.text, style=segment.style)
    text.rstrip()
    return text
