"""The digits example ends in the same state, to the last bit, on every machine.

``tests/golden/digits_mlp.json`` holds the program's digest and the roots of the first and the
last state. The initial weights come from the project's own generator and the data from the
files of scikit-learn, so that nothing in the run depends on the machine, the version of
torch that captured it, or the number of threads. Write the file again with
``python -m tests.capture.test_golden``; do so only for a change that is meant to change bits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.capture import Captured, TrainingJob, capture, check_against_eager, load_job
from identic.proofs.state import StateCommitment
from identic.proofs.tensors import tensor_digest
from identic.protocol.commitments import StateHeader
from identic.protocol.ids import Count, StepIndex, Unsigned
from identic.protocol.program.codec import program_digest
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "digits_mlp.json"


def root(captured: Captured, job: TrainingJob, state: Sequence[NDArray[Any]], step: int) -> str:
    """Root of a state, in hex."""
    program = captured.program
    header = StateHeader(
        program=program_digest(program),
        seed=Unsigned(job.seed),
        step=StepIndex(step),
        cursor=Count(step * program.shards * program.examples),
    )
    tensors = zip(program.state, state, strict=True)
    digests = tuple(tensor_digest(v.type, a.tobytes()) for v, a in tensors)
    return StateCommitment(header, digests).root.hex()


def run(threads: int) -> dict[str, str]:
    """Program digest and roots of the example."""
    job = load_job(f"{ROOT / 'examples' / 'digits_mlp.py'}:job")
    captured = capture(job)
    executor = Executor(unroll(captured.program), CpuBackend(threads))
    state: list[Any] = captured.state
    for step in range(job.steps):
        state = executor.step(state, captured.data, job.seed, step)
    return {
        "program": program_digest(captured.program).hex(),
        "initial_root": root(captured, job, captured.state, 0),
        "final_root": root(captured, job, state, job.steps),
    }


@pytest.mark.parametrize("threads", [1, 2])
def test_the_digits_example_ends_in_the_golden_state(threads: int) -> None:
    assert run(threads) == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", ["gpt_docs", "digits_mlp"])
def test_examples_are_captured_and_agree_with_torch(example: str) -> None:
    job = load_job(f"{ROOT / 'examples' / example}.py:job")
    captured = capture(job)
    validate(captured.program, Limits())
    found = check_against_eager(captured, job)
    assert found.difference < 1e-5
    assert "float32 rounding" in str(found)
    assert str(captured.summary).startswith(type(job.model).__name__)


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(run(2), indent=1) + "\n", encoding="utf-8")
