"""How a command ends when it cannot answer: words, what to do next, and the exit code.

0: yes. 1: checked, and the answer is no. 2: the command line is wrong. 3: this machine, or
the way to another one, is at fault. 130: interrupted. 141: nobody reads the output any more.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Final

from rich.text import Text

from identic.node.cli.output import Answer, Output, print_lines
from identic.protocol.errors import Code, IdenticError, LocalError, ProtocolError

YES: Final = 0
NO: Final = 1
USAGE: Final = 2
FAULT: Final = 3
INTERRUPTED: Final = 130
UNREAD: Final = 141

DEBUG: Final = "IDENTIC_DEBUG"


class Usage(LocalError):
    """The command line asks for something that makes no sense."""


_NEXT: Final = {
    Code.MALFORMED: "the file or message is damaged or of another version; get it again",
    Code.TOO_LARGE: "make it smaller, or ask the other side to raise its limit",
    Code.OUT_OF_RANGE: "correct the value and try again",
    Code.UNKNOWN: "check the name; `identic job list` and `identic dispute list` show what exists",
    Code.MISMATCH: "it was changed or belongs to something else; get it again from its source",
    Code.BAD_SIGNATURE: "do not trust it; get it again from whoever made it",
    Code.FORBIDDEN: "ask the other side's operator to accept this identity (`identic key show`)",
    Code.ILLEGAL_MOVE: "look at the present state with `identic job show`, then try again",
    Code.LATE: "the time for it is over; `identic job show` says what comes next",
    Code.UNSUPPORTED: "install a version that supports it, or ask for something else",
    Code.INSUFFICIENT: "see `identic ledger show`; the network's operator issues credits",
    Code.UNAVAILABLE: "try again in a moment",
    Code.CANNOT_CAPTURE: "change the job file as said above",
}


def remedy_of(error: IdenticError) -> str:
    """What to do about an error, in words."""
    if isinstance(error, LocalError):
        return error.remedy
    if isinstance(error, ProtocolError):
        advice = getattr(error, "advice", "")
        return str(advice) or _NEXT[error.code]
    return ""


def lines_of(error: IdenticError) -> list[Text]:
    """An error for people: what is wrong, then what to do."""
    if hasattr(error, "advice"):
        return [Text(line) for line in str(error).splitlines()]
    if isinstance(error, ProtocolError):
        head = Text("refused: ", style="bold red")
        head.append(f"got {error.got}; wanted {error.want}", style="not bold default")
        head.append(f"  ({error.rule})", style="dim not bold default")
    else:
        problem = error.problem if isinstance(error, LocalError) else str(error)
        head = Text(problem, style="bold red")
    remedy = remedy_of(error)
    return [head, *([Text(f"  {remedy}")] if remedy else [])]


def value_of(error: IdenticError) -> dict[str, Any]:
    """An error as a JSON value."""
    if isinstance(error, ProtocolError):
        place = {name: getattr(error, name) for name in ("file", "line") if hasattr(error, name)}
        return {
            "kind": "refused",
            "rule": error.rule,
            "code": str(error.code),
            "got": error.got,
            "want": error.want,
            **place,
            "remedy": remedy_of(error),
        }
    problem = error.problem if isinstance(error, LocalError) else str(error)
    kind = "usage" if isinstance(error, Usage) else "fault"
    return {"kind": kind, "problem": problem, "remedy": remedy_of(error)}


def exit_code(error: IdenticError) -> int:
    """The exit code of an error: who is at fault."""
    if isinstance(error, Usage):
        return USAGE
    return NO if isinstance(error, ProtocolError) else FAULT


def report(error: IdenticError, output: Output) -> int:
    """Tell of an error on standard error, and on standard output in JSON; return the exit code."""
    print_lines(Output(stdout=sys.stderr).told, lines_of(error))
    if output.json:
        output.answer(Answer({"error": value_of(error)}))
    return exit_code(error)


def unexpected(error: BaseException, output: Output) -> int:
    """Tell of a fault of our own in one line; the trace only where it is asked for."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    text = " ".join(str(error).split())[:300]
    return report(
        LocalError(
            f"unexpected {type(error).__name__}{': ' if text else ''}{text}",
            remedy=f"a fault of identic; run it again with {DEBUG}=1 and report what it prints",
        ),
        output,
    )


def unread() -> int:
    """End quietly when the reader of our output has gone."""
    # Python flushes standard output once more at exit; there must be somewhere to put it.
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    return UNREAD
