"""An honest network: runs settle, whoever is killed on the way, and can be checked afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from identic.protocol.ids import JobId
from identic.protocol.job.state import Job, Phase
from identic.protocol.settlement.ledger import Issued
from tests.network.town import (
    GRANT,
    LONG,
    PRICES,
    Ask,
    Town,
    expected,
    identic,
    names,
    roots,
)

pytestmark = pytest.mark.xdist_group("honest network")

SHORT = Ask()
INTERRUPTED = Ask(steps=LONG, cadence=1, checkpoint=100)


@dataclass(frozen=True)
class Finished:
    """A settled job, and the folder that its client fetched."""

    job: Job
    folder: Path


@pytest.fixture(scope="module")
def finished(town: Town) -> Finished:
    """A short job that ran without any trouble."""
    job = asyncio.run(_through(town))
    folder = town.net.folder / "fetched"
    done = town.command("job", "fetch", job.id.name, "--into", folder, "--states")
    assert done.returncode == 0, done.stderr
    return Finished(job, folder)


async def _through(town: Town) -> Job:
    return await town.settled(await town.post(SHORT))


# ---- a run without trouble ------------------------------------------------------------------


def test_the_run_is_that_of_the_definition(finished: Finished) -> None:
    assert roots(finished.job) == expected(SHORT)
    assert finished.job.attempt == 1
    assert finished.job.disputes == ()


def test_both_verifiers_vouch_with_work_of_their_own(town: Town, finished: Finished) -> None:
    job = finished.job
    assert names(town, job.attesters) == {"ann", "bob"}
    works = {seat.verdict.work for seat in job.verifiers if seat.verdict is not None}
    assert len(works) == 2


async def test_everybody_is_paid_and_all_money_is_accounted_for(
    town: Town, finished: Finished
) -> None:
    await town.settled(finished.job.id)
    board = await town.board()
    ledger = board.ledger
    assert sum(ledger.balances.values()) == 0
    assert -ledger.of(Issued()) == GRANT * len(board.known)
    for name in ("sol", "ann", "bob"):
        paid = ledger.balance(town.party(name)) + ledger.at_risk(town.party(name)) - GRANT
        assert paid >= min(PRICES.solver_reward, PRICES.verifier_reward)


def test_the_receipt_verifies(town: Town, finished: Finished) -> None:
    model, receipt = finished.folder / "model.safetensors", finished.folder / "receipt.json"
    card = town.net.folder / "client" / "peers" / "hub.card"
    done = identic("receipt", "verify", model, receipt, "--card", card)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] is True


def test_another_model_is_refused(finished: Finished, tmp_path: Path) -> None:
    data = bytearray((finished.folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    changed = tmp_path / "model.safetensors"
    changed.write_bytes(data)
    done = identic("receipt", "verify", changed, finished.folder / "receipt.json")
    assert done.returncode == 1


@pytest.mark.parametrize("step", [0, SHORT.steps - 1])
def test_an_audited_step_gives_the_committed_root(finished: Finished, step: int) -> None:
    done = identic("audit", finished.folder / "receipt.json", "--step", str(step), "--threads", "1")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    mark = -(-(step + 1) // SHORT.cadence)
    assert said["same"] is True
    assert said["root"] == expected(SHORT)[mark].hex()


# ---- whoever is killed ----------------------------------------------------------------------


def halfway(job: Job) -> bool:
    """Whether a run has begun and is not at its end."""
    return 1 < len(job.marks) < INTERRUPTED.marks


async def started(town: Town) -> JobId:
    """Post a long job and wait until its solver has committed to some of it."""
    job = await town.post(INTERRUPTED)
    await town.until_job(job, lambda now: len(now.marks) > 1)
    return job


async def gone(pid: int) -> None:
    """Wait until a process has ended; one that nobody has waited for yet has, too."""
    process = psutil.Process(pid) if psutil.pid_exists(pid) else None
    while process is not None and process.is_running():
        if process.status() == psutil.STATUS_ZOMBIE:
            return
        await asyncio.sleep(0)


async def test_exe_9__exe_10__a_killed_solver_goes_on_to_the_same_bits(town: Town) -> None:
    job = await started(town)
    workers = town.net.workers("sol")
    # A verifier that loses its worker alone loses the work since its last stored state.
    for worker in town.net.workers("bob"):
        os.kill(worker, signal.SIGKILL)
    town.net.signal("sol", signal.SIGKILL)
    await town.net.ended("sol")
    assert halfway((await town.board()).jobs[job])
    # Its worker was in the middle of its work, and does not outlive it.
    assert workers
    for worker in workers:
        await gone(worker)
    await town.net.up("sol")
    done = await town.settled(job)
    assert roots(done) == expected(INTERRUPTED)
    assert (done.attempt, done.disputes) == (1, ())
    assert len(town.said("sol", "training")) >= 2
    assert names(town, done.attesters) == {"ann", "bob"}


async def test_exe_10__a_killed_coordinator_and_its_verifiers_go_on(town: Town) -> None:
    job = await started(town)
    # A solver that stands still cannot send the rest as soon as the coordinator is back.
    town.net.signal("sol", signal.SIGSTOP)
    town.net.kill("hub")
    town.net.kill("ann")
    # What the verifier had stored of its run is damaged as well.
    blobs = town.net.folder / "ann" / "blobs"
    for path in blobs.glob("??/*"):
        path.write_bytes(bytes(path.stat().st_size))
    # The other one is told to stop, with nobody there to talk to.
    workers = town.net.workers("bob")
    town.net.signal("bob", signal.SIGINT)
    assert await town.net.ended("bob") == 0
    for worker in workers:
        await gone(worker)
    await town.net.up("hub")
    midway = halfway((await town.board()).jobs[job])
    town.net.signal("sol", signal.SIGCONT)
    await town.net.up("ann", "bob")
    assert midway
    done = await town.settled(job)
    assert roots(done) == expected(INTERRUPTED)
    assert (done.attempt, done.disputes) == (1, ())
    assert names(town, done.attesters) == {"ann", "bob"}
    board = await town.board()
    assert sum(board.ledger.balances.values()) == 0
    assert board.jobs[job].phase is Phase.SETTLED
