"""The examples that show more of torch: captured, compared with torch, and run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.capture import Windows, capture, check_against_eager, load_job
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["llama_docs", pytest.param("lora_docs", marks=pytest.mark.long)])
def test_an_example_is_captured_and_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL", raising=False)
    job = load_job(f"{EXAMPLES / name}.py:job")
    assert isinstance(job.data, Windows)
    captured = capture(replace(job, data=replace(job.data, batch=2)))
    validate(captured.program, Limits())
    assert check_against_eager(captured, job).difference < 1e-5
    executor = Executor(unroll(captured.program), CpuBackend())
    state: list[Any] = captured.state
    losses = []
    for step in range(4):
        state = executor.step(state, captured.data, job.seed, step)
        losses.append(float(state[-1]))
    assert all(abs(loss) < 10 for loss in losses)
    trained = len(captured.program.trainable)
    assert trained == (16 if name == "lora_docs" else len(captured.checked.parameters))


def test_the_adapters_stand_beside_the_weights_they_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = load_job(f"{EXAMPLES / 'gpt_docs'}.py:job").model
    save_file(base.state_dict(), tmp_path / "model.safetensors")
    monkeypatch.setenv("MODEL", str(tmp_path / "model.safetensors"))
    job = load_job(f"{EXAMPLES / 'lora_docs'}.py:job")
    inner = job.model.get_parameter("blocks.0.attention.qkv.inner.weight")
    assert torch.equal(inner, base.get_parameter("blocks.0.attention.qkv.weight"))
    assert not inner.requires_grad
