"""One measuring process for each number of threads, and the report of what they print."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from identic.node.bench.memory import footprints
from identic.node.bench.rows import Footprint, Row, markdown
from identic.node.worker import cards
from identic.node.worker.devices import CPU, number
from identic.protocol.errors import LocalError

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Wanted:
    """What to measure.

    Attributes:
        only: words of which a benchmark's name has one; all benchmarks without words.
        threads: of each side, one measurement for each number.
        quick: a look of seconds, not a figure.
        clock: ``wall``, or ``cpu`` for time on the processor.
        device: ``cpu``, or the CUDA device whose steps are timed.
    """

    only: tuple[str, ...] = ()
    threads: tuple[int, ...] = (1, 2)
    quick: bool = False
    clock: str = "wall"
    device: str = CPU


def measured(wanted: Wanted) -> Iterator[dict[str, str] | Row | Footprint]:
    """The machine in words, then each row as it is measured, memory last.

    Raises:
        LocalError: torch is not installed, the device is not there, or a process fails.
    """
    if importlib.util.find_spec("torch") is None:
        raise LocalError(
            "the bench compares with torch, which is not installed",
            remedy="pip install 'identic[torch]'",
        )
    index = number(wanted.device)
    if index is not None:
        # Here, so that it is said in words: the processes measure what is there.
        cards.opened(index)
    passed = ["--clock", wanted.clock, "--device", wanted.device]
    passed += ["--quick"] if wanted.quick else []
    for word in wanted.only:
        passed += ["--only", word]
    for turn, threads in enumerate(wanted.threads):
        lines = _process(threads, passed)
        machine = {name: str(value) for name, value in next(lines, {}).items()}
        if not turn:
            yield machine
        for line in lines:
            yield Row(**line)
    if wanted.device == CPU and (wanted.only or not wanted.quick):
        yield from footprints(wanted.only, _environment(1))


def _process(threads: int, passed: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What a process with so many threads prints."""
    command = [sys.executable, "-m", "identic.node.bench.measure", "--threads", str(threads)]
    with subprocess.Popen(
        [*command, *passed],
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(threads),
    ) as process:
        if process.stdout is None:
            raise RuntimeError("the process has no standard output")
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise LocalError(
            f"measuring with {threads} threads ended with {process.returncode}",
            remedy="what it says stands above",
        )


def _environment(threads: int) -> dict[str, str]:
    """What a process with so many threads is started with."""
    return {**os.environ, **dict.fromkeys(VARIABLES, str(threads))}


def report(
    machine: dict[str, str], rows: Sequence[Row], memory: Sequence[Footprint] = ()
) -> dict[str, Any]:
    """The report for programs."""
    found = {"machine": machine, "rows": [asdict(row) for row in rows]}
    return {**found, "memory": [asdict(row) for row in memory]}


def write(
    folder: Path, machine: dict[str, str], rows: Sequence[Row], memory: Sequence[Footprint] = ()
) -> tuple[Path, Path]:
    """Write ``bench.json`` and ``bench.md``; returns the files."""
    told, shown = folder / "bench.json", folder / "bench.md"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        told.write_text(
            json.dumps(report(machine, rows, memory), indent=1) + "\n", encoding="utf-8"
        )
        shown.write_text(markdown(machine, rows, memory), encoding="utf-8")
    except OSError as error:
        raise LocalError(
            f"cannot write to {folder}: {error.strerror}", remedy="choose another with --into"
        ) from error
    return told, shown
