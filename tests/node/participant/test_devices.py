"""Nodes whose device fails in the middle of their work: nobody is accused, nobody is slashed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from identic.node.demo.network import Member
from identic.node.participant import base
from identic.node.worker import handle
from identic.node.worker.handle import Worker
from identic.protocol.job.state import Phase
from tests.helpers.cards import worker
from tests.helpers.company import ASK, Company, company
from tests.network.town import GRANT, expected

SOLVER = Member("sol", "solver", {"max_jobs": 8, "stake": "1000"})
VERIFIER = Member("ann", "verifier")
WATCHER = Member("wat", "whistleblower", {"intervals": 0, "stake": "1000"})


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Company]:
    """A coordinator; a solver, a verifier and a watcher that are not started."""
    async with company(tmp_path, [SOLVER, VERIFIER, WATCHER]) as made:
        yield made


@pytest.mark.parametrize(("card", "device"), [("Vanishing(at=5)", "auto"), ("Small()", "cuda")])
async def test_exe_23__exe_24__job_33__a_verifier_without_its_device_gives_its_seat_back(
    net: Company, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, card: str, device: str
) -> None:
    """It vanishes in the middle of a step, or has no room for the job."""
    monkeypatch.setattr(handle, "COMMAND", worker(card, tmp_path / "none"))
    monkeypatch.setenv("IDENTIC_DEVICE", device)
    await net.start("ann")
    await net.until(lambda board: net.party("ann") in board.enrolled or None)
    made = await net.posted()
    await net.accept(made)
    await net.solve(made)
    job = await net.until_job(made.job, lambda now: bool(now.recused))
    assert job.recused == (net.party("ann"),)
    assert not job.disputes
    board = await net.board()
    assert board.ledger.balance(net.party("ann")) == GRANT
    assert board.ledger.at_risk(net.party("ann")) == 0
    assert (await net.role("ann")).details["cannot tell"] == "1"


async def test_exe_23__a_solver_stops_with_its_device_and_goes_on_without_it(
    net: Company, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it committed to before the fault, and the rest from the CPU, are one honest run."""
    monkeypatch.setattr(base, "FIRST_PAUSE_S", 0.0)
    command = worker("Vanishing(at=5)", tmp_path / "gone", once=True)
    monkeypatch.setattr(handle, "COMMAND", command)
    await net.start("sol")
    made = await net.posted()
    job = await net.until_job(made.job, lambda now: now.finish is not None)
    assert tuple(record.state_root for record in job.marks) == expected(ASK)
    role = await net.role("sol")
    assert role.details["cannot tell"] == "1"
    assert "solver" in role.details[f"alarm about {made.job.name}"]
    assert (tmp_path / "gone").exists()


async def test_exe_24__a_job_is_not_taken_for_a_device_without_room(
    net: Company, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused: list[str] = []
    entered = Worker.__aenter__

    async def noted(self: Worker) -> Worker:
        try:
            return await entered(self)
        except Exception as error:
            refused.append(str(error))
            raise

    monkeypatch.setattr(Worker, "__aenter__", noted)
    monkeypatch.setattr(handle, "COMMAND", worker("Small()", tmp_path / "none"))
    monkeypatch.setenv("IDENTIC_DEVICE", "cuda:0")
    await net.start("sol")
    made = await net.posted()
    while not refused:
        await net.until(lambda _: True)
    assert "needs 2 KiB" in refused[0]
    assert (await net.board()).jobs[made.job].phase is Phase.OPEN
