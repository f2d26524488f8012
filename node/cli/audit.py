"""``identic audit``: re-execute one step of a finished run, and compare."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.text import Text

from identic.kernels.arrays import Array
from identic.kernels.executor import Executor
from identic.kernels.hashing import raw_bytes
from identic.node.blobs import Blobs
from identic.node.cli import words
from identic.node.cli.computing import DeviceOption, operators
from identic.node.cli.faults import Usage
from identic.node.cli.folder import BLOBS, STORE_BYTES, RunIndex, load_index, load_receipt
from identic.node.cli.output import Answer, Lines, current
from identic.node.cli.receipt import ReceiptArgument
from identic.node.execution.loaded import LoadedJob, load_job, load_state
from identic.node.execution.states import Arrays
from identic.node.execution.training import Trainer
from identic.node.worker.devices import AUTO
from identic.proofs.receipt import Receipt
from identic.protocol.errors import LocalError, ProtocolError
from identic.protocol.ids import Digest

Difference = tuple[str, int, int]
"""Name of a tensor, elements that differ, flat position of the first."""


def audit(
    receipt: ReceiptArgument,
    step: Annotated[
        int,
        typer.Option("--step", metavar="K", min=0, help="The step from state K to state K + 1."),
    ],
    blobs: Annotated[
        Path | None,
        typer.Option("--blobs", metavar="DIR", help="Stored states.  [default: next to RECEIPT]"),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", min=0, max=1024, help="0 takes every core.")
    ] = 0,
    device: DeviceOption = AUTO,
) -> Answer:
    """Re-execute one step of a finished run and compare.

    Starts from the nearest stored state at or before K, trains to the first signed state after
    the step, and compares the two roots: every bit of every tensor. Needs the folder that
    `identic job fetch --states` makes. The exit code is 1 if the bits differ.
    """
    found = load_receipt(receipt)
    steps = int(found.terms.steps)
    if step >= steps:
        raise Usage(f"there is no step {step:,}", remedy=f"steps are numbered 0 to {steps - 1:,}")
    folder = receipt.parent
    index = load_index(folder)
    store = Blobs(blobs or folder / BLOBS, STORE_BYTES)
    job = load_job(found.terms, index.artifacts, store)
    backend = operators(device, threads, job.plan).backend
    return _audited(found, job, index, store, Trainer(job, Executor(job.plan, backend)), step)


def _audited(
    receipt: Receipt, job: LoadedJob, index: RunIndex, store: Blobs, trainer: Trainer, step: int
) -> Answer:
    terms, output = receipt.terms, current()
    mark = -(-(step + 1) // int(terms.cadence))
    last = int(terms.step_of(mark))
    start, state = _nearest(receipt, job, index, store, step)
    output.say(f"from state {start:,}, stored, its root is as signed")
    began = time.monotonic()
    state = trainer.advance(state, start, last)
    seconds = time.monotonic() - began
    output.say(f"re-executed {words.plural(last - start, 'step')} in {words.duration(seconds)}")
    root, want = job.commit(last, state).root, receipt.marks[mark]
    same = root == want
    differences = [] if same else _differences(receipt, job, index, store, mark, state)
    value = {
        "step": step,
        "from_state": start,
        "compared_state": last,
        "root": root,
        "committed": want,
        "same": same,
        "differences": [
            {"tensor": name, "elements": count, "first": first}
            for name, count, first in differences
        ],
        "seconds": seconds,
    }
    return Answer(value, _lines(step, last, root, want, differences), yes=same)


def _lines(
    step: int, last: int, root: Digest, want: Digest, differences: Sequence[Difference]
) -> Lines:
    to = "" if last == step + 1 else f", compared at state {last:,}, the next signed one"
    if root == want:
        line = Text("✓ ", style="green")
        line.append(
            f"step {step:,}→{step + 1:,} gives the signed root {want.short}{to}: all bits agree"
        )
        return [line]
    line = Text("✗ ", style="bold red")
    line.append(f"step {step:,}→{step + 1:,} gives {root.short}, signed is {want.short}{to}")
    said = [
        f"  {name}: {words.plural(count, 'element')} differ, the first at {first:,}"
        for name, count, first in differences
    ]
    only = ["  only the root was published, so the tensors cannot be told apart here"]
    doubt = (
        "  `identic doctor` says whether this machine computes rightly; if it does, the run lies"
    )
    return [line, *(said or only), doubt]


def _nearest(
    receipt: Receipt, job: LoadedJob, index: RunIndex, store: Blobs, step: int
) -> tuple[int, Arrays]:
    """Steps done at the last stored state at or before ``step``, and that state."""
    terms, refused = receipt.terms, None
    for kept in sorted(index.states, key=lambda k: k.mark, reverse=True):
        if kept.mark >= len(receipt.marks) or terms.step_of(kept.mark) > step:
            continue
        at = int(terms.step_of(kept.mark))
        try:
            return at, load_state(job, store, kept.blob, at, receipt.marks[kept.mark])
        except ProtocolError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    raise LocalError(
        f"no stored state at or before step {step:,} is here",
        remedy="fetch them with `identic job fetch JOB --states`",
    )


def _differences(
    receipt: Receipt, job: LoadedJob, index: RunIndex, store: Blobs, mark: int, ours: Arrays
) -> list[Difference]:
    """Where our state differs from the stored one with the signed root, if that is here."""
    blob = next((kept.blob for kept in index.states if kept.mark == mark), None)
    if blob is None:
        return []
    try:
        step = int(receipt.terms.step_of(mark))
        theirs = load_state(job, store, blob, step, receipt.marks[mark])
    except ProtocolError:
        # Without the state that was signed there is nothing to compare with but its root.
        return []
    pairs = zip(job.program.state, ours, theirs, strict=True)
    return [found for v, a, b in pairs if (found := _difference(v.name, a, b)) is not None]


def _difference(name: str, ours: Array, theirs: Array) -> Difference | None:
    width = ours.dtype.itemsize
    a, b = (np.frombuffer(raw_bytes(x), np.uint8).reshape(-1, width) for x in (ours, theirs))
    where = np.flatnonzero((a != b).any(axis=1))
    return (name, len(where), int(where[0])) if len(where) else None
