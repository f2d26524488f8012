"""A row of the table of disputes, and the tables for people."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One dispute that was played.

    Attributes:
        model: what was trained.
        link: what lay between the processes.
        lie: what was wrong.
        operator: whose result was wrong; empty where no operator's was.
        level: where the dispute was settled: the last level, and the question.
        rule: by which it was settled.
        rounds: rounds with moves of both sides.
        liar_bytes: signed moves of who lied, as they are sent.
        honest_bytes: signed moves of the other side.
        wall_s: from the opening to the ruling, by the coordinator's clock.
        rerun_s: time that the slower side took for its moves: re-execution and hashing.
        rerun_cpu_s: time on the processor for that.
        steps_again: training steps executed again, by the bounds.
        step_s: time of one step in training.
        coordinator_cpu_s: time on the coordinator's processor for all of the dispute.
        referee_ms: time of the ruling alone, in a process without kernels, the median of many.
        evidence_bytes: that the referee read.
        memory_bytes: largest resident set of a party's process.
        load: processes that wanted a core in the minute before the ruling, this row's included.
    """

    model: str
    link: str
    lie: str
    operator: str
    level: str
    rule: str
    rounds: int
    liar_bytes: int
    honest_bytes: int
    wall_s: float
    rerun_s: float
    rerun_cpu_s: float
    steps_again: int
    step_s: float
    coordinator_cpu_s: float
    referee_ms: float
    evidence_bytes: int
    memory_bytes: int
    load: float

    @property
    def key(self) -> tuple[str, str, str]:
        """Which row it is."""
        return (self.model, self.link, self.lie)


HEADINGS = (
    "lie",
    "settled at",
    "rounds",
    "each side sends",
    "time",
    "re-executing (CPU)",
    "coordinator (CPU)",
    "ruling",
    "evidence",
    "memory",
)


def markdown(machine: Mapping[str, str], rows: Sequence[Row], links: Mapping[str, str]) -> str:
    """The machine, then a table for each model, with the time over each link."""
    parts = ["\n".join(f"- {name}: {value}" for name, value in machine.items())]
    used = [link for link in links if any(row.link == link for row in rows)]
    parts.append("\n".join(f"- {links[link]}" for link in used))
    for model in dict.fromkeys(row.model for row in rows):
        here = [row for row in rows if row.model == model]
        parts.append(_table(model, here, used))
    return "\n\n".join(parts) + "\n"


def _table(model: str, rows: Sequence[Row], links: Sequence[str]) -> str:
    head = [h if h != "time" else f"time, {links[0]}" for h in HEADINGS]
    at = head.index(f"time, {links[0]}")
    head[at + 1 : at + 1] = [f"{link}" for link in links[1:]]
    loads = sorted(row.load for row in rows)
    load = f"load {loads[0]:.1f} to {loads[-1]:.1f}, median {statistics.median(loads):.1f}"
    lines = [f"**{model}**, {rows[0].step_s:.2g} s a step, {load}", "", _line(head)]
    lines.append(_line(["---", "---", *["--:"] * (len(head) - 2)]))
    for lie in dict.fromkeys(row.lie for row in rows):
        same = {row.link: row for row in rows if row.lie == lie}
        first = next(same[link] for link in links if link in same)
        times = [seconds(same[link].wall_s) if link in same else "" for link in links]
        lines.append(_line(cells(first, times)))
    return "\n".join(lines)


def cells(row: Row, times: Sequence[str]) -> list[str]:
    """A row in words, with its time over each link."""
    name = f"{row.lie}: `{row.operator}`" if row.operator else row.lie
    return [
        name,
        f"{row.level} ({row.rule})",
        str(row.rounds),
        size(max(row.liar_bytes, row.honest_bytes)),
        *times,
        seconds(row.rerun_cpu_s),
        seconds(row.coordinator_cpu_s),
        f"{row.referee_ms:.2f} ms",
        size(row.evidence_bytes),
        size(row.memory_bytes),
    ]


def seconds(value: float) -> str:
    """A time with two or three figures."""
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.3g} s"


def size(value: int) -> str:
    """A length with two or three figures, decimal."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value} B"


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
