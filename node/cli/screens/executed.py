"""A re-execution beside a dispute: what each side published, and what this machine has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, columns, indented
from identic.node.cli.screens.descent import level_line, value_name
from identic.node.cli.trail import Stage
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.levels import IntervalLevel
from identic.protocol.dispute.setup import Setup
from identic.protocol.dtypes import DType


@dataclass(frozen=True)
class Item:
    """One thing that both sides published, and what this machine has.

    Attributes:
        number: of the child.
        defender: digest, or word of an element.
        challenger: likewise.
        here: likewise.
    """

    number: int
    defender: bytes | int
    challenger: bytes | int
    here: bytes | int


@dataclass(frozen=True)
class Compared:
    """A round of the dispute, with this machine's own list.

    Attributes:
        stage: the round.
        items: those around the one that differs.
        from_defender: number of the first item in which this machine differs from the defender.
        from_challenger: likewise; None where the lists are equal.
    """

    stage: Stage
    items: tuple[Item, ...]
    from_defender: int | None
    from_challenger: int | None


@dataclass(frozen=True)
class Reexecuted:
    """What this machine found.

    Attributes:
        machine: with what it computed, in words.
        from_state: steps done at the stored state that it started from.
        seconds: time it took.
        rounds: from the first one that needs execution down to the last.
    """

    machine: str
    from_state: int
    seconds: float
    rounds: tuple[Compared, ...]

    @property
    def agrees(self) -> str:
        """With whom this machine agrees in every list: "defender", "challenger" or "neither"."""
        if all(r.from_defender is None for r in self.rounds):
            return "defender"
        if all(r.from_challenger is None for r in self.rounds):
            return "challenger"
        return "neither"


_HEADS = ("", "", "", "defender", "challenger", "this machine")


def lines(setup: Setup, view: Reexecuted, places: Mapping[int, str]) -> Lines:
    """A table for each round, around the item that differs, and the conclusion."""
    took = words.duration(view.seconds)
    head = f" re-executed   {view.machine}; from state {view.from_state:,}, in {took}"
    out: list[Text] = [Text(head, style="bold")]
    for compared in view.rounds:
        out += _round(setup, compared, places)
    return [*out, Text(), conclusion(view)]


def conclusion(view: Reexecuted) -> Text:
    """With whom this machine agrees."""
    if view.agrees == "neither":
        mark, style = "! ", "yellow"
        said = "this machine agrees with neither side; `identic doctor` says whether it is sound"
    else:
        mark, style = "✓ ", "green"
        said = f"this machine agrees with the {view.agrees} in every list"
    return Text(mark, style=style).append(said, style="bold")


def value(view: Reexecuted) -> dict[str, object]:
    """The re-execution as a JSON value."""
    return {
        "machine": view.machine,
        "from_state": view.from_state,
        "seconds": view.seconds,
        "agrees": view.agrees,
        "rounds": [
            {
                "level": compared.stage.node.name,
                "differs_at": _differs(compared),
                "differs_from_defender_at": compared.from_defender,
                "differs_from_challenger_at": compared.from_challenger,
                "around": compared.items,
            }
            for compared in view.rounds
        ],
    }


def _round(setup: Setup, compared: Compared, places: Mapping[int, str]) -> list[Text]:
    line, level = compared.stage.line, compared.stage.node
    if line is None or not isinstance(level, Level):
        return []
    where = (level.where.value, level.where.element)
    title = level_line(setup, line, where, places, ("defender", "challenger")).level
    kind = setup.plan.type(level.where.value).dtype if level.where.value is not None else None
    rows: list[list[Text | str]] = [[Text(name, style="dim") for name in _HEADS]]
    for item in compared.items:
        differs = item.defender != item.challenger and item.number == _differs(compared)
        name = _name(setup, level, item.number, places)
        rows.append(["▸" if differs else "", f"{item.number:,}", name, *_cells(item, kind)])
    return [Text(), Text(f"   {title}", style="bold"), *indented(columns(rows, right=(1,)), 5)]


def _differs(compared: Compared) -> int | None:
    line = compared.stage.line
    return None if line is None else int(line.first + line.differ * line.block)


def _name(setup: Setup, level: Level[object], number: int, places: Mapping[int, str]) -> str:
    if isinstance(level, IntervalLevel):
        return f"state {level.start + number + 1:,}"
    if level.name == "step" and level.block == 1:
        return value_name(setup.plan, number, places)
    if level.name == "state" and level.block == 1:
        return "header" if number == 0 else setup.plan.program.state[number - 1].name
    return ""


def _cells(item: Item, kind: DType | None) -> list[Text]:
    def cell(value: bytes | int, *, same: bool) -> Text:
        if isinstance(value, int):
            said = f"{words.element(kind, value)} {words.pattern(kind, value)}"
        else:
            said = words.short(value)
        return Text(said, style="" if same else "bold red")

    return [
        cell(item.defender, same=item.defender == item.here),
        cell(item.challenger, same=item.challenger == item.here),
        cell(item.here, same=True),
    ]
