"""The demonstration as a newcomer runs it, in few steps: one JSON object, and files that verify."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lint.tree import ROOT

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.long]

STEPS = 3


def identic(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command in the repository, where the demonstration's job lies."""
    command = [sys.executable, "-m", "identic.node.cli.main", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the results."""
    return tmp_path_factory.mktemp("demo") / "out"


@pytest.fixture(scope="module")
def demo(into: Path) -> dict[str, Any]:
    """What the demonstration says."""
    done = identic("demo", "--steps", STEPS, "--into", into, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_honest_run_is_settled(demo: dict[str, Any]) -> None:
    honest = demo["honest"]
    assert honest["settled"] is True
    assert len(bytes.fromhex(honest["final_root"])) == 32
    assert len(honest["losses"]) == STEPS


def test_the_lie_is_ruled_against_the_solver(demo: dict[str, Any]) -> None:
    dispute = demo["dispute"]
    assert dispute["ruling"]["verdict"] == "wrong"
    assert dispute["ruling"]["loser"] == "defender"
    assert (dispute["step"], dispute["operator"]) == (STEPS * 3 // 5, "matmul")
    assert dispute["element"] > 0
    assert 4 <= dispute["rounds"] <= 12
    assert 0 < dispute["referee_bytes"] < dispute["bytes"]
    assert "burned" in dispute["slashed"][0]


def test_what_it_leaves_verifies_offline(demo: dict[str, Any]) -> None:
    assert identic("receipt", "verify", demo["model"], demo["receipt"]).returncode == 0
    replayed = identic("dispute", "replay", demo["dispute"]["transcript"], "--json")
    assert replayed.returncode == 0
    assert json.loads(replayed.stdout)["ruling"] == "wrong"
    assert identic("audit", demo["receipt"], "--step", STEPS - 1).returncode == 0


def test_two_in_one_folder_do_not_meet(demo: dict[str, Any], into: Path) -> None:
    with (into / "lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = identic("demo", "--steps", STEPS, "--into", into)
    assert refused.returncode == 3
    assert "in use by process" in refused.stderr
    assert Path(demo["receipt"]).exists()
