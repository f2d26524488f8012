"""From a user's file to a refusal or to terms; nothing here leaves the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from identic.node.cli.client import Client
from identic.node.cli.output import Output
from identic.node.cli.submitting import Prepared, Wishes, prepare, terms_of
from identic.node.execution.loaded import load_job, load_state
from identic.node.identity import Identity
from identic.node.submission import pack
from identic.protocol.errors import ProtocolError
from identic.protocol.ids import Millis
from identic.protocol.job.terms import MAX_CADENCE, Clocks
from tests.lint.tree import ROOT
from tests.node.cli.conftest import Command

EXAMPLE = ROOT / "examples" / "digits_mlp.py"

BAD = """
import numpy as np
import torch
from torch import nn

import identic

print("said by the file")


def branches(model, x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    if loss.item() > 10:
        loss = loss * 2
    return loss


def job(loss=branches):
    rows = identic.Rows(np.zeros((8, 4), np.float32), np.zeros(8, np.int64), batch=4)
    return identic.TrainingJob(nn.Linear(4, 3), loss, identic.SGD(), rows, steps=3)


def plain():
    return job(lambda model, x, y: nn.functional.cross_entropy(model(x), y))


def dataset():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)).eval()
    items = torch.utils.data.TensorDataset(torch.randn(9, 4), torch.zeros(9, dtype=torch.int64))
    groups = [{"params": [p]} for p in model.parameters()]
    optimizer = torch.optim.Adam(groups, lr=0.1)
    return identic.TrainingJob(
        model,
        lambda model, x, y: nn.functional.cross_entropy(model(x), y),
        optimizer,
        identic.Examples(items, batch=3),
        steps=4,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
    )


def raises():
    raise KeyError("missing")


def nothing():
    return 3
"""


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.py"
    path.write_text(BAD)
    return path


def test_control_flow_on_values_is_refused_with_its_line(bad: Path, identic: Command) -> None:
    ran = identic("job", "check", f"{bad}:job")
    assert ran.code == 1
    assert "bad.py:13   if loss.item() > 10:" in ran.err
    assert "torch.where" in ran.err
    value = identic("job", "check", f"{bad}:job", "--json").value["error"]
    assert (value["rule"], value["file"], value["line"]) == ("CAP-2", "bad.py", 13)


@pytest.mark.parametrize("name", ["raises", "nothing", "absent"])
def test_what_is_no_job_is_refused(name: str, bad: Path, identic: Command) -> None:
    ran = identic("job", "check", f"{bad}:{name}")
    assert ran.code == 1
    assert ran.err.startswith("cannot capture")
    assert "Traceback" not in ran.err


def test_a_missing_file_is_refused(tmp_path: Path, identic: Command) -> None:
    assert identic("job", "check", tmp_path / "none.py").code == 1


def test_what_the_file_prints_does_not_spoil_the_json(bad: Path, identic: Command) -> None:
    ran = identic("job", "check", f"{bad}:plain", "--json")
    assert ran.code == 0, ran.err
    assert ran.value["parameters"] == 15
    assert "said by the file" in ran.err


def test_a_check_says_what_was_captured_and_what_it_takes(bad: Path, identic: Command) -> None:
    ran = identic("job", "check", f"{bad}:dataset")
    assert ran.code == 0, ran.err
    said = ran.out.split("\n")
    starts = [line.split(" ", 1)[0] for line in said if line and not line.startswith(" ")]
    assert starts == ["said", "captured", "data", "program", "note", "checked", "needs", "post"]
    assert "Adam, 2 groups, 4 steps of 3 rows" in ran.out
    kinds = next(line for line in said if line.startswith("    "))
    assert " mul, " in kinds
    assert "evaluation mode: no dropout in 1" in ran.out
    assert "escrow" in ran.out
    value = identic("job", "check", f"{bad}:dataset", "--json").value
    assert sum(value["kinds"].values()) == value["operators"]
    assert len(value["remarks"]) == 1
    assert value["torch"]


def test_without_torch_the_command_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from identic.node.cli import main; sys.exit(main.run(['job', 'check', 'x.py']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "identic[torch]" in done.stderr
    assert "Traceback" not in done.stderr


# ---- terms ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(f"{EXAMPLE}:job", 5000, Output(json=True))


@pytest.fixture
def who(tmp_path: Path) -> Client:
    own = Identity.create(tmp_path / "client", "client")
    return Client("127.0.0.1:1", own.card, own, tmp_path / "client")


def test_defaults_sign_and_store_enough_and_not_too_much(prepared: Prepared, who: Client) -> None:
    terms = terms_of(prepared, who, Wishes())
    assert terms.steps == 5000
    assert terms.marks - 1 <= 2048
    assert 5 <= (terms.marks - 1) // terms.checkpoint <= 20
    assert terms.escrow == 3 * terms.prices.solver_reward
    assert terms.clocks.budget_ms == terms.clocks.rerun_ms >= terms.clocks.move_ms


def test_wishes_are_followed(prepared: Prepared, who: Client) -> None:
    wishes = Wishes(3, 7, 11, 2.5, 1.0, 2.0, 3.0, 4.0)
    terms = terms_of(prepared, who, wishes)
    assert (terms.verifiers, terms.cadence, terms.checkpoint) == (3, 7, 11)
    assert terms.prices.solver_reward == 2_500_000
    assert terms.prices.solver_bond == 5 * terms.prices.solver_reward
    clocks = terms.clocks
    assert clocks == Clocks(Millis(1000), Millis(2000), Millis(3000), Millis(4000))


def test_equal_jobs_posted_twice_are_two_jobs(prepared: Prepared, who: Client) -> None:
    assert terms_of(prepared, who, Wishes()) != terms_of(prepared, who, Wishes())


def test_job_1__wishes_outside_the_limits_are_refused(prepared: Prepared, who: Client) -> None:
    with pytest.raises(ProtocolError) as caught:
        terms_of(prepared, who, Wishes(cadence=MAX_CADENCE + 1))
    assert caught.value.rule == "JOB-1"


def test_what_is_packed_is_what_the_terms_name(prepared: Prepared, who: Client) -> None:
    terms, store = terms_of(prepared, who, Wishes()), who.blobs
    captured = prepared.captured
    made = pack(store, terms, captured.program, captured.state, captured.data)
    artifacts = made.artifacts
    job = load_job(terms, artifacts, store)
    state = load_state(job, store, artifacts.state, 0, terms.initial_state)
    assert len(state) == len(prepared.captured.program.state)
