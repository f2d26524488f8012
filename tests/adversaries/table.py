"""The catalogue as tables in docs/disputes.md; ``python -m tests.adversaries.table`` writes them.

Every line is an entry whose attack is played by ``test_catalogue.py``; the words and rules here
are those that the play is compared with.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.adversaries.adversary import Adversary
from tests.adversaries.catalogue import CATALOGUE, MODULES

PAGE = Path(__file__).parents[2] / "docs" / "disputes.md"
BLOCK = re.compile(
    r"(?P<head><!-- adversaries: [^\n]*-->\n)(?P<body>.*?)(?P<foot><!-- end of adversaries -->)",
    re.DOTALL,
)


def words(stopped: tuple[str, ...]) -> str:
    """Rules in the order in which they are met; a number of equal rulings in a row as one."""
    runs = [(rule, len(list(equal))) for rule, equal in groupby(stopped)]
    return ", ".join(rule if count == 1 else f"{count} times {rule}" for rule, count in runs)


def line(kind: type[Adversary]) -> str:
    """One adversary."""
    return f"| {kind.name} | {kind.tries} | {words(kind.stopped)} | {kind.cost.value} |"


def lines() -> Iterator[str]:
    """A table for each group."""
    for module in MODULES:
        yield (module.__doc__ or "").splitlines()[0]
        yield ""
        yield "| adversary | what it tries | what it meets | what that costs it |"
        yield "|---|---|---|---|"
        yield from (line(k) for k in CATALOGUE.values() if k.__module__ == module.__name__)
        yield ""


def written(text: str) -> str:
    """The page with the tables as the catalogue has them."""
    body = "\n".join(lines())
    return BLOCK.sub(lambda found: f"{found['head']}\n{body}\n{found['foot']}", text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
    sys.stdout.write(f"wrote {len(CATALOGUE)} adversaries to {PAGE.name}\n")
