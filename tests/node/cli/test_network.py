"""Every command against a real network of processes: one job from posting to audit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from identic.node.blobs import Blobs
from identic.node.cli.folder import BLOBS, INDEX, RunIndex
from identic.node.cli.places import Places
from identic.node.demo.network import LocalNetwork, Member
from identic.node.demo.run import chosen_lie
from identic.node.identity import Identity
from identic.proofs import json_form
from identic.protocol.program.codec import MAX_PROGRAM_BYTES, load
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits
from tests.lint.tree import ROOT
from tests.node.cli.conftest import Command, Ran, process

STEPS = 6
MEMBERS = (
    Member("coordinator", "coordinator"),
    Member("solver", "solver"),
    Member("verifier", "verifier"),
)
JOB = f"{ROOT / 'examples' / 'digits_mlp.py'}:job"

pytestmark = pytest.mark.xdist_group("network")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNetwork]:
    """A running network; its folder also has the client's configuration."""
    folder = tmp_path_factory.mktemp("network")
    network = LocalNetwork(folder, MEMBERS)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(network.__aenter__())
    (folder / "client.toml").write_text(
        'name = "client"\ndata_dir = "client"\n[network]\n'
        f'coordinator = "{network.address("coordinator")}"\n'
        'card = "coordinator/coordinator.card"\n'
    )
    yield network
    loop.run_until_complete(network.__aexit__(None, None, None))
    loop.close()


@pytest.fixture(scope="module")
def config(network: LocalNetwork) -> Path:
    return network.folder / "client.toml"


@pytest.fixture(scope="module")
def submitted(config: Path) -> Ran:
    """One job, submitted and watched to its end by a process of its own."""
    limits = ("--steps", STEPS, "--verifiers", 1, "--window", 1, "--cadence", 2)
    return process("job", "submit", JOB, *limits, "--config", config, "--watch", "--json")


@pytest.fixture
def name(submitted: Ran) -> str:
    """The job's name."""
    assert submitted.code == 0, submitted.err
    return str(submitted.value["name"])


@pytest.fixture(scope="module")
def fetched(submitted: Ran, config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the finished job."""
    folder = tmp_path_factory.mktemp("fetched")
    job = submitted.value["name"]
    ran = process("job", "fetch", job, "--into", folder, "--states", "--config", config, "--json")
    assert ran.code == 0, ran.err
    assert Path(ran.value["receipt"]) == folder / "receipt.json"
    return folder


def test_a_job_is_captured_checked_uploaded_posted_and_settled(submitted: Ran) -> None:
    assert submitted.code == 0, submitted.err
    value = submitted.value
    assert value["phase"] == "settled"
    assert len(value["losses"]) == STEPS // 2
    assert [v["verdict"] for v in value["verifiers"]] == ["agrees"]
    for word in ("captured", "program", "checked", "needs", "uploaded", "job "):
        assert any(line.startswith(word) for line in submitted.err.splitlines()), word
    assert "\x1b" not in submitted.err


def test_the_board_lists_and_shows_it(name: str, config: Path, identic: Command) -> None:
    jobs = identic("job", "list", "--config", config, "--json").value["jobs"]
    assert [job["phase"] for job in jobs] == ["settled"]
    assert not identic("job", "list", "--phase", "open", "--config", config, "--json").value["jobs"]
    shown = identic("job", "show", name, "--config", config)
    assert shown.code == 0
    assert f"identic job fetch {name}" in shown.out
    value = identic("job", "show", name, "--config", config, "--json").value
    assert value["committed_step"] == STEPS
    assert identic("job", "show", value["job"], "--config", config).code == 0


def test_watching_what_is_over_ends_at_once(name: str, config: Path, identic: Command) -> None:
    ran = identic("job", "watch", name, "--config", config)
    assert ran.code == 0
    assert f"✓ {name} is settled" in ran.out


def test_the_ledger_sums_to_zero_and_everyone_is_paid(
    submitted: Ran, config: Path, identic: Command
) -> None:
    assert submitted.code == 0
    value = identic("ledger", "show", "--config", config, "--json").value
    assert (value["total"], value["escrow"], value["burned"]) == (0, 0, 0)
    balances = [party["balance"] for party in value["parties"].values()]
    assert sum(balances) == value["issued"]
    assert len(set(balances)) > 1
    assert all(party["at_risk"] == 0 for party in value["parties"].values())
    assert "(you)" in identic("ledger", "show", "--config", config).out


def test_the_model_is_verified_offline(fetched: Path, network: LocalNetwork) -> None:
    card = network.folder / "coordinator" / "coordinator.card"
    files = (fetched / "model.safetensors", fetched / "receipt.json")
    ran = process("receipt", "verify", *files, "--card", card, "--json")
    assert ran.code == 0, ran.out
    assert not any("trust" in text for text in ran.value["not_checked"])


@pytest.mark.parametrize("step", [0, STEPS - 1])
def test_any_step_is_re_executed_offline(step: int, fetched: Path, identic: Command) -> None:
    ran = identic("audit", fetched / "receipt.json", "--step", step, "--json")
    assert ran.code == 0, ran.err
    assert ran.value["same"]


def test_a_node_tells_how_it_fares(network: LocalNetwork, config: Path, identic: Command) -> None:
    own = identic("node", "status", "--config", network.config("coordinator"), "--json")
    assert own.code == 0
    assert [role["name"] for role in own.value["status"]["roles"]] == ["coordinator"]
    card = network.folder / "solver" / "solver.card"
    other = identic("node", "status", network.address("solver"), "--card", card, "--config", config)
    assert other.code == 0
    assert "✓ running" in other.out


def test_there_are_no_disputes_and_unknown_names_are_explained(
    name: str, config: Path, identic: Command
) -> None:
    assert identic("dispute", "list", "--job", name, "--config", config).out == "no disputes\n"
    for noun in ("job", "dispute"):
        ran = identic(noun, "show", "x-ffffff", "--config", config)
        assert ran.code == 3
        assert f"identic {noun} list" in ran.err


@pytest.mark.long
def test_a_job_that_costs_more_than_there_is_is_refused(config: Path) -> None:
    ran = process(
        "job", "submit", JOB, "--steps", 2, "--reward", 100_000, "--config", config, "--json"
    )
    assert ran.code == 1
    assert ran.value["error"]["code"] == "insufficient"
    assert "identic ledger show" in ran.err


def test_terms_outside_the_limits_are_refused_before_anything_is_sent(config: Path) -> None:
    ran = process("job", "submit", JOB, "--reward", "1e12", "--config", config, "--json")
    assert ran.code == 1
    assert ran.value["error"]["rule"] in {"JOB-1", "ENC-2"}


def test_a_stranger_is_told_how_to_become_known(
    network: LocalNetwork, tmp_path: Path, identic: Command
) -> None:
    Identity.create(tmp_path / "stranger", "stranger")
    ran = identic(
        "job", "list",
        "--coordinator", network.address("coordinator"),
        "--card", network.folder / "coordinator" / "coordinator.card",
        "--identity", tmp_path / "stranger",
    )  # fmt: skip
    assert ran.code == 3
    assert "does not know this identity" in ran.err
    assert "stranger.card" in ran.err


def lie_about(folder: Path) -> dict[str, object]:
    """A forced error in the middle of the job's first matrix product, at its last step."""
    index = json_form.parse(RunIndex, (folder / INDEX).read_text())
    blob = Blobs(folder / BLOBS, 1 << 30).read(index.artifacts.program, MAX_PROGRAM_BYTES)
    lie = chosen_lie(unroll(load(blob, Limits())), Places(), STEPS)
    return {**lie.settings()["forced_error"], "step": STEPS - 1}  # type: ignore[dict-item]


@pytest.fixture(scope="module")
def disputed(fetched: Path, network: LocalNetwork, config: Path) -> Iterator[dict[str, object]]:
    """The same job with a lying solver: the dispute in the list once it is ruled."""
    network.change("solver", {"forced_error": lie_about(fetched)})
    loop = asyncio.new_event_loop()
    loop.run_until_complete(network.halt("solver"))
    network.start("solver")
    loop.run_until_complete(network.ready("solver"))
    loop.close()
    limits = ("--steps", STEPS, "--verifiers", 1, "--window", 60)
    posted = process("job", "submit", JOB, *limits, "--config", config, "--json")
    assert posted.code == 0, posted.err
    end = time.monotonic() + 120
    while time.monotonic() < end:
        listed = process(
            "dispute", "list", "--job", posted.value["name"], "--config", config, "--json"
        )
        found = listed.value["disputes"]
        if found and found[0]["verdict"]:
            yield {**found[0], "job_name": posted.value["name"]}
            return
    pytest.fail("no ruling")


def test_a_lie_is_ruled_against_its_solver(
    disputed: dict[str, object], config: Path, identic: Command, tmp_path: Path
) -> None:
    name = f"d-{str(disputed['dispute_id'])[:6]}"
    value = identic("dispute", "show", name, "--config", config, "--json").value
    assert (value["ruling"], value["loser"]) == ("wrong", "defender")
    assert (value["step"], value["operator"]) == (STEPS - 1, "matmul")
    assert value["claims"]["computed"] == value["claims"]["challenger"]
    kept = tmp_path / "kept.identic"
    shown = identic("dispute", "show", name, "--save", kept, "--config", config).out
    assert f"identic dispute replay {kept}" in shown
    assert identic("dispute", "replay", kept, "--json").value["ruling"] == "wrong"
    for part in ("the solver s-", "digits_mlp.py", "fma( a, b, acc )", "slashed", "burned"):
        assert part in shown
    assert identic("dispute", "list", "--open", "--config", config).out == "no disputes\n"


def test_the_liar_pays_and_the_job_is_open_again(
    disputed: dict[str, object], config: Path, identic: Command
) -> None:
    job = identic("job", "show", disputed["job_name"], "--config", config, "--json").value
    assert (job["phase"], job["attempt"]) == ("open", 2)
    assert job["disputes"] == [disputed["dispute_id"]]
    ledger = identic("ledger", "show", "--config", config, "--json").value
    assert ledger["total"] == 0
    assert ledger["burned"] > 0
    fetched = identic("job", "fetch", disputed["job_name"], "--config", config)
    assert fetched.code == 3
    assert "not settled yet" in fetched.err


@pytest.mark.long
def test_ctrl_c_ends_the_watching_and_not_the_job(config: Path, network: LocalNetwork) -> None:
    posted = process(
        "job", "submit", JOB, "--steps", 2, "--verifiers", 8, "--config", config, "--json"
    )
    assert posted.code == 0, posted.err
    name = posted.value["name"]
    # A runner in the background of a script ignores the signal, and its children with it.
    heard = ("env", "--default-signal=INT", sys.executable)
    command = [*heard, "-m", "identic.node.cli.main", "job", "watch", name]
    with subprocess.Popen(
        [*command, "--config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    ) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith(name)
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate()
    assert watching.returncode == 130
    assert f"{name} goes on" in out
    assert f"identic job watch {name}" in out
    assert "Traceback" not in err
    assert network.folder.exists()
