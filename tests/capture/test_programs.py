"""What captured programs compute, beside torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from identic.node.capture import (
    Captured,
    CaptureError,
    TrainingJob,
    capture,
    check_against_eager,
)
from identic.node.capture.check import StepRandomness
from identic.node.capture.tracing import math_attention
from identic.protocol.program.codec import program_digest
from identic.protocol.program.context import context
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.types import Instruction
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits, validate
from tests.capture.conftest import Exact
from tests.capture.interpreter import TorchBackend, run_plan
from tests.capture.models import CASES, RANDOM

AT_LENGTH = {"encoder", "gpt_tied", "gru"}
ALL = [
    pytest.param(name, marks=pytest.mark.long) if name in AT_LENGTH else name
    for name in sorted({**CASES, **RANDOM})
]


def section_values(
    captured: Captured, plan: StepPlan, values: list[Tensor], shard: int
) -> list[Tensor]:
    """Outputs of one shard's gradient section."""
    section = captured.program.gradient
    first = len(plan.loads) + shard * len(section.instructions) - len(section.inputs)
    return [values[first + int(o)] for o in section.outputs if int(o) >= len(section.inputs)]


def eager(job: TrainingJob, dtype: torch.dtype, shard: int) -> tuple[Tensor, list[Tensor]]:
    """Loss and gradients of the first step by autograd, in another element type."""
    model = copy.deepcopy(job.model).to(dtype)
    words = context(job.seed, 0, shard)
    arrays = job.data.batch_of(words, job.shards)
    batch = [torch.from_numpy(a) for a in arrays]
    batch = [t.to(dtype) if t.is_floating_point() else t for t in batch]
    with math_attention(), StepRandomness(torch.tensor(words)):
        loss = job.loss(model, *batch)
        trained = [p for p in model.parameters() if p.requires_grad]
        return loss, list(torch.autograd.grad(loss, trained))


@pytest.mark.parametrize("name", [n for n in ALL if n != "noise"])
def test_cap_9__gradients_are_autograds_in_float64(exact: Exact, name: str) -> None:
    job, captured = exact.job(name)
    plan = unroll(captured.program)
    backend = TorchBackend(torch.float64, exact.numbers)
    values = run_plan(plan, backend, captured.state, captured.data, job.seed, 0)
    for shard in range(job.shards):
        loss, *gradients = section_values(captured, plan, values, shard)
        want, wanted = eager(job, torch.float64, shard)
        assert abs(float(loss) - float(want.detach())) <= 1e-12 * abs(float(want.detach()))
        scale = max(float(g.abs().max()) for g in wanted)
        for ours, theirs in zip(gradients, wanted, strict=False):
            assert float((ours - theirs).abs().max()) <= 1e-12 * scale


@pytest.mark.parametrize("name", ALL)
def test_cap_14__a_float32_step_is_torchs_within_rounding(exact: Exact, name: str) -> None:
    job, captured = exact.job(name)
    found = check_against_eager(captured, job)
    assert abs(found.loss - found.eager_loss) <= 1e-5 * abs(found.eager_loss)
    assert 0 <= found.difference < 1e-5
    assert captured.random == (name in RANDOM)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.long
def test_cap_5__programs_are_valid_and_hold_no_value_twice_or_unused(
    exact: Exact, name: str
) -> None:
    _, captured = exact.job(name)
    program = captured.program
    validate(program, Limits())
    for section in (program.gradient, program.update):
        assert len(set(section.instructions)) == len(section.instructions)
        used = {i for made in section.instructions for i in made.inputs} | set(section.outputs)
        first = len(section.inputs)
        assert set(range(first, first + len(section.instructions))) <= used
    arrays = [*zip(program.state, captured.state, strict=True)]
    arrays += [*zip(program.data, captured.data, strict=True)]
    for variable, array in arrays:
        assert tuple(variable.type.shape) == array.shape
        assert array.dtype.name == variable.type.dtype.label
        assert array.flags.c_contiguous


@pytest.mark.parametrize("name", ["mlp", "gpt", "mlp_dropout", "batch_norm"])
def test_cap_2__the_same_job_gives_the_same_program(exact: Exact, name: str) -> None:
    _, captured = exact.job(name)
    again = capture({**CASES, **RANDOM}[name].job())
    assert program_digest(again.program) == program_digest(captured.program)
    assert [a.tobytes() for a in again.state] == [a.tobytes() for a in captured.state]
    assert [a.tobytes() for a in again.data] == [a.tobytes() for a in captured.data]


def test_capture_leaves_the_model_as_it_was() -> None:
    job = CASES["batch_norm"].job()
    before = {n: t.clone() for n, t in job.model.state_dict().items()}
    capture(job)
    assert all(torch.equal(t, before[n]) for n, t in job.model.state_dict().items())
    assert all(p.grad is None for p in job.model.parameters())


def test_notes_name_module_and_line_of_forward_and_backward(exact: Exact) -> None:
    _, captured = exact.job("gpt")
    section, notes = captured.program.gradient, captured.notes.gradient
    assert len(notes) == len(section.instructions)
    products = [n for n, i in zip(notes, section.instructions, strict=True) if i.op == "matmul"]
    assert all(n.file == "models.py" and n.line > 0 and n.text for n in products)
    # Forward, gradient of the input and of the weight all belong to the same line.
    assert sum(n.module == "mlp.0" for n in products) == 3
    assert sum(n.module == "attention" for n in products) == 6
    assert {n.module for n in captured.notes.update} >= {
        "clip",
        "schedule",
        "optimizer.tokens.weight",
    }


def test_cap_14__a_program_that_is_not_the_step_is_refused(exact: Exact) -> None:
    job, captured = exact.job("mlp")

    class Wrong(TorchBackend):
        def compute(self, call: Any, x: Any) -> Tensor:
            result = super().compute(call, x)
            return result * 1.01 if call.op.name == "matmul" else result

    with pytest.raises(CaptureError) as caught:
        check_against_eager(captured, job, Wrong())
    assert caught.value.rule == "CAP-14"


def test_cap_8__random_numbers_depend_on_step_and_stream(exact: Exact) -> None:
    job, captured = exact.job("mlp_dropout")
    plan = unroll(captured.program)

    def masks(step: int) -> list[bytes]:
        values = run_plan(plan, TorchBackend(), captured.state, captured.data, job.seed, step)
        made = enumerate(plan.calls, start=len(plan.loads))
        return [values[i].numpy().tobytes() for i, c in made if c.call.op.name == "random_uniform"]

    assert masks(0) == masks(0)
    assert masks(0) != masks(1)
    _, gpt = exact.job("gpt_dropout")
    draws: list[Instruction] = [
        i for i in gpt.program.gradient.instructions if i.op == "random_uniform"
    ]
    streams = [a.values[0] for i in draws for a in i.attributes if a.name == "stream"]
    assert streams == [16, 17]


def test_cap_6__tensors_in_the_step_become_numbers_or_data(exact: Exact) -> None:
    _, smooth = exact.job("smooth")
    named = {v.name: a for v, a in zip(smooth.program.data, smooth.data, strict=True)}
    assert named["constant.0"].tolist() == [1.0, 2.0, 0.5, 1.0, 1.5]
    _, in_place = exact.job("in_place")
    assert not any(v.name.startswith("constant") for v in in_place.program.data)
    _, masked = exact.job("masked")
    assert not any(v.name.startswith("constant") for v in masked.program.data)
    _, llama = exact.job("llama")
    assert [v.name for v in llama.program.data] == [
        "tokens",
        "schedule",
        "buffer.cos",
        "buffer.sin",
    ]
    assert llama.program.buffers == ()
