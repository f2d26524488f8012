"""``python -m tests.bench``: measure, print the table, write bench.json and bench.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.rows import HEADINGS, Row, cells, markdown

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (28, 7, 9, 20, 9, 6, 7)
"""Columns of the table on the screen."""


def main(arguments: Sequence[str]) -> int:
    """Measure with each number of threads in turn."""
    options = _options(arguments)
    passed = ["--clock", options.clock, *(["--quick"] if options.quick else [])]
    for word in options.only:
        passed += ["--only", word]
    machine: dict[str, str] = {}
    rows: list[Row] = []
    for threads in options.threads:
        lines = _measured(threads, passed)
        found = {name: str(value) for name, value in next(lines).items()}
        if not machine:
            machine = found
            _say(*(f"{name}: {value}" for name, value in machine.items()), _aligned(HEADINGS))
        for line in lines:
            rows.append(Row(**line))
            _say(_aligned(cells(rows[-1])))
    options.out.mkdir(parents=True, exist_ok=True)
    report = {"machine": machine, "rows": [asdict(row) for row in rows]}
    (options.out / "bench.json").write_text(json.dumps(report, indent=1) + "\n")
    (options.out / "bench.md").write_text(markdown(machine, rows))
    _say(f"written to {options.out / 'bench.json'} and {options.out / 'bench.md'}")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a look of seconds, not a figure")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="names that hold this"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: time on the processor, for one thread on a busy machine",
    )
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the reports")
    return parser.parse_args(arguments)


def _measured(threads: int, passed: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What a process with so many threads prints."""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    command = [sys.executable, "-m", "tests.bench.measure", "--threads", str(threads), *passed]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **dict.fromkeys(variables, str(threads))},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"measuring with {threads} threads ended with {process.returncode}")


def _aligned(words: Sequence[str]) -> str:
    left = (0, 3)
    columns = zip(words, WIDTHS, strict=True)
    return "  ".join(f"{w:<{n}}" if i in left else f"{w:>{n}}" for i, (w, n) in enumerate(columns))


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
