"""Plays one dispute between processes, and collects what it took."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from identic.node.blobs import Blobs
from identic.node.cli.reading import LogReader
from identic.node.coordinator.cases import Case
from identic.node.rpc.remote import Remote
from identic.node.submission import Prepared, post
from identic.proofs.transcript import MAX_TRANSCRIPT_BYTES
from identic.protocol.dispute.bounds import course
from identic.protocol.ids import Digest
from identic.protocol.job.entries import DisputeOpened, Ruled
from identic.protocol.job.terms import JobTerms, job_id
from identic.protocol.program.plan import StepPlan
from tests.bench.disputes.lies import Lie
from tests.bench.disputes.network import DOUBTER, HUB, LIAR, ROOT, Network
from tests.bench.disputes.party import ROW, TOLD
from tests.bench.disputes.rows import Row
from tests.bench.disputes.staging import Model, Staged

LONGEST_S = 1_800.0
"""Longest wait for a ruling, in seconds."""


@dataclass(frozen=True)
class Ended:
    """A dispute with its ruling.

    Attributes:
        case: as the log tells it.
        coordinator_cpu_s: time on the coordinator's processor between opening and ruling.
    """

    case: Case
    coordinator_cpu_s: float


async def measured(
    network: Network, model: Model, staged: Staged, plan: StepPlan, number: int, lie: Lie, link: str
) -> Row:
    """Play the dispute about lie ``number`` and make its row."""
    terms = replace(
        staged.terms,
        submitter=network.identity("client").party,
        nonce=Digest(secrets.token_bytes(32)),
    )
    for name, own in ((LIAR, number), (DOUBTER, None)):
        folder = network.folder / name
        (folder / TOLD).unlink(missing_ok=True)
        staged_at = str(network.folder.parent)
        row = {"staged": staged_at, "lie": own, "job": job_id(terms).hex()}
        (folder / ROW).write_text(json.dumps(row))
    store = Blobs(network.folder / "client" / "blobs", 1 << 40)
    try:
        await network.up(LIAR, DOUBTER)
        async with network.connect() as connection:
            remote = Remote(connection)
            await post(remote, network.identity("client"), store, _prepared(terms, staged))
            ended = await asyncio.wait_for(_ruling(network, remote, store, terms), LONGEST_S)
            if ended.case.transcript is None:
                raise RuntimeError("a ruling without a transcript")
            await remote.blobs.download(store, ended.case.transcript, MAX_TRANSCRIPT_BYTES)
    finally:
        for name in (LIAR, DOUBTER):
            if network.running(name):
                await network.halt(name)
    path = store.path(ended.case.transcript)
    referee = _referee(path)
    told = [json.loads((network.folder / name / TOLD).read_text()) for name in (LIAR, DOUBTER)]
    return _row(model, staged, plan, lie, link, ended, referee, told)


def _prepared(terms: JobTerms, staged: Staged) -> Prepared:
    """The job, whose parts every process has already: nothing is sent for it."""
    parts = ("program", "state", *(f"data {i}" for i in range(len(staged.artifacts.data))))
    return Prepared(terms, staged.artifacts, tuple((part, 0) for part in parts))


async def _ruling(network: Network, remote: Remote, store: Blobs, terms: JobTerms) -> Ended:
    """Follow the log to the ruling about a job."""
    reader, job = LogReader(remote, store), job_id(terms)
    before = 0.0
    async for entry in reader.follow():
        event = entry.event
        if isinstance(event, DisputeOpened) and event.job == job:
            before = network.cpu_s(HUB)
        if isinstance(event, Ruled) and event.job == job:
            spent = network.cpu_s(HUB) - before
            return Ended(reader.board.case(event.dispute), spent)
    raise RuntimeError("the log has ended")


def _referee(path: Path) -> dict[str, Any]:
    """What a ruling takes, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.disputes.referee", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    if found["heavy"]:
        raise RuntimeError(f"the referee's process has {found['heavy']}")
    return found


def _row(
    model: Model,
    staged: Staged,
    plan: StepPlan,
    lie: Lie,
    link: str,
    ended: Ended,
    referee: dict[str, Any],
    told: list[dict[str, Any]],
) -> Row:
    dispute = ended.case.dispute
    ruling = dispute.ruling
    if ruling is None or ruling.loser is None:
        raise RuntimeError(f"the dispute about {lie.name} found nobody wrong")
    setup = dispute.setup
    found = course(setup.terms, plan, lie.fault, marks=setup.marks)
    if len(found.rounds) != len(ruling.rounds):
        raise RuntimeError(f"{len(ruling.rounds)} rounds about {lie.name}, not {len(found.rounds)}")
    planned = plan.call(lie.fault.value) if lie.fault.value is not None else None
    spent = [sum(move["wall_s"] for move in side["moves"]) for side in told]
    cpu = [sum(move["cpu_s"] for move in side["moves"]) for side in told]
    return Row(
        model=model.title,
        link=link,
        lie=lie.name,
        operator=planned.call.op.name if planned else "",
        level=ruling.rounds[-1].level,
        rule=ruling.rule,
        rounds=len(ruling.rounds),
        liar_bytes=referee["defender_bytes"],
        honest_bytes=referee["challenger_bytes"],
        wall_s=(int(ruling.at) - int(setup.opening.at)) / 1000,
        rerun_s=max(spent),
        rerun_cpu_s=max(cpu),
        steps_again=found.again,
        step_s=int(staged.step_us) / 1e6,
        coordinator_cpu_s=ended.coordinator_cpu_s,
        referee_ms=referee["referee_ms"],
        evidence_bytes=int(ruling.read_bytes),
        memory_bytes=max(side["peak_bytes"] for side in told),
        load=os.getloadavg()[0],
    )
