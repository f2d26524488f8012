"""``python -m tests.bench.disputes``: play disputes about lies of every kind, and tabulate them.

Writes bench-dispute.json, a row for each lie, after every row, and bench-dispute.md. Started
again it goes on where it was; rows of another machine, or with --again, are played anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from identic.protocol.program.codec import load
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits
from tests.bench.disputes import staging, switch
from tests.bench.disputes.lies import Lie, lies
from tests.bench.disputes.machine import describe, same
from tests.bench.disputes.measure import measured
from tests.bench.disputes.network import LINKS, ROOT, Link, Network
from tests.bench.disputes.rows import Row, cells, markdown, seconds
from tests.bench.disputes.staging import MODELS, Model, Staged

QUICK = ("load of a parameter", "state tensor", "matrix product")
MAX_PROGRAM_BYTES = 1 << 30


class Bench:
    """All rows, played one after the other.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._json = options.out / "bench-dispute.json"
        self._machine = describe(options.threads)
        self.rows = [] if options.again else self._known()
        self._console = Console(stderr=True)

    def _known(self) -> list[Row]:
        if not self._json.exists():
            return []
        found = json.loads(self._json.read_text())
        rows = [Row(**row) for row in found["rows"]]
        return rows if same(found["machine"], self._machine) else []

    def run(self) -> None:
        """Play what is missing."""
        columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console) as progress:
            task = progress.add_task("disputes", total=None)
            for model in self._models():
                progress.update(task, description=f"{model.name}: staging")
                staged, plan = self._staged(model)
                wanted = self._lies(plan, int(staged.terms.steps))
                for link in self._links():
                    missing = [w for w in wanted if not self._has(model, link, w[1])]
                    total = len(self.rows) + len(missing)
                    progress.update(task, total=total, completed=len(self.rows))
                    if missing:
                        asyncio.run(self._over(model, staged, plan, link, missing, progress))

    def _models(self) -> list[Model]:
        names = ["gpt"] if self._options.quick else self._options.models
        return [MODELS[name] for name in names]

    def _links(self) -> list[Link]:
        names = ["loopback"] if self._options.quick else self._options.links
        links = [LINKS[name] for name in names]
        if any(link.delay_ms for link in links) and not switch.available():
            self._console.print("no namespaces here (root and /dev/net/tun): loopback only")
            links = [link for link in links if not link.delay_ms]
        return links

    def _lies(self, plan: StepPlan, steps: int) -> list[tuple[int, Lie]]:
        found = list(enumerate(lies(plan, steps - 1)))
        if self._options.quick:
            return [(n, lie) for n, lie in found if lie.name in QUICK]
        words = self._options.only
        return [(n, lie) for n, lie in found if not words or any(w in lie.name for w in words)]

    def _has(self, model: Model, link: Link, lie: Lie) -> bool:
        return any(row.key == (model.title, link.name, lie.name) for row in self.rows)

    def _staged(self, model: Model) -> tuple[Staged, StepPlan]:
        """The job and its honest run, made in a process of its own."""
        folder = self._folder(model)
        if not (folder / staging.INDEX).exists():
            shutil.rmtree(folder, ignore_errors=True)
            command = [sys.executable, "-m", "tests.bench.disputes.staging", model.name]
            with (self._options.out / f"staging-{model.name}.log").open("wb") as log:
                subprocess.run(
                    [*command, str(folder)], check=True, cwd=ROOT, stdout=log, stderr=log
                )
        staged = staging.load(folder)
        blob = staging.blobs(folder).read(staged.artifacts.program, MAX_PROGRAM_BYTES)
        return staged, unroll(load(blob, Limits()))

    def _folder(self, model: Model) -> Path:
        folder: Path = self._options.work / model.name
        return folder

    async def _over(
        self,
        model: Model,
        staged: Staged,
        plan: StepPlan,
        link: Link,
        missing: Sequence[tuple[int, Lie]],
        progress: Progress,
    ) -> None:
        folder = self._folder(model)
        place = folder / f"network-{link.name.replace(' ', '')}"
        shutil.rmtree(place, ignore_errors=True)
        stock = staging.blobs(folder).folder
        async with Network(place, stock, link, self._options.threads) as network:
            for number, lie in missing:
                task = progress.task_ids[0]
                words = f"{model.name}, {link.name}: {lie.name}"
                progress.update(task, description=words)
                row = await measured(network, model, staged, plan, number, lie, link.name)
                self.rows.append(row)
                self.write()
                told = " | ".join(cells(row, [seconds(row.wall_s)]))
                progress.console.print(f"{row.model}, {row.link}: {told}")
                progress.advance(task)

    def write(self) -> None:
        """Write what there is; whole files only."""
        report = {"machine": self._machine, "rows": [asdict(row) for row in self.rows]}
        part = self._json.with_suffix(".part")
        part.write_text(json.dumps(report, indent=1) + "\n")
        part.replace(self._json)
        links = {link.name: link.words for link in LINKS.values()}
        order = [model.title for model in MODELS.values()]
        rows = sorted(self.rows, key=lambda row: order.index(row.model))
        self._json.with_suffix(".md").write_text(markdown(self._machine, rows, links))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.disputes", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three lies, loopback: a look")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--links", nargs="+", choices=LINKS, default=list(LINKS))
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="these lies")
    parser.add_argument("--again", action="store_true", help="forget the rows that there are")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the reports")
    parser.add_argument(
        "--work", type=Path, default=Path("out/bench-dispute"), help="folder of jobs and processes"
    )
    options = parser.parse_args(arguments)
    options.out = options.out.resolve()
    options.work = options.work.resolve()
    return options


def main(arguments: Sequence[str]) -> int:
    """Play and tabulate."""
    options = _options(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    bench.run()
    bench.write()
    sys.stdout.write(f"written to {options.out}/bench-dispute.json and .md\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
