"""``identic demo``: an honest run and a lie, on a network of processes on this machine.

1. The job of ``examples/gpt_docs.py`` is captured and compared with torch.
2. Coordinator, solver, two verifiers and a whistleblower start as processes of their own.
3. The job is trained, re-executed by both verifiers, and settled; model, receipt and all that
   an audit needs are fetched.
4. The solver is started again with one forced error: one fused multiply-add of one element
   is wrong. The same job is posted; the lie is found, ruled on, and paid for.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import identic
from identic.node.cli import files, places, submitting, words
from identic.node.cli.client import Client
from identic.node.cli.fetching import bring
from identic.node.cli.folder import DISPUTES, MODEL, RECEIPT
from identic.node.cli.job import Known
from identic.node.cli.output import Answer, Output
from identic.node.cli.submitting import Prepared, Wishes
from identic.node.cli.watching import Watch, Watched
from identic.node.demo.network import LocalNetwork, Member
from identic.node.participant.runs import float_of
from identic.node.rpc.remote import Remote
from identic.node.storage.disk import FolderLock
from identic.proofs.transcript import MAX_TRANSCRIPT_BYTES
from identic.protocol.dispute.state import Ruling
from identic.protocol.errors import LocalError
from identic.protocol.ids import Digest
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.state import Job, Phase
from identic.protocol.ops.folds import Nested
from identic.protocol.program.plan import Part, StepPlan

EXAMPLE: Final = Path("examples/gpt_docs.py")
MODULE: Final = "blocks.2.mlp"
"""Module of the model whose first matrix product is falsified."""

FLIP: Final = 1 << 23
"""The lowest bit of the exponent: the wrong partial sum is twice or half the right one."""

WISHES: Final = Wishes(verifiers=2, move_s=60.0, rerun_s=180.0, window_s=4.0, budget_s=180.0)

MEMBERS: Final = (
    Member("coordinator", "coordinator"),
    Member("solver", "solver"),
    Member("verifier-1", "verifier"),
    Member("verifier-2", "verifier"),
    Member("whistleblower", "whistleblower"),
)


def run(output: Output, *, steps: int, into: Path) -> Answer:
    """Run the demonstration.

    Args:
        output: where progress and the answer go.
        steps: training steps of each job.
        into: folder of the results; what an earlier demonstration left there is replaced.

    Raises:
        LocalError: a node does not come up, or another demonstration uses the folder.
    """
    lock = FolderLock.take(into)
    try:
        return asyncio.run(_Demo(output, steps, into).run())
    finally:
        lock.release()


@dataclass(frozen=True)
class Lie:
    """Where the solver is to be wrong."""

    step: int
    value: int
    element: int
    path: tuple[int, ...]

    def settings(self) -> Mapping[str, object]:
        """The key of the solver's section."""
        error = {"step": self.step, "value": self.value, "element": self.element}
        return {"forced_error": {**error, "path": list(self.path), "flip": FLIP}}


class _Demo:
    """One demonstration."""

    def __init__(self, output: Output, steps: int, into: Path) -> None:
        self._output = output
        self._steps = steps
        self._into = into
        self._network = LocalNetwork(into / "network", MEMBERS)

    async def run(self) -> Answer:
        began, say = time.monotonic(), self._output.say
        for left in ("network", "blobs", DISPUTES):
            shutil.rmtree(self._into / left, ignore_errors=True)
        prepared = submitting.prepare(f"{example()}:job", self._steps, self._output)
        say("network    starting coordinator, solver, two verifiers and a whistleblower")
        async with self._network as network:
            client = self._client()
            say(f"           5 processes on loopback, mutual TLS, logs under {network.folder}")
            say()
            say("── an honest run ──")
            honest = await self._job(prepared, client)
            await self._fetch(client, honest)
            say()
            say("── the same job, and a solver that lies ──")
            notes = prepared.captured.notes
            spots = places.of_plan(prepared.plan, notes.gradient, notes.update)
            await self._corrupt(chosen_lie(prepared.plan, spots, self._steps))
            lying = await self._job(prepared, client, until=caught)
            transcript = await self._transcript(client, lying)
        say(f"all in {words.duration(time.monotonic() - began)}")
        return self._answer(honest, lying, transcript)

    def _client(self) -> Client:
        network = self._network
        name = network.coordinator
        return Client(
            network.address(name),
            network.identity(name).card,
            network.identity("client"),
            network.folder / "client",
        )

    async def _job(
        self, prepared: Prepared, client: Client, until: Callable[[Job], bool] | None = None
    ) -> Watched:
        """Post the job and follow it."""
        terms = submitting.terms_of(prepared, client, WISHES)
        async with self._network.connect() as connection:
            remote = Remote(connection)
            job = await submitting.post(remote, client, prepared, terms, self._output)
            self._output.say(f"job        {job.name} posted, escrow {words.money(terms.escrow)}")
            spots = places.load(places.path_of(client.folder, job))
            kept = self._into / DISPUTES
            watch = Watch(remote, client.blobs, job, self._output, spots, kept)
            return await watch.run(until or (lambda job: job.phase.over))

    async def _fetch(self, client: Client, honest: Watched) -> None:
        """Bring model, receipt, states and program into the folder."""
        if honest.job.phase is not Phase.SETTLED:
            raise LocalError(
                f"the honest job ended {honest.job.phase.value}",
                remedy=f"see the logs under {self._network.folder}",
            )
        async with self._network.connect() as connection:
            remote = Remote(connection)
            detail = await remote.jobs.get(Digest(honest.job.id))
            known = Known(honest.reader, honest.job, detail)
            brought = await bring(remote, client, known, self._into, self._output, states=True)
        for line in brought.screen:
            self._output.say(line)

    async def _corrupt(self, lie: Lie) -> None:
        """Start the solver again with a forced error in its configuration."""
        network = self._network
        await network.halt("solver")
        network.change("solver", lie.settings())
        network.start("solver")
        await network.ready("solver")

    async def _transcript(self, client: Client, lying: Watched) -> Path | None:
        """Bring the dispute's transcript into the folder."""
        case = case_of(lying)
        if case is None:
            return None
        (name, digest) = case
        path = self._into / DISPUTES / f"{name}.identic"
        async with self._network.connect() as connection:
            store = client.blobs
            await Remote(connection).blobs.download(store, digest, MAX_TRANSCRIPT_BYTES)
            files.write(path, store.read(digest, MAX_TRANSCRIPT_BYTES))
        return path

    # ---- the answer -------------------------------------------------------------------------

    def _answer(self, honest: Watched, lying: Watched, transcript: Path | None) -> Answer:
        job = honest.job
        settled, ruling = job.phase is Phase.SETTLED, ruling_of(lying)
        wrong = ruling is not None and ruling.verdict is Verdicts.WRONG
        model, receipt = self._into / MODEL, self._into / RECEIPT
        value = {
            "honest": {
                "settled": settled,
                "final_root": job.marks[-1].state_root,
                "losses": [float_of(mark.loss) for mark in job.marks[1:]],
            },
            "dispute": dispute_value(lying, ruling, transcript),
            "model": model,
            "receipt": receipt,
        }
        lines = [
            "",
            f"verify the model offline:    identic receipt verify {model} {receipt}",
            f"re-execute any step here:    identic audit {receipt} --step {self._steps * 2 // 3}",
            f"judge the dispute again:     identic dispute replay {transcript}",
        ]
        return Answer(value, lines, yes=settled and wrong)


def example() -> Path:
    """The demonstration's job, in this folder or beside the package.

    Raises:
        LocalError: it is in neither place.
    """
    beside = Path(identic.__file__).resolve().parents[2] / EXAMPLE
    for path in (EXAMPLE, beside):
        if path.is_file():
            return path
    raise LocalError(
        f"{EXAMPLE} is not here", remedy="run the demonstration in a clone of the repository"
    )


def caught(job: Job) -> bool:
    """Whether the attempt with the lie is over, one way or the other."""
    return job.phase.over or (job.attempt > 1 and job.contest is None)


def chosen_lie(plan: StepPlan, spots: places.Places, steps: int) -> Lie:
    """An element of the first matrix product of a module's forward pass, in mid-run.

    The element lies in the middle of the result, the wrong step in the middle of its chain.
    """
    products = [
        number
        for number, call in enumerate(plan.calls, start=len(plan.loads))
        if call.call.op.name == "matmul" and call.part is Part.GRADIENT and call.shard == 0
    ]
    value = next((n for n in products if spots.get(n, "").startswith(MODULE)), products[0])
    planned = plan.calls[value - len(plan.loads)].call
    element = planned.output.elements * 2 // 5
    fold, path = planned.op.fold(planned, element), []
    while True:
        index = min(fold.length - 1, 88)
        entry = fold.entry(index)
        path.append(index)
        if not isinstance(entry, Nested):
            return Lie(steps * 3 // 5, value, element, tuple(path))
        fold = entry.fold


def case_of(lying: Watched) -> tuple[str, Digest] | None:
    """Name and transcript of the dispute about the lie."""
    for name in lying.job.disputes:
        transcript = lying.reader.board.case(name).transcript
        if transcript is not None:
            return name.name, transcript
    return None


def ruling_of(lying: Watched) -> Ruling | None:
    """The ruling on the lie."""
    for name in lying.job.disputes:
        case = lying.reader.board.case(name)
        if case.transcript is not None:
            return case.dispute.ruling
    return None


def dispute_value(
    lying: Watched, ruling: Ruling | None, transcript: Path | None
) -> dict[str, object] | None:
    """The dispute as a JSON value."""
    if ruling is None:
        return None
    plan = lying.reader.board.case(lying.job.disputes[0]).dispute.setup.plan
    planned = plan.call(ruling.value) if ruling.value is not None else None
    loser = None if ruling.loser is None else ruling.loser.name.lower()
    return {
        "ruling": {"verdict": ruling.verdict, "loser": loser, "rule": ruling.rule},
        "step": ruling.step,
        "operator": planned.call.op.name if planned else None,
        "element": ruling.element,
        "rounds": len(ruling.rounds),
        "bytes": sum(r.defender_bytes + r.challenger_bytes for r in ruling.rounds),
        "referee_bytes": ruling.read_bytes,
        "slashed": lying.rulings[0].money if lying.rulings else (),
        "transcript": transcript,
    }
