"""``python -m tests.bench.disputes.staging MODEL FOLDER``: a job and its honest run on the disk.

Captures the model, trains it honestly for a few steps and keeps what every party of a dispute
would have: program, data, initial state, the states and commitments at the marks. Runs in a
process of its own, so that torch is in no other.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.execution.loaded import load_job as load_from_store
from identic.node.execution.loaded import load_state
from identic.node.execution.training import Trainer, store_state
from identic.node.submission import Conditions, prepare
from identic.protocol.encoding import decode, encode
from identic.protocol.ids import Count, Credits, Digest, Millis, PartyId, Unsigned
from identic.protocol.job.messages import Artifacts, Mark
from identic.protocol.job.terms import Clocks, JobTerms, Prices
from identic.protocol.program.cost import peak_bytes

ROOT = Path(__file__).resolve().parents[3]
STORE_BYTES = 1 << 40
INDEX = "staged"

CLOCKS = Clocks(Millis(600_000), Millis(1_200_000), Millis(300), Millis(1_200_000))
"""Nobody is late, however slow the machine, and a contest lets others in for a moment only."""

PRICES = Prices(
    solver_reward=Credits(1_000_000),
    verifier_reward=Credits(200_000),
    solver_bond=Credits(5_000_000),
    verifier_bond=Credits(1_000_000),
    challenger_bond=Credits(1_000_000),
)


@dataclass(frozen=True)
class Model:
    """A model of the table.

    Attributes:
        name: on the command line.
        title: in the table.
        target: file and function of the job.
        steps: of the run; the lie is in the last one.
        cadence: steps between two marks.
    """

    name: str
    title: str
    target: str
    steps: int
    cadence: int


MODELS = {
    m.name: m
    for m in (
        Model("gpt", "demo GPT, 0.9 M", f"{ROOT}/examples/gpt_docs.py:job", 6, 3),
        Model("resnet", "ResNet-18, 11 M", f"{Path(__file__).parent}/resnet18.py:job", 4, 2),
        Model("gpt2", "GPT-2 small, 124 M", f"{Path(__file__).parent}/gpt2_small.py:job", 2, 2),
    )
}
"""Every model, small ones first."""


@dataclass(frozen=True)
class Kept:
    """A stored state."""

    mark: Count
    blob: Digest


@dataclass(frozen=True)
class Staged:
    """A job with its honest run."""

    terms: JobTerms
    """With the submitter and the nonce of nobody."""
    artifacts: Artifacts
    marks: tuple[Mark, ...]
    """Honest commitments at marks 1, 2, ..."""
    stored: tuple[Kept, ...]
    """States at the marks, the initial one first."""
    step_us: Unsigned
    """Time of one step on this machine, in microseconds."""
    peak_bytes: Unsigned
    """Most memory that the tensors of a step take at once."""

    @property
    def roots(self) -> tuple[Digest, ...]:
        """State roots at all marks."""
        return (self.terms.initial_state, *(mark.state_root for mark in self.marks))


def blobs(folder: Path) -> Blobs:
    """The store of a staged job."""
    return Blobs(folder / "blobs", STORE_BYTES)


def load(folder: Path) -> Staged:
    """Read a staged job."""
    return decode(Staged, (folder / INDEX).read_bytes())


def stage(model: Model, folder: Path, say: Callable[[str], None]) -> Staged:
    """Capture a model and train it honestly."""
    from identic.node.capture import capture, load_job  # noqa: PLC0415 - torch, here alone

    store = blobs(folder)
    job = dataclasses.replace(load_job(model.target), steps=model.steps)
    say(f"{model.name}: capturing")
    captured = capture(job)
    conditions = Conditions(
        steps=model.steps,
        prices=PRICES,
        clocks=CLOCKS,
        seed=job.seed,
        cadence=model.cadence,
        checkpoint=1024,
        verifiers=1,
    )
    made = prepare(
        store,
        PartyId(bytes(32)),
        captured.program,
        captured.state,
        captured.data,
        conditions,
    )
    del captured, job
    return trained(model, folder, made.terms, made.artifacts, say)


def trained(
    model: Model, folder: Path, terms: JobTerms, artifacts: Artifacts, say: Callable[[str], None]
) -> Staged:
    """Run a job honestly that lies in the store of a folder, and keep what a party has."""
    store = blobs(folder)
    loaded = load_from_store(terms, artifacts, store)
    trainer = Trainer(loaded, Executor(loaded.plan, CpuBackend()))
    state = load_state(loaded, store, artifacts.state, 0, terms.initial_state)
    kept, marks = [Kept(Count(0), artifacts.state)], []
    seconds = 0.0
    for mark in range(1, terms.last_mark + 1):
        first, last = terms.step_of(mark - 1), terms.step_of(mark)
        for step in range(first, last):
            say(f"{model.name}: step {step + 1} of {terms.steps}")
            began = time.monotonic()
            state = trainer.step(state, step)
            seconds = time.monotonic() - began
        marks.append(trainer.mark(state, mark))
        if mark < terms.last_mark:
            kept.append(Kept(Count(mark), store_state(loaded, store, last, state)))
    staged = Staged(
        terms,
        artifacts,
        tuple(marks),
        tuple(kept),
        Unsigned(round(seconds * 1e6)),
        Unsigned(peak_bytes(loaded.plan)),
    )
    (folder / INDEX).write_bytes(encode(staged))
    return staged


def main(arguments: list[str]) -> int:
    """Stage one model."""
    name, folder = arguments
    Path(folder).mkdir(parents=True, exist_ok=True)
    stage(MODELS[name], Path(folder), lambda line: print(line, flush=True))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
