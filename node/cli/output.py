"""What a command says, and where.

A command returns an ``Answer``: the same facts as one JSON object and as lines for people.
With ``--json`` standard output holds that object and nothing else; whatever is told on the
way goes to standard error. Without it, colour and live bars appear on a terminal only.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

Lines = Sequence[Text | str]
"""What a screen is made of: one text a line, never wrapped."""


@dataclass(frozen=True)
class Answer:
    """The result of a command.

    Attributes:
        value: the JSON object; made of what ``plain`` takes.
        screen: the same for people.
        yes: whether the answer to the question of the command is yes; the exit code.
        code: another exit code, for an answer that is neither.
    """

    value: Mapping[str, Any]
    screen: Lines = ()
    yes: bool = True
    code: int | None = None


class Output:
    """The two channels of a command.

    Attributes:
        json: whether the answer is one JSON object.
        told: where progress goes: standard output, or standard error with ``--json``.
    """

    def __init__(
        self, *, json: bool = False, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.json = json
        self._stdout = stdout or sys.stdout
        self.told = _console((stderr or sys.stderr) if json else self._stdout)

    @property
    def live(self) -> bool:
        """Whether progress can be drawn in place."""
        return self.told.is_terminal and not self.told.is_dumb_terminal

    def say(self, line: Text | str = "") -> None:
        """Print one line of progress."""
        print_lines(self.told, [line])

    def busy(self, what: str) -> AbstractContextManager[object]:
        """Show on a terminal what takes long, while it does."""
        return self.told.status(what) if self.live else nullcontext()

    def answer(self, answer: Answer) -> None:
        """Print the answer of the command."""
        if self.json:
            text = json.dumps(plain(answer.value), indent=2, ensure_ascii=False)
            self._stdout.write(text + "\n")
            self._stdout.flush()
        else:
            print_lines(self.told, answer.screen)


class _Console(Console):
    """A console that leaves it to us what happens when its reader has gone."""

    def on_broken_pipe(self) -> None:
        """Pass the error on."""
        raise BrokenPipeError


def _console(file: TextIO) -> Console:
    return _Console(file=file, highlight=False, markup=False, emoji=False)


def print_lines(console: Console, lines: Iterable[Text | str]) -> None:
    """Print lines as they are, however wide."""
    for line in lines:
        console.print(line, soft_wrap=True)
    console.file.flush()


_current: ContextVar[Output] = ContextVar("output")


def current() -> Output:
    """The output of the running command."""
    return _current.get()


def use(output: Output) -> None:
    """Make this the output of the running command."""
    _current.set(output)


def plain(value: Any) -> Any:
    """The JSON form of our values: dataclasses as objects, bytes as hex, enumerations by name."""
    if isinstance(value, Enum):
        return str(value) if isinstance(value, str) else value.name.lower()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        # JSON has no infinities and no NaN.
        return value if value - value == 0 else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def indented(lines: Lines, by: int) -> list[Text]:
    """The lines, moved to the right."""
    return [Text(" " * by).append_text(x if isinstance(x, Text) else Text(x)) for x in lines]


def columns(
    rows: Sequence[Sequence[Text | str]], right: Sequence[int] = (), gap: int = 2
) -> list[Text]:
    """Align cells in columns.

    Args:
        rows: cells; rows may have fewer than others.
        right: columns that are aligned to the right.
        gap: spaces between columns.
    """
    cells = [[c if isinstance(c, Text) else Text(c) for c in row] for row in rows]
    widths: list[int] = []
    for row in cells:
        for i, cell in enumerate(row):
            if i == len(widths):
                widths.append(0)
            widths[i] = max(widths[i], cell.cell_len)
    lines = []
    for row in cells:
        line = Text()
        for i, cell in enumerate(row):
            space = " " * (widths[i] - cell.cell_len)
            if i in right:
                line.append(space)
            line.append_text(cell)
            if i < len(row) - 1:
                line.append(" " * gap if i in right else space + " " * gap)
        lines.append(line)
    return lines
