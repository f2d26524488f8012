"""``identic bench``: our kernels beside libraries that promise nothing about bits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from identic.node.bench import run
from identic.node.bench.rows import HEADINGS, Footprint, Row, cells, size_cells
from identic.node.bench.timing import CLOCKS
from identic.node.cli import words
from identic.node.cli.faults import Usage
from identic.node.cli.output import Answer, current
from identic.node.worker.devices import CPU

WIDTHS = (34, 7, 9, 20, 9, 6, 7)
"""Columns of the table on the screen."""

SIZES = (0, 2, 3, 4, 5)
"""Columns that a row of memory fills."""

LEFT = (0, 3)
"""Columns of words; the others are numbers."""


def bench(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="WORD", help="Rows whose name has it; may be given again."),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            max=1024,
            help="Threads of each side; may be given again.  [default: 1 and 2]",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A look of seconds, no figure to quote.")
    ] = False,
    clock: Annotated[
        str,
        typer.Option(
            "--clock", metavar="CLOCK", help="wall; or cpu, for one thread on a busy machine."
        ),
    ] = "wall",
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="DEVICE", help="cpu; or cuda and the like, for steps on a device."
        ),
    ] = CPU,
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="Folder of bench.json and bench.md.")
    ] = Path("out"),
) -> Answer:
    """Time operators and training steps beside torch.

    Each figure is the median of 15 turns, ours and each peer's one after the other. Needs torch;
    whole training steps are those of examples/, in a clone of the repository.
    """
    if clock not in CLOCKS:
        raise Usage(f"there is no clock {clock}", remedy=f"take {' or '.join(CLOCKS)}")
    wanted = run.Wanted(tuple(only or ()), tuple(threads or _threads(device)), quick, clock, device)
    output = current()
    machine: dict[str, str] = {}
    rows: list[Row] = []
    memory: list[Footprint] = []
    for line in run.measured(wanted):
        if isinstance(line, Row):
            rows.append(line)
            output.say(_aligned(cells(line)))
        elif isinstance(line, Footprint):
            memory.append(line)
            filled = dict(zip(SIZES, size_cells(line), strict=True))
            output.say(_aligned(tuple(filled.get(i, "") for i in range(len(WIDTHS)))))
        else:
            machine = line
            for name, text in machine.items():
                output.say(f"{name}: {text}")
            output.say()
            output.say(_aligned(HEADINGS))
    if not rows and not memory:
        raise Usage("no row has such a name", remedy="leave out --only to see all names")
    told, shown = run.write(into, machine, rows, memory)
    value = {**run.report(machine, rows, memory), "files": [told, shown]}
    written = f"{words.plural(len(rows) + len(memory), 'row')} written to {told} and {shown}"
    return Answer(value, ["", written])


def _threads(device: str) -> tuple[int, ...]:
    """Numbers of threads unless they are given; a device is measured once."""
    return (1, 2) if device == CPU else (1,)


def _aligned(texts: tuple[str, ...]) -> str:
    columns = enumerate(zip(texts, WIDTHS, strict=True))
    return "  ".join(f"{w:<{n}}" if i in LEFT else f"{w:>{n}}" for i, (w, n) in columns)
