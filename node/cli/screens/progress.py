"""A job at work: one bar for each party, the run log, and the curve of the loss.

On a terminal the picture is drawn in place; in a pipe a line is printed whenever something
worth a line has happened: a phase, a verdict, a tenth of the steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, Output

WIDTH: Final = 100
"""Columns where a terminal does not tell."""
BAR_WIDTH: Final = 22
LEAST_BAR: Final = 6
BESIDES_BAR: Final = 74
"""Columns of a party's line besides its bar, at most."""
CURVE_WIDTH: Final = 48
TENTHS: Final = 10
FRESH_S: Final = 0.1
"""Least time between two pictures, in seconds."""


@dataclass(frozen=True)
class PartyView:
    """One party at work on a job.

    Attributes:
        name: how screens call it, such as ``s-3f9c01``.
        role: "solver", "verifier" or "whistleblower".
        step: steps done.
        rate: steps a second at present; 0 where unknown.
        loss: of the last step, where the party reports it.
        activity: what it is at when it does not compute, in words.
        verdict: "", "sealed", "agrees", "disagrees", "late" or "cannot tell".
    """

    name: str
    role: str
    step: int
    rate: float = 0.0
    loss: float | None = None
    activity: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class JobView:
    """A job at one moment.

    Attributes:
        name: such as ``j-7f3a91``.
        phase: word of the job machine, such as "training".
        steps: steps of the whole run.
        parties: solver first.
        losses: one a step as far as known, evenly spaced.
        committed: steps covered by the solver's signed run log.
        log_size: entries of the coordinator's log; 0 where unknown.
        tokens: tokens or examples in one step; 0 shows steps a second instead.
        attempt: from 1; more when a solver failed.
        waits_for: what the job waits for, in words.
        contest: the claims about the run, in a line; empty while there is one only.
    """

    name: str
    phase: str
    steps: int
    parties: tuple[PartyView, ...] = ()
    losses: tuple[float, ...] = ()
    committed: int = 0
    log_size: int = 0
    tokens: int = 0
    attempt: int = 1
    waits_for: str = ""
    contest: str = ""


def speed(view: JobView, rate: float) -> str:
    """A rate in what the job counts; empty where unknown."""
    if rate <= 0:
        return ""
    if view.tokens:
        return f"{rate * view.tokens:,.0f} tok/s"
    return f"{rate:,.1f} steps/s"


def remaining(view: JobView, party: PartyView) -> str:
    """Time to the last step at the present rate; empty where unknown."""
    left = view.steps - party.step
    if party.rate <= 0 or left <= 0:
        return ""
    return f"eta {words.duration(left / party.rate)}"


_MARKS: Final = {
    "agrees": ("reproduces it ✓", "green"),
    "disagrees": ("disagrees ✗", "bold red"),
    "late": ("gave no verdict in time ✗", "red"),
    "cannot tell": ("cannot tell !", "bold yellow"),
    "sealed": ("verdict sealed", "cyan"),
}


def party_line(view: JobView, party: PartyView, width: int = WIDTH) -> Text:
    """One party: bar, steps, loss, speed, time left, verdict, in at most ``width`` columns."""
    line = Text()
    column = max(len(one.role) for one in view.parties)
    line.append(f"{party.role:<{column}} ", style="bold")
    line.append(f"{party.name:<9} ")
    colour = "green" if party.role == "solver" else "cyan"
    bar = min(BAR_WIDTH, max(LEAST_BAR, width - BESIDES_BAR))
    line.append(words.bar(party.step, view.steps, bar), style=colour)
    total = words.count(view.steps)
    line.append(f"  {words.count(party.step):>{len(total)}}/{total}")
    if party.loss is not None:
        line.append(f"   loss {party.loss:.3f}")
    if party.verdict in _MARKS:
        text, style = _MARKS[party.verdict]
        line.append(f"   {text}", style=style)
        return line
    facts = [f for f in (speed(view, party.rate), remaining(view, party)) if f]
    if facts:
        line.append("".join(f"   {fact}" for fact in facts))
    elif party.activity:
        line.append(f"   {party.activity}", style="dim")
    return line


def lines(view: JobView, width: int = WIDTH) -> Lines:
    """The whole picture, in at most ``width`` columns as far as its words allow."""
    head = Text(view.name, style="bold")
    head.append(f"  {view.phase}", style="bold yellow" if view.phase == "disputed" else "not bold")
    if view.attempt > 1:
        head.append(f"  attempt {view.attempt}", style="yellow not bold")
    if view.waits_for:
        head.append(f"  waiting for {view.waits_for}", style="dim not bold")
    out = [head, *(party_line(view, party, width) for party in view.parties)]
    if view.contest:
        out.append(Text("contest  ", style="bold yellow").append(view.contest, "not bold default"))
    if view.committed:
        signed = Text(f"signed to step {words.count(view.committed)}")
        if view.log_size:
            signed.append(
                f"   log of {words.plural(view.log_size, 'entry').replace('entrys', 'entries')}"
            )
        out.append(signed)
    if view.losses:
        curve = words.sparkline(view.losses, CURVE_WIDTH)
        out.append(Text(f"loss {curve} {view.losses[-1]:.3f}"))
    return out


def plain_line(view: JobView) -> str:
    """The picture in one line, for a pipe."""
    attempt = f", attempt {view.attempt}" if view.attempt > 1 else ""
    facts = [f"{view.name} {view.phase}{attempt}"]
    for party in view.parties:
        text = f"{party.role} {party.name} {party.step}/{view.steps}"
        if party.loss is not None:
            text += f" loss {party.loss:.3f}"
        if party.verdict:
            text += f" {party.verdict}"
        facts.append(text)
    if view.committed:
        facts.append(f"signed to {view.committed}")
    if view.contest:
        facts.append(view.contest)
    return "; ".join(facts)


def _stage(view: JobView) -> tuple[object, ...]:
    """What must change before a pipe gets another line: a tenth of all the work, at least."""
    work = view.steps * max(1, len(view.parties))
    tenth = TENTHS * sum(party.step for party in view.parties) // max(1, work)
    verdicts = tuple((party.name, party.verdict) for party in view.parties)
    return view.phase, view.attempt, verdicts, tenth, view.contest


class LiveJob:
    """Shows a job while it changes. Usable as ``with``.

    Args:
        output: where to show it.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._live = (
            Live(console=output.told, auto_refresh=False, transient=False) if output.live else None
        )
        self._stage: tuple[object, ...] = ()
        self._drawn_s = 0.0

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, view: JobView) -> None:
        """Show the job as it is now."""
        stage, now = _stage(view), time.monotonic()
        changed = stage != self._stage
        if self._live:
            if changed or now - self._drawn_s >= FRESH_S:
                picture = lines(view, self._output.told.width)
                self._live.update(Group(*_fitted(picture)), refresh=True)
                self._drawn_s = now
        elif changed:
            self._output.say(plain_line(view))
        self._stage = stage


def _fitted(out: Lines) -> list[Text]:
    """The lines, each to be cut rather than wrapped."""
    texts = [line if isinstance(line, Text) else Text(line) for line in out]
    for text in texts:
        text.no_wrap, text.overflow = True, "ellipsis"
    return texts


class Transfer:
    """Shows how far an upload or a download is. Usable as ``with``.

    Args:
        output: where to show it.
        what: noun of the line, such as "uploading".
        total: bytes in all, or of what ``shown`` counts.
        shown: an amount in words.
    """

    def __init__(
        self,
        output: Output,
        what: str,
        total: int,
        shown: Callable[[int], str] = words.size,
    ) -> None:
        self._output, self._what, self._total, self._shown = output, what, total, shown
        self._live = (
            Live(console=output.told, auto_refresh=False, transient=True) if output.live else None
        )
        self._drawn_s = 0.0

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def advance(self, done: int) -> None:
        """Show that ``done`` is done."""
        now = time.monotonic()
        if self._live and now - self._drawn_s >= FRESH_S:
            picture = words.bar(done, self._total, BAR_WIDTH)
            text = f"{self._what:<10} {picture}  {self._shown(done)} of {self._shown(self._total)}"
            self._live.update(Text(text), refresh=True)
            self._drawn_s = now
