"""What a benchmark is, and the row it becomes in the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Timed = Callable[[], object]
"""A call that is timed; its result is thrown away."""


@dataclass(frozen=True)
class Case:
    """One thing computed by us and by others, with everything prepared.

    Attributes:
        ours: our call.
        peers: the calls of others that compute the same, by the name of their library.
        fmas: multiply-adds of one of our calls; 0 where their peak rate says nothing.
    """

    ours: Timed
    peers: Mapping[str, Timed]
    fmas: int = 0


@dataclass(frozen=True)
class Benchmark:
    """A case that is not prepared yet."""

    name: str
    prepare: Callable[[], Case]


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        name: of the benchmark.
        ours_s: median of our times, in seconds.
        peer: library compared with.
        peer_s: median of its times, in seconds.
        ratio: ``ours_s / peer_s``; below 1 we are faster.
        threads: threads each side may use.
        path: vector path of our kernels.
        fraction_of_peak: our rate of multiply-adds as a share of what this machine's vector
            units do on this path and with these threads; ``None`` where it says nothing.
        repetitions: timings behind each median, in turns.
    """

    name: str
    ours_s: float
    peer: str
    peer_s: float
    ratio: float
    threads: int
    path: str
    fraction_of_peak: float | None
    repetitions: int


HEADINGS = ("what", "threads", "ours", "peer", "its time", "ratio", "of peak")


def cells(row: Row) -> tuple[str, ...]:
    """A row in words, under ``HEADINGS``."""
    peak = "" if row.fraction_of_peak is None else f"{row.fraction_of_peak:.0%}"
    return (
        row.name,
        str(row.threads),
        duration(row.ours_s),
        row.peer,
        duration(row.peer_s),
        f"{row.ratio:.2f}",
        peak,
    )


def duration(seconds: float) -> str:
    """Three figures and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def markdown(machine: Mapping[str, str], rows: Sequence[Row]) -> str:
    """The report for people."""
    facts = [f"- {name}: {value}" for name, value in machine.items()]
    lines = [_line(HEADINGS), _line(["---", "--:", "--:", "---", "--:", "--:", "--:"])]
    return "\n".join([*facts, "", *lines, *(_line(cells(r)) for r in rows), ""])


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
