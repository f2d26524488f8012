"""One process that measures with one number of threads and prints a row a line, as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import torch

from identic.kernels import _native
from identic.node.bench import convolutions, operators, steps
from identic.node.bench.machine import Peak, describe
from identic.node.bench.rows import Benchmark, Row
from identic.node.bench.timing import CLOCKS, FULL, QUICK, Clock, Effort, measure
from identic.node.worker import cards
from identic.node.worker.cards import Card
from identic.node.worker.devices import CPU, number

LEFT_OUT = "training steps: examples/ is not here; run it in a clone of the repository"


def selected(
    words: Sequence[str], card: Card | None = None, *, quick: bool = False
) -> Iterator[Benchmark]:
    """The benchmarks whose name holds one of the words; all of them without words.

    A quick look takes heavy ones only by name.

    On a device whole steps are timed; figures of its kernels are made by ``tests/device``.
    """
    if card is not None:
        every = tuple(steps.on_device(card))
    else:
        every = (*steps.benchmarks(), *operators.benchmarks(), *convolutions.benchmarks())
    for benchmark in every:
        if any(word in benchmark.name for word in words) or (
            not words and not (quick and benchmark.heavy)
        ):
            yield benchmark


def rows(
    benchmark: Benchmark, effort: Effort, clock: Clock, threads: int, peak: Peak, path: str
) -> Iterator[Row]:
    """Measure a benchmark on a vector path or device; a row for each peer."""
    case = benchmark.prepare()
    times = measure(case, effort, clock, threads)
    most = peak.rate() if case.fmas else None
    share = None if most is None else case.fmas / times.ours / most
    for peer, seconds in times.peers.items():
        yield Row(
            name=benchmark.name,
            ours_s=times.ours,
            peer=peer,
            peer_s=seconds,
            ratio=times.ours / seconds,
            threads=threads,
            path=path,
            fraction_of_peak=share,
            repetitions=times.repetitions,
        )


def main(arguments: Sequence[str]) -> int:
    """Measure; the first line is the machine, each further one a row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--device", default=CPU)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    _native.set_threads(options.threads)
    effort = QUICK if options.quick else FULL
    peak = Peak(_native.path(), options.threads)
    _print({**describe(), **({} if steps.here() else {"left out": LEFT_OUT})})
    index = number(options.device)
    card = None if index is None else cards.opened(index)
    path = _native.path() if card is None else card.name
    clock = CLOCKS[options.clock]
    for benchmark in selected(options.only, card, quick=options.quick):
        for row in rows(benchmark, effort, clock, options.threads, peak, path):
            _print(asdict(row))
    return 0


def _print(value: dict[str, object] | dict[str, str]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
