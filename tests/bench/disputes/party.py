"""A party of a measured dispute: a node that plays one side, and notes what it takes.

Started like a node. ``row.json`` next to its configuration says which side it is and what it
lies about; ``told.json`` is what it notes after each move. It computes in a thread of this
process, with the code of a node's worker, so that the process's memory is that of the work.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from identic.kernels.executor import Executor
from identic.node.config import Config
from identic.node.coordinator.cases import Case
from identic.node.daemon import run
from identic.node.execution.loaded import LoadedJob, load_job
from identic.node.execution.rerun import Rerun
from identic.node.execution.training import Trainer
from identic.node.participant.base import Participant
from identic.node.participant.cases import side_of
from identic.node.role import Context, Role
from identic.node.worker.backends import native_backend
from identic.proofs.signatures import sign
from identic.protocol.commitments import RunHead, run_leaf
from identic.protocol.dispute.moves import MoveBody, SignedMove
from identic.protocol.hashing import Domain, fold
from identic.protocol.ids import Count, Digest
from identic.protocol.job.messages import AcceptJob, Commit, DisputeId, DisputeMove, Mark
from identic.protocol.job.state import Awaiting, Job, Phase
from tests.bench.disputes import staging
from tests.bench.disputes.lies import Lie, Patched, lies, told

ROW = "row.json"
TOLD = "told.json"
MEMORY_BYTES = 8 << 30
"""Memory that a party offers, as a node does unless it is told otherwise."""


class Party(Participant):
    """Plays one side of one dispute.

    Args:
        context: of the node.
        row: ``staged``: folder of the job and its honest run; ``lie``: number of the lie, or
            ``null``; ``job``: hex of the job that the row is about.
    """

    name = "party"

    def __init__(self, context: Context, row: dict[str, Any]) -> None:
        super().__init__(context)
        self._row = row
        self._staged = staging.load(Path(row["staged"]))
        self._lie: int | None = row["lie"]
        self._execution: Rerun | None = None
        self._moves: list[dict[str, Any]] = []

    def react(self) -> None:
        """Take the job or challenge it, then play."""
        for job in self.mirror.board.jobs.values():
            if job.id.hex() == self._row["job"]:
                self._serve(job)
        self.play_as(lambda opened: opened.defender, "defend", self._play)
        self.play_as(lambda opened: opened.challenger, "challenge", self._play)

    def _serve(self, job: Job) -> None:
        last = job.terms.last_mark
        if self._lie is not None:
            if job.phase is Phase.OPEN and job.attempt == 1:
                accept = partial(self._say_once, AcceptJob(job.id, job.attempt))
                self.begin(("accept", job.id), accept)
            if job.solver == self.party and job.awaiting is Awaiting.MARKS and len(job.marks) == 1:
                self.begin(("commit", job.id), partial(self._commit, job))
        elif len(job.marks) > last and job.contest is None and not job.contests:
            root = self._staged.roots[last]
            self.begin(("doubt", job.id), partial(self._doubt, job, last, root))

    async def _say_once(self, said: AcceptJob) -> None:
        await self.try_to_say(said)

    async def _doubt(self, job: Job, mark: int, root: Digest) -> None:
        await asyncio.to_thread(self._ready, job)
        await self.challenge(job, mark, root)

    async def _commit(self, job: Job) -> None:
        """Commit to the whole run, of which the last mark is a lie."""
        claimed = await asyncio.to_thread(self._ready, job)
        marks = (*self._staged.marks[:-1], claimed)
        roots = (job.terms.initial_state, *(mark.state_root for mark in marks))
        steps = (0, *(mark.step for mark in marks))
        leaves = [run_leaf(i, s, r) for i, (s, r) in enumerate(zip(steps, roots, strict=True))]
        head = RunHead(job.id, Count(len(roots)), fold(leaves))
        await self.say(Commit(job.id, job.attempt, Count(1), marks, head))

    # ---- execution ----------------------------------------------------------------------------

    def _ready(self, job: Job) -> Mark:
        """Have an execution to answer from; returns the last mark as it is claimed."""
        threads = self.context.config.threads or 1
        backend = native_backend(threads, self.context.config.vector)
        loaded = load_job(job.terms, job.artifacts, self.context.blobs)
        stored = {int(kept.mark): kept.blob for kept in self._staged.stored}
        roots, room = self._staged.roots, self._room(loaded)
        lie = None if self._lie is None else self._chosen(loaded.plan, int(job.terms.steps))
        forced = None if lie is None else lie.forced(loaded.plan)
        trainer = Trainer(loaded, Executor(loaded.plan, backend), forced)
        if lie is None:
            self._execution = Rerun(trainer, self.context.blobs, roots, stored, room)
            return self._staged.marks[-1]
        if forced is None:
            patched = Patched(trainer, self.context.blobs, roots[:-1], stored, room)
            claimed = patched.lie(lie.fault)
            self._execution = patched
            return claimed
        rerun = Rerun(trainer, self.context.blobs, roots[:-1], stored)
        claimed = trainer.mark(rerun.state_after(int(job.terms.steps)), job.terms.last_mark)
        del rerun
        if claimed.state_root == roots[-1]:
            raise RuntimeError(f"the lie about {lie.name} changes nothing")
        # What was computed to lie is not at hand in the dispute: everything is executed again.
        own = (*roots[:-1], claimed.state_root)
        self._execution = Rerun(trainer, self.context.blobs, own, stored, room)
        return claimed

    def _room(self, job: LoadedJob) -> int:
        """What a node's worker keeps to answer from: a quarter of what a step leaves."""
        needed = int(self._staged.peak_bytes) + sum(v.type.nbytes for v in job.program.state)
        return max(0, MEMORY_BYTES - needed) // 4

    def _chosen(self, plan: Any, steps: int) -> Lie:
        if self._lie is None:
            raise RuntimeError("an honest party has no lie")
        return lies(plan, steps - 1)[self._lie]

    # ---- the dispute --------------------------------------------------------------------------

    async def _play(self, job: Job, dispute: DisputeId) -> None:
        if self._execution is None:
            await asyncio.to_thread(self._ready, job)
        forget_peak()
        seen, moved = -1, -1
        while True:
            case = await self.until(partial(self._news, dispute, seen))
            if case.over or case.void:
                return
            seen = len(case.moves)
            side, turn = side_of(case, self.party), int(case.dispute.turn)
            # The entry of one's own move comes later than the answer to it.
            if side is not None and side in case.dispute.due and turn > moved:
                await self._move(case)
                moved = turn

    async def _move(self, case: Case) -> None:
        side, execution = side_of(case, self.party), self._execution
        if side is None or execution is None:
            raise RuntimeError("nothing to move with")
        level = case.dispute.level
        began, used = time.monotonic(), time.process_time()
        move = await asyncio.to_thread(told, case.dispute, side, execution)
        wall, cpu = time.monotonic() - began, time.process_time() - used
        if move is None:
            return
        body = MoveBody(Digest(case.id), case.dispute.turn, self.party, move)
        signed = SignedMove(body, sign(self.context.identity.signing_key, Domain.MOVE, body))
        name = level.name if level is not None else "evidence"
        self._note(name, wall, cpu)
        await self.try_to_say(DisputeMove(case.id, signed))

    def _news(self, dispute: DisputeId, seen: int) -> Case | None:
        case = self.mirror.board.cases.get(dispute)
        if case is None:
            return None
        return case if case.over or case.void or len(case.moves) > seen else None

    def _note(self, level: str, wall: float, cpu: float) -> None:
        self._moves.append({"level": level, "wall_s": wall, "cpu_s": cpu})
        found = {"moves": self._moves, "peak_bytes": peak_bytes()}
        path = self.context.config.data_path / TOLD
        path.write_text(json.dumps(found))


def forget_peak() -> None:
    """Let the largest resident set of this process begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Largest resident set of this process since then."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def make(context: Context) -> Role:
    """Make the role."""
    row = json.loads((context.config.data_path / ROW).read_text())
    return Party(context, row)


if __name__ == "__main__":
    config = Config.load(Path(sys.argv[sys.argv.index("--config") + 1]))
    run(config, {"solver": make, "whistleblower": make})
