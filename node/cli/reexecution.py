"""The disputed step once more, on this machine, beside what the two sides published.

Needs the folder of the job, as ``identic job fetch --states`` makes it: data, and a stored
state from before the step. A state is compared with the root on which both sides agreed, so
the folder is not believed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from identic.kernels import _native
from identic.kernels.backend import Backend
from identic.kernels.executor import Executor
from identic.kernels.reference_backend import ReferenceBackend
from identic.node.blobs import Blobs
from identic.node.cli import computing
from identic.node.cli.faults import Usage
from identic.node.cli.folder import BLOBS, STORE_BYTES, load_index
from identic.node.cli.screens.executed import Compared, Item, Reexecuted
from identic.node.cli.trail import Stage
from identic.node.cli.words import plural
from identic.node.execution.loaded import load_job
from identic.node.execution.rerun import Rerun
from identic.node.execution.training import Trainer
from identic.node.worker.devices import CPU
from identic.protocol.dispute.level import Level
from identic.protocol.dispute.levels import IntervalLevel, RunLevel
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.player import publish
from identic.protocol.dispute.questions import Question
from identic.protocol.dispute.setup import Setup
from identic.protocol.errors import LocalError
from identic.protocol.ids import Digest
from identic.protocol.program.plan import StepPlan

AROUND = 3
"""Items shown before and after the one that differs."""

REFERENCE = "reference"
NATIVE = "native"


def reexecute(
    setup: Setup,
    stages: Sequence[Stage],
    folder: Path,
    *,
    blobs: Path | None,
    backend: str,
    vector: str,
    threads: int,
    device: str,
) -> Reexecuted:
    """Execute the disputed step and everything that the dispute asked about it.

    Args:
        setup: what the dispute is about.
        stages: its rounds with their moves.
        folder: of the job.
        blobs: folder of data and states, where it is not in the folder of the job.
        backend: "native" or "reference".
        vector: vector path of the native operators, or "auto".
        threads: of the native operators; 0 for every core.
        device: that stands in for the native operators: "auto", "cpu", "cuda" or "cuda:N".

    Raises:
        Usage: the dispute never came to a step, or there is no such backend.
        LocalError: no stored state before the step is here, or this machine cannot compute.
        ProtocolError: a part of the job is not what its terms say (EXE-2).
    """
    asked = [s for s in stages if s.line is not None and not isinstance(s.node, RunLevel)]
    if not asked:
        raise Usage(
            "the dispute ended before it came to a step: there is nothing to execute",
            remedy="leave out --execute",
        )
    index = load_index(folder)
    store = Blobs(blobs or folder / BLOBS, STORE_BYTES)
    if backend not in {REFERENCE, NATIVE}:
        raise Usage(f"there is no backend {backend!r}", remedy=f"take {NATIVE} or {REFERENCE}")
    job = load_job(setup.terms, index.artifacts, store)
    roots = agreed_roots(setup, stages)
    stored = {int(kept.mark): kept.blob for kept in index.states if int(kept.mark) in roots}
    start = first_step(asked[0].node)
    if not any(setup.terms.step_of(mark) <= start for mark in stored):
        raise LocalError(
            f"no stored state at or before step {start:,} is here",
            remedy="fetch them with `identic job fetch JOB --states`",
        )
    unknown = Digest(bytes(32))
    known = [roots.get(mark, unknown) for mark in range(max(roots) + 1)]
    operators, words = _backend(backend, vector, threads, device, job.plan)
    rerun = Rerun(Trainer(job, Executor(job.plan, operators)), store, known, stored)
    began = time.monotonic()
    at, _ = rerun.nearest(start)
    rounds = tuple(_compared(setup, stage, rerun) for stage in asked)
    return Reexecuted(words, at, time.monotonic() - began, rounds)


def first_step(node: Level[Any] | Question) -> int:
    """Steps done at the state from which the first list follows."""
    if isinstance(node, IntervalLevel):
        return node.start
    step = node.where.step
    if step is None:
        raise RuntimeError(f"a {node.name} level without a step")
    return step


def agreed_roots(setup: Setup, stages: Sequence[Stage]) -> dict[int, Digest]:
    """State roots at the marks that both sides published alike, and that of the terms."""
    roots = {0: setup.terms.initial_state}
    for stage in stages:
        move = stage.of(Side.DEFENDER)
        if isinstance(stage.node, RunLevel) and stage.line is not None and stage.node.block == 1:
            first = stage.node.first
            agreed = move.digests[: int(stage.line.differ)]
            roots.update({first + i: root for i, root in enumerate(agreed)})
    return roots


def _compared(setup: Setup, stage: Stage, rerun: Rerun) -> Compared:
    """A round beside what this machine publishes in it."""
    level = stage.node
    if not isinstance(level, Level) or stage.line is None:
        raise RuntimeError("a question has no lists")
    lists = [
        level.items(setup, move)
        for move in (
            stage.of(Side.DEFENDER),
            stage.of(Side.CHALLENGER),
            publish(setup, level, rerun),
        )
    ]
    differ = int(stage.line.differ)
    shown = range(max(0, differ - AROUND), min(len(lists[0]), differ + AROUND + 1))
    items = tuple(
        Item(level.first + i * level.block, *(_plain(column[i]) for column in lists)) for i in shown
    )
    return Compared(stage, items, *(_first(level, column, lists[2]) for column in lists[:2]))


def _plain(item: object) -> bytes | int:
    return item if isinstance(item, bytes) else int(str(item))


def _first(level: Level[Any], theirs: Sequence[object], ours: Sequence[object]) -> int | None:
    pairs = enumerate(zip(theirs, ours, strict=True))
    index = next((i for i, (a, b) in pairs if a != b), None)
    return None if index is None else level.first + index * level.block


def _backend(
    name: str, vector: str, threads: int, device: str, plan: StepPlan
) -> tuple[Backend, str]:
    """The operators of this machine, and what they are in words."""
    if name == REFERENCE:
        return ReferenceBackend(), "the reference operators, in Python integers"
    taken = computing.operators(device, threads, plan, vector)
    if taken.device != CPU:
        return taken.backend, f"CUDA operators on {taken.device}"
    cores = plural(_native.threads(), "thread")
    return taken.backend, f"native operators on {_native.path()}, {cores}"
