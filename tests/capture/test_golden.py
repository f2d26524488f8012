"""The digits example ends in the same state, to the last bit, on every machine.

``tests/golden/digits_mlp.json`` holds the program's digest and the roots of the first and the
last state. The initial weights come from the project's own generator and the data from the
files of scikit-learn, so that nothing in the run depends on the machine, the version of
torch that captured it, the vector path or the number of threads. Write the file again with
``python -m tests.capture.test_golden``; do so only for a change that is meant to change bits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from identic.kernels import _native
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

pytestmark = pytest.mark.xdist_group("examples")

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


@cache
def captured_example(name: str) -> tuple[TrainingJob, Captured]:
    """An example and its program, made once a process."""
    job = load_job(f"{ROOT / 'examples' / name}.py:job")
    return job, capture(job)


@contextmanager
def vector_path(name: str) -> Iterator[None]:
    """The native module on one of its paths."""
    before = _native.path()
    _native.set_path(name)
    try:
        yield
    finally:
        _native.set_path(before)


def root_after(name: str, steps: int, threads: int, path: str = "auto") -> str:
    """Root of the state after some steps of an example."""
    job, captured = captured_example(name)
    with vector_path(path):
        executor = Executor(unroll(captured.program), CpuBackend(threads))
        state: list[Any] = captured.state
        for step in range(steps):
            state = executor.step(state, captured.data, job.seed, step)
    return root(captured, job, state, steps)


def run(threads: int, path: str = "auto") -> dict[str, str]:
    """Program digest and roots of the digits example."""
    job, captured = captured_example("digits_mlp")
    return {
        "program": program_digest(captured.program).hex(),
        "initial_root": root(captured, job, captured.state, 0),
        "final_root": root_after("digits_mlp", job.steps, threads, path),
    }


@pytest.mark.parametrize("path", _native.paths())
@pytest.mark.parametrize("threads", [1, 2])
def test_the_digits_example_ends_in_the_golden_state(threads: int, path: str) -> None:
    assert run(threads, path) == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.long
@pytest.mark.parametrize("steps", [2, 60])
def test_the_demo_comes_to_the_same_state_with_one_and_two_threads(steps: int) -> None:
    job, _ = captured_example("gpt_docs")
    assert steps <= job.steps
    assert root_after("gpt_docs", steps, 1) == root_after("gpt_docs", steps, 2)


@pytest.mark.long
def test_a_step_of_the_demo_has_the_same_bits_on_every_path() -> None:
    want = root_after("gpt_docs", 1, 2)
    # The emulated path, lane by lane, would take a minute; it runs the digits example above.
    for path in set(_native.paths()) - {"emulated", _native.path()}:
        assert root_after("gpt_docs", 1, 2, path) == want, path


@pytest.mark.parametrize("example", ["gpt_docs", "digits_mlp"])
def test_examples_are_captured_and_agree_with_torch(example: str) -> None:
    job, captured = captured_example(example)
    validate(captured.program, Limits())
    found = check_against_eager(captured, job)
    assert found.difference < 1e-5
    assert "float32 rounding" in str(found)
    assert str(captured.summary).startswith(type(job.model).__name__)


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(run(2), indent=1) + "\n", encoding="utf-8")
