"""``python -m tests.bench.disputes.contests``: many liars against one job, as table and figure.

The job machine and its pairing are the real ones; disputes last as their clocks allow
(``tests/helpers/knockout.py``). Writes the table in docs/disputes.md and
docs/figures/contest-delay.svg.
"""

from __future__ import annotations

import math
import re
import sys
from functools import cache
from pathlib import Path

from tests.bench.disputes.figure import Panel, svg
from tests.helpers.knockout import Course, Entry, Way, course

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "disputes.md"
FIGURE = DOCS / "figures" / "contest-delay.svg"
BLOCK = re.compile(
    r"(?P<head><!-- contests: [^\n]*-->\n)(?P<body>.*?)(?P<foot><!-- end of contests -->)",
    re.DOTALL,
)
CLAIMS = (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256)
"""Distinct liars; one less than a power of two is where the bound grows."""
FRIENDS = 3
"""Members of a team that has as many as vouch for the run."""


@cache
def slow(claims: int, team: int) -> Course:
    """All enter at the last moment and take all the time that their clocks allow."""
    return course(claims, Way.SLOW, Entry.LAST, team=team)


@cache
def random(claims: int) -> Course:
    """They enter one after the other, and their disputes end at any time."""
    return course(claims, Way.ANY, Entry.SPREAD)


def bound(claims: int) -> int:
    """Longest disputes from the end of the entry to the settlement (JOB-26)."""
    return math.ceil(math.log2(claims + 1))


def lines(claims: tuple[int, ...] = CLAIMS) -> list[str]:
    """The table."""
    head = (
        "distinct claims",
        "bound",
        "slow, in teams of three",
        "at random, alone",
        "slow, alone",
        "disputes of the solver then",
        "one after the other",
    )
    return [f"| {' | '.join(head)} |", "|---:" * len(head) + "|", *(row(n) for n in claims)]


def row(claims: int) -> str:
    """One line of the table."""
    times = [slow(claims, FRIENDS).after, random(claims).after, slow(claims, 1).after]
    cells = [f"{claims}", f"{bound(claims)}", *(f"{time:.1f}" for time in times)]
    return f"| {' | '.join([*cells, str(slow(claims, 1).played), str(claims)])} |"


def panels() -> list[Panel]:
    """Time over the number of claims."""
    times = [
        ("bound", [(n, float(bound(n))) for n in CLAIMS]),
        ("slow, in teams of three", [(n, slow(n, FRIENDS).after) for n in CLAIMS]),
        ("at random, alone", [(n, random(n).after) for n in CLAIMS]),
    ]
    played = [
        ("slow, alone", [(n, float(slow(n, 1).played)) for n in CLAIMS]),
        ("slow, in teams of three", [(n, float(slow(n, FRIENDS).played)) for n in CLAIMS]),
        ("at random, alone", [(n, float(random(n).played)) for n in CLAIMS]),
    ]
    return [
        Panel(
            "time after the entry, in longest disputes",
            "distinct claims",
            10,
            (0, 2, 4, 6, 8, 10),
            times,
        ),
        Panel("disputes that the solver plays", "distinct claims", 20, (0, 5, 10, 15, 20), played),
    ]


def written(text: str) -> str:
    """The page with the table."""
    body = "\n".join(lines())
    return BLOCK.sub(lambda found: f"{found['head']}\n{body}\n\n{found['foot']}", text)


def main() -> int:
    """Write table and figure."""
    PAGE.write_text(written(PAGE.read_text()))
    FIGURE.write_text(svg(panels(), "Many liars against one job"))
    sys.stdout.write(f"wrote {PAGE} and {FIGURE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
