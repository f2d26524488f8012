"""Nodes whose data or machines are not sound: they accuse nobody, and everybody hears of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from identic.node.cli.views import job_view
from identic.node.demo.network import Member
from identic.node.participant import doubt
from identic.node.submission import Prepared
from identic.node.worker import handle
from identic.protocol.job.state import Awaiting, Job, Phase
from tests.helpers.company import Company, company, damage
from tests.network.town import GRANT

VERIFIER = Member("ann", "verifier")
WATCHER = Member("wat", "whistleblower", {"intervals": 0, "stake": "1000"})
SOLVER = Member("sol", "solver", {"max_jobs": 8, "stake": "1000"})

WRONG_KERNELS = """
import sys
from identic.node.execution import selftest
selftest.GOLDEN = "0" * 64
from identic.node.worker.main import main
sys.exit(main())
"""
"""A worker on a machine that fails the self-test."""

BAD_MEMORY = """
import pathlib, sys
from identic.node.execution.training import Trainer
from identic.node.execution.elements import with_word, word_at
from identic.node.worker.main import main
first, step = pathlib.Path(sys.argv[1]), Trainer.step
if not first.exists():
    first.touch()
    def flipped(self, state, number, observer=None, *, give=False):
        after = step(self, state, number, observer, give=give)
        if number == 5:
            after[0] = with_word(after[0], 0, word_at(after[0], 0) ^ 1)
        return after
    Trainer.step = flipped
sys.exit(main())
"""
"""A worker in whose memory a bit flips in step 5, once."""


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr(doubt, "pause_s", lambda _: 0.0)


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Company]:
    """A coordinator; a solver, a verifier and a watcher that are not started."""
    async with company(tmp_path, [SOLVER, VERIFIER, WATCHER]) as made:
        yield made


async def drawn(net: Company) -> Prepared:
    """A job whose verifier is enrolled and drawn, but not running yet."""
    await net.start("ann")
    await net.until(lambda board: net.party("ann") in board.enrolled or None)
    return await net.posted()


async def unable(net: Company, made: Prepared) -> Job:
    """The job once its verifier has given the seat back, with nobody accused."""
    job = await net.until_job(made.job, lambda now: bool(now.recused))
    board = await net.board()
    assert job.recused == (net.party("ann"),)
    assert not job.disputes
    assert job.contest is None
    assert board.ledger.balance(net.party("ann")) == GRANT
    assert board.ledger.at_risk(net.party("ann")) == 0
    return job


async def alarmed(net: Company, name: str, made: Prepared) -> str:
    """Check that a node's alarm is in its status, its numbers and on the job's screen."""
    role = await net.role(name)
    assert role.details["cannot tell"] == "1"
    said = role.details[f"alarm about {made.job.name}"]
    numbers = net.nodes[name].context.metrics.registry
    kind = {"ann": "verifier", "wat": "whistleblower"}[name]
    assert numbers.get_sample_value("identic_cannot_tell_total", {"role": kind}) == 1
    async with net.remote() as remote:
        detail = await remote.jobs.get(made.job)
        view = job_view((await net.board()).jobs[made.job], detail.parties)
    shown = [party.activity for party in view.parties if "cannot tell" in party.activity]
    assert shown == [said]
    return said


# ---- verifiers ------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [True, False])
async def test_exe_21__job_33__without_its_data_a_verifier_gives_its_seat_back(
    net: Company, missing: bool
) -> None:
    """The coordinator has lost a blob, or has other bytes under its name."""
    made = await drawn(net)
    path = net.blob("hub", made.artifacts.data[0])
    path.unlink() if missing else damage(path)
    await net.accept(made)
    await unable(net, made)
    await alarmed(net, "ann", made)


async def test_exe_20__exe_21__a_machine_that_fails_the_self_test_gives_its_seat_back(
    net: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "COMMAND", (sys.executable, "-c", WRONG_KERNELS))
    made = await drawn(net)
    await net.accept(made)
    await unable(net, made)
    await alarmed(net, "ann", made)


async def test_exe_21__a_flipped_bit_accuses_nobody(
    net: Company, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The verifier comes to another state than the honest solver, and looks again."""
    command = (sys.executable, "-c", BAD_MEMORY, str(tmp_path / "flipped"))
    monkeypatch.setattr(handle, "COMMAND", command)
    made = await drawn(net)
    await net.accept(made)
    await net.solve(made)
    await unable(net, made)
    await alarmed(net, "ann", made)
    assert (tmp_path / "flipped").exists()


async def test_exe_8__a_damaged_blob_on_its_own_disk_is_fetched_again(net: Company) -> None:
    """A verifier's own copy is broken, the coordinator's is whole: it judges as ever."""
    made = await drawn(net)
    store = net.nodes["ann"].context.blobs
    async with net.remote() as remote:
        for blob in made.blobs:
            await remote.blobs.download(store, blob, 1 << 30)
    for blob in made.artifacts.data:
        damage(net.blob("ann", blob))
    await net.accept(made)
    await net.solve(made)
    job = await net.until_job(made.job, lambda now: now.awaiting is Awaiting.WINDOW)
    assert job.attesters == (net.party("ann"),)
    assert (await net.role("ann")).details["cannot tell"] == "0"


# ---- whistleblowers and stored states -------------------------------------------------------


async def vouched(net: Company) -> Prepared:
    """An honest run that its verifier vouches for; the solver does not run."""
    made = await drawn(net)
    await net.accept(made)
    await net.solve(made)
    await net.until_job(made.job, lambda now: now.awaiting is Awaiting.WINDOW)
    return made


async def test_exe_21__without_its_data_a_whistleblower_is_silent(net: Company) -> None:
    made = await vouched(net)
    net.blob("hub", made.artifacts.data[1]).unlink()
    await net.start("wat")
    await until_alarm(net, "wat")
    await alarmed(net, "wat", made)
    job = (await net.board()).jobs[made.job]
    assert (job.phase, job.disputes) == (Phase.VERIFYING, ())


async def until_alarm(net: Company, name: str) -> None:
    """Wait until a node has given an alarm."""
    await until_shown(net, name, "cannot tell", "1")


async def until_shown(net: Company, name: str, line: str, wanted: str) -> None:
    """Wait until the status of a node has a line with these words."""
    while (await net.role(name)).details.get(line) != wanted:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.02)


async def test_job_30__job_31__a_lost_state_is_asked_for_and_stored_again(net: Company) -> None:
    """The solver has it no more either, and makes it again from the one before."""
    made = await vouched(net)
    job = (await net.board()).jobs[made.job]
    lost = next(one for one in job.stored if one.mark == 4)
    net.blob("hub", lost.blob).unlink()
    await net.start("sol")
    assert not net.blob("sol", lost.blob).exists()
    await net.start("wat")
    asked = await net.until_job(made.job, lambda now: bool(now.asked))
    assert asked.asked == (net.party("wat"),)
    await net.until_job(made.job, lambda now: bool(now.asked) and now.ask is None)
    assert net.blob("hub", lost.blob).exists()
    await until_shown(net, "wat", "audited", "3 intervals")
    assert (await net.role("wat")).details["cannot tell"] == "0"


async def test_job_31__a_solver_that_is_gone_is_late_with_a_lost_state(net: Company) -> None:
    made = await vouched(net)
    job = (await net.board()).jobs[made.job]
    damage(net.blob("hub", job.stored[0].blob))
    await net.start("wat")
    asked = await net.until_job(made.job, lambda now: now.ask is not None)
    assert asked.ask is not None
    assert asked.due_at == asked.ask.deadline
