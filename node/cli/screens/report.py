"""A list of checks with their outcomes: for receipts, and for ``doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rich.text import Text

from identic.node.cli.output import Lines


class Outcome(Enum):
    """How a check ended."""

    FINE = "✓"
    BUT = "!"
    NO = "✗"
    NOT_CHECKED = "–"


_STYLES = {
    Outcome.FINE: "green",
    Outcome.BUT: "yellow",
    Outcome.NO: "bold red",
    Outcome.NOT_CHECKED: "dim",
}


@dataclass(frozen=True)
class CheckLine:
    """One check.

    Attributes:
        name: one or two words.
        outcome: how it ended.
        text: what was found.
        remedy: what to do about it; shown on the next line unless the check is fine.
    """

    name: str
    outcome: Outcome
    text: str
    remedy: str = ""


def lines(checks: tuple[CheckLine, ...]) -> Lines:
    """One line a check; the remedy on the next."""
    width = max((len(c.name) for c in checks), default=0) + 2
    out: list[Text] = []
    for check in checks:
        line = Text(f" {check.outcome.value} ", style=_STYLES[check.outcome])
        line.append(f"{check.name:<{width}}", style="bold default")
        line.append(check.text, style="not bold default")
        out.append(line)
        if check.remedy and check.outcome is not Outcome.FINE:
            out.append(Text(f"   {'':<{width}}{check.remedy}", style="dim"))
    return out


def value(checks: tuple[CheckLine, ...]) -> list[dict[str, str]]:
    """The checks as JSON values."""
    return [
        {
            "check": c.name,
            "outcome": c.outcome.name.lower(),
            "text": c.text,
            **({"remedy": c.remedy} if c.remedy else {}),
        }
        for c in checks
    ]
