"""Checking a model against its receipt, and re-executing steps, offline."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest

from identic.node.cli.folder import BLOBS, INDEX, MODEL, RECEIPT
from identic.node.identity import Identity
from identic.proofs.receipt import to_json
from identic.protocol.ids import Digest
from tests.helpers.receipts import without_path
from tests.helpers.small_run import Run, small_run
from tests.node.cli import finished
from tests.node.cli.conftest import Command, process


@pytest.fixture
def run() -> Run:
    return small_run()


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    finished.write(run, tmp_path, marks=(0, 1, 2))
    return tmp_path


# ---- receipt --------------------------------------------------------------------------------


def test_a_good_receipt_is_established_and_says_what_is_not_checked(
    folder: Path, identic: Command
) -> None:
    ran = identic("receipt", "verify", folder / MODEL, folder / RECEIPT)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert sum(line.startswith(" ✓ ") for line in lines) >= 6
    assert any(line.startswith(" – not checked") for line in lines)
    assert any(line.startswith("established: ") for line in lines)
    assert "✗" not in ran.out


def test_the_same_as_json_and_as_a_process(folder: Path) -> None:
    ran = process("receipt", "verify", folder / MODEL, folder / RECEIPT, "--json")
    assert ran.code == 0
    assert ran.value["verified"]
    assert {"file", "terms", "commitments", "tensors", "verdicts", "log"} <= set(
        ran.value["established"]
    )
    assert not ran.err


def test_rcp_5__another_model_file_is_not_established(folder: Path, identic: Command) -> None:
    data = bytearray((folder / MODEL).read_bytes())
    data[-1] ^= 1
    (folder / MODEL).write_bytes(data)
    ran = identic("receipt", "verify", folder / MODEL, folder / RECEIPT)
    assert ran.code == 1
    assert "✗ file" in ran.out
    assert "✗ tensors" in ran.out
    assert "do not trust" in ran.out
    assert "identic audit" not in ran.out


def test_rcp_11__an_entry_that_is_not_in_the_log_is_told(
    run: Run, folder: Path, identic: Command
) -> None:
    receipt = without_path(finished.receipt_of(run, finished.model_of(run)))
    (folder / RECEIPT).write_text(to_json(receipt))
    ran = identic("receipt", "verify", folder / MODEL, folder / RECEIPT)
    assert ran.code == 1
    assert "✗ log" in ran.out
    assert "✓ file" in ran.out


def test_another_coordinator_than_the_named_one_is_told(
    folder: Path, tmp_path: Path, identic: Command
) -> None:
    Identity.create(tmp_path / "stranger", "stranger")
    card = tmp_path / "stranger" / "stranger.card"
    ran = identic("receipt", "verify", folder / MODEL, folder / RECEIPT, "--card", card)
    assert ran.code == 1
    assert "✗ log" in ran.out


@pytest.mark.parametrize("content", ["", "{}", "[1]", "nonsense", '{"version": 1}'])
def test_rcp_4__what_is_no_receipt_is_refused(content: str, folder: Path, identic: Command) -> None:
    (folder / RECEIPT).write_text(content)
    for arguments in (["receipt", "show"], ["receipt", "verify", folder / MODEL]):
        ran = identic(*arguments, folder / RECEIPT)
        assert ran.code == 1
        assert ran.err.startswith("refused")


def test_what_is_no_model_file_is_refused(folder: Path, identic: Command) -> None:
    (folder / MODEL).write_bytes(b"\xff" * 100)
    ran = identic("receipt", "verify", folder / MODEL, folder / RECEIPT)
    assert ran.code == 1
    assert "safetensors" in ran.err


def test_a_receipt_is_shown_without_being_believed(folder: Path, identic: Command) -> None:
    shown = identic("receipt", "show", folder / RECEIPT)
    value = identic("receipt", "show", folder / RECEIPT, "--json").value
    assert shown.code == 0
    assert "check it:" in shown.out
    assert value["steps"] == 4
    assert len(value["verifiers"]) == 1


# ---- audit ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_every_step_is_reproduced_from_the_nearest_state(
    step: int, folder: Path, identic: Command, run: Run
) -> None:
    ran = identic("audit", folder / RECEIPT, "--step", step, "--json")
    assert ran.code == 0, ran.err
    value = ran.value
    assert value["same"]
    assert value["from_state"] == step // 2 * 2
    assert value["compared_state"] == step // 2 * 2 + 2
    assert value["root"] == run.good.roots[value["compared_state"]].hex()


def test_only_the_initial_state_is_enough(run: Run, tmp_path: Path, identic: Command) -> None:
    finished.write(run, tmp_path, marks=(0,))
    ran = identic("audit", tmp_path / RECEIPT, "--step", 3, "--json")
    assert ran.code == 0
    assert ran.value["from_state"] == 0


def test_a_step_that_does_not_exist_is_a_usage_error(folder: Path, identic: Command) -> None:
    assert identic("audit", folder / RECEIPT, "--step", 4).code == 2
    assert identic("audit", folder / RECEIPT, "--step", -1).code == 2


def lied_about(run: Run, folder: Path) -> None:
    """Replace the signed root of the last mark by another, and the last state by its own."""
    receipt = finished.receipt_of(run, finished.model_of(run))
    wrong = Digest(bytes(31) + b"\x01")
    (folder / RECEIPT).write_text(to_json(replace(receipt, marks=(*receipt.marks[:-1], wrong))))


def test_a_wrong_root_is_told_with_1(run: Run, folder: Path, identic: Command) -> None:
    lied_about(run, folder)
    ran = identic("audit", folder / RECEIPT, "--step", 3)
    assert ran.code == 1
    assert "✗ step 3→4" in ran.out
    assert "only the root was published" in ran.out


def test_bits_that_differ_are_named(tmp_path: Path, run: Run, identic: Command) -> None:
    # Of a lying run everything is published: its states, and their roots as signed.
    lying = run.lying(run.flipped(3, run.value("sum_first"), 0))
    wrong = copy.copy(run)
    wrong.good = lying
    finished.write(wrong, tmp_path, marks=(0, 1, 2))
    ran = identic("audit", tmp_path / RECEIPT, "--step", 3, "--json")
    assert ran.code == 1
    assert not ran.value["same"]
    assert ran.value["differences"]
    assert all(d["elements"] >= 1 for d in ran.value["differences"])
    assert "differ" in identic("audit", tmp_path / RECEIPT, "--step", 3).out


def test_a_changed_blob_is_refused_and_missing_ones_are_explained(
    folder: Path, identic: Command
) -> None:
    index = json.loads((folder / INDEX).read_text())
    program = index["artifacts"]["program"]
    path = folder / BLOBS / program[:2] / program
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    assert identic("audit", folder / RECEIPT, "--step", 0).code in {1, 3}
    (folder / INDEX).unlink()
    ran = identic("audit", folder / RECEIPT, "--step", 0)
    assert ran.code == 3
    assert "identic job fetch" in ran.err
