"""Programs without weights, and the same program from every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from identic.node.capture import CaptureError, TrainingJob, capture
from identic.protocol.program.codec import program_digest
from identic.protocol.program.validate import Limits, validate
from tests.capture.zoo import ZOO
from tests.lint.tree import ROOT

DIGEST = """
from tests.capture.zoo import ZOO
from identic.node.capture import capture
from identic.protocol.program.codec import program_digest
print(program_digest(capture(ZOO["lora"].job()).program).hex())
"""


@pytest.fixture(scope="module")
def digest() -> str:
    """Of the program of a small LoRA, made in this process."""
    return program_digest(capture(ZOO["lora"].job()).program).hex()


def test_cap_1__a_model_on_the_meta_device_has_a_program_and_no_state(digest: str) -> None:
    job = ZOO["lora"].job()
    with torch.device("meta"):
        model = ZOO["lora"].make()
    empty = capture(TrainingJob(model, job.loss, job.optimizer, job.data, job.steps, seed=7))
    validate(empty.program, Limits())
    assert program_digest(empty.program).hex() == digest
    assert all(p.device.type == "meta" for p in model.parameters())
    with pytest.raises(CaptureError, match="meta device") as caught:
        _ = empty.state
    assert caught.value.rule == "CAP-1"


@pytest.mark.long
@pytest.mark.parametrize("seed", ["1", "77"])
def test_cap_2__another_process_makes_the_same_program(digest: str, seed: str) -> None:
    """Whatever order Python's sets have there, and whoever made the weights."""
    found = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == digest


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "weights", "most"), [("gpt2", 124_439_808, 6_000), ("llama", 6_738_415_616, 16_000)]
)
def test_prg_16__a_large_model_has_a_short_program(name: str, weights: int, most: int) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "tests.capture.scale", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(found.stdout)
    assert figures["weights"] == weights
    assert 1_000 < figures["instructions"] < most
    assert figures["memory"] < 2e9
