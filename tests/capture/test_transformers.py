"""Models of the transformers package: captured as they are, without a network."""

from __future__ import annotations

import runpy
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.capture import TrainingJob, Windows, capture, check_against_eager
from identic.protocol.program.codec import program_digest
from identic.protocol.program.unroll import unroll
from tests.capture.conftest import Exact
from tests.capture.test_zoo import check_as_torch_trains
from tests.capture.zoo.brought import BROUGHT, llama

# One worker imports the package.
pytestmark = pytest.mark.xdist_group("transformers")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hf_gpt2.py"


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """No connection and no look-up of a host."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a model made from a configuration asks the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refused)
        patch.setattr(socket, "getaddrinfo", refused)
        yield


@pytest.mark.long
@pytest.mark.parametrize("name", BROUGHT)
def test_cap_9__a_model_of_transformers_trains_as_torch_trains_it(name: str, exact: Exact) -> None:
    check_as_torch_trains(BROUGHT[name].job(), exact)


@pytest.mark.long
def test_cap_8__checkpointing_leaves_the_program_of_llama_as_it_is() -> None:
    def checkpointed() -> Any:
        model = llama()
        model.gradient_checkpointing_enable()
        return model

    plain = capture(BROUGHT["LlamaForCausalLM"].job())
    again = capture(replace(BROUGHT["LlamaForCausalLM"], make=checkpointed).job())
    assert program_digest(again.program) == program_digest(plain.program)


def test_the_gpt2_example_agrees_with_torch_and_runs() -> None:
    job: TrainingJob = runpy.run_path(str(EXAMPLE))["job"](layers=1)
    assert isinstance(job.data, Windows)
    job = replace(job, data=replace(job.data, batch=2))
    captured = capture(job)
    found = check_against_eager(captured, job)
    assert found.difference < 1e-5
    state: list[Any] = captured.state
    executor = Executor(unroll(captured.program), CpuBackend(1))
    for step in range(2):
        state = executor.step(state, captured.data, job.seed, step)
    assert abs(float(state[-1]) - found.loss) < 0.5
