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
    """A case that is not prepared yet.

    Attributes:
        name: by which it is chosen.
        prepare: makes the case.
        heavy: whether it takes minutes.
    """

    name: str
    prepare: Callable[[], Case]
    heavy: bool = False


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


@dataclass(frozen=True)
class Footprint:
    """Memory of one thing on both sides.

    Attributes:
        name: of the benchmark.
        ours_bytes: our peak, above what the process held before it began.
        peer: library compared with.
        peer_bytes: its peak, counted alike.
        ratio: ``ours_bytes / peer_bytes``; below 1 we need less.
    """

    name: str
    ours_bytes: int
    peer: str
    peer_bytes: int
    ratio: float


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


SIZE_HEADINGS = ("memory", "ours", "peer", "its memory", "ratio")


def size_cells(row: Footprint) -> tuple[str, ...]:
    """A row in words, under ``SIZE_HEADINGS``."""
    ours, theirs = _size(row.ours_bytes), _size(row.peer_bytes)
    return (row.name, ours, row.peer, theirs, f"{row.ratio:.2f}")


def _size(count: int) -> str:
    """Three figures and a unit."""
    big = count >= 1 << 30
    return f"{count / (1 << (30 if big else 20)):.3g} {'GiB' if big else 'MiB'}"


def duration(seconds: float) -> str:
    """Three figures and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def markdown(
    machine: Mapping[str, str], rows: Sequence[Row], footprints: Sequence[Footprint] = ()
) -> str:
    """The report for people."""
    lines = [f"- {name}: {value}" for name, value in machine.items()]
    if rows:
        lines += ["", _line(HEADINGS), _line(["---", "--:", "--:", "---", "--:", "--:", "--:"])]
        lines += [_line(cells(r)) for r in rows]
    if footprints:
        lines += ["", _line(SIZE_HEADINGS), _line(["---", "--:", "---", "--:", "--:"])]
        lines += [_line(size_cells(f)) for f in footprints]
    return "\n".join([*lines, ""])


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
