"""The pages under docs/ and the README: help texts and the example are those of the code.

``python -m tests.node.cli.test_docs`` writes the blocks again.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from identic.node.cli import main
from identic.node.cli.commands import COMMANDS
from tests.lint.tree import ROOT
from tests.node.cli import example

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?P<head><!-- (?P<kind>help|example):(?P<what>[^\n]*?)-->\n)(?P<body>.*?)"
    r"(?P<foot><!-- end of (?P=kind) -->)",
    re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"\bidentic ((?:[a-z]+ ?){1,2})")


def help_of(arguments: str) -> str:
    """What ``identic ARGUMENTS --help`` prints at 100 columns."""
    said = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        with contextlib.redirect_stdout(said):
            main.run([*arguments.split(), "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return said.getvalue().rstrip()


def written(match: re.Match[str]) -> str:
    """A block as the code has it."""
    make: dict[str, Callable[[], str]] = {
        "help": lambda: help_of(match["what"].strip()),
        "example": example.text,
    }
    return f"{match['head']}```text\n{make[match['kind']]()}\n```\n{match['foot']}"


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_blocks_are_what_the_code_prints(page: Path) -> None:
    text = page.read_text()
    assert BLOCK.sub(written, text) == text, "run python -m tests.node.cli.test_docs"


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_commands_that_are_mentioned_exist(page: Path) -> None:
    paths = {entry.path for entry in COMMANDS}
    nouns = {path.partition(" ")[0] for path in paths}
    # Commands stand in code: in a fenced block at the start of a line, or between backquotes.
    code = re.findall(r"^identic [a-z ]+|`identic [a-z ]+", page.read_text(), re.MULTILINE)
    for text in code:
        words = text.strip("`").split()[1:3]
        if words:
            assert words[0] in nouns, text
            assert words[0] in paths or len(words) < 2 or " ".join(words) in paths, text


def test_the_readme_stays_in_its_words() -> None:
    text = (ROOT / "README.md").read_text().lower()
    assert not re.search(r"\bprove[sdn]?\b|\bproof\b", text)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(BLOCK.sub(written, path.read_text()))
    sys.stdout.write(f"wrote {len(PAGES)} pages\n")
