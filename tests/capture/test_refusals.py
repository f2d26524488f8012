"""What cannot be captured is refused with the line it stands on, and with advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from identic.node.capture import (
    AdamW,
    CaptureError,
    Rows,
    TrainingJob,
    Windows,
    capture,
    load_job,
)
from identic.protocol.errors import Code, ProtocolError
from tests.capture.models import CASES, MLP, classify

HEAD = """
import random, time
import numpy, torch
from torch import nn
from torch.nn import functional as F
import identic

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x):
        return self.layer(x)

def loss(model, x, y):
    h = model(x)
    {body}
    return F.cross_entropy(h, y)

def job():
    return identic.TrainingJob(
        model=Net(), loss=loss, optimizer=identic.SGD(lr=0.1), steps=2,
        data=identic.Rows(torch.randn(8, 4), torch.zeros(8, dtype=torch.int64), batch=4),
    )
"""


def refused(folder: Path, body: str) -> CaptureError:
    """The refusal of a step with ``body`` in its loss."""
    file = folder / "train.py"
    file.write_text(HEAD.replace("{body}", body), encoding="utf-8")
    with pytest.raises(CaptureError) as caught:
        capture(load_job(f"{file}:job"))
    return caught.value


ITEM = "aten._local_scalar_dense.default"
LINE = HEAD[: HEAD.index("{body}")].count("\n") + 1


@pytest.mark.parametrize(
    ("body", "rule", "operator"),
    [
        (
            "if F.cross_entropy(h, y).item() > 10: h = h * 2",
            "CAP-2",
            "aten._local_scalar_dense.default",
        ),
        ("h = h * 2 if h.sum() > 0 else h", "CAP-2", "aten._local_scalar_dense.default"),
        ("assert not torch.isnan(h).any()", "CAP-2", "aten._local_scalar_dense.default"),
        ("h = h * sum(h[0].tolist())", "CAP-2", ""),
        ("h = h[h > 0].mean() * h", "CAP-2", "aten.nonzero.default"),
        ("h = h * torch.nonzero(h).shape[0]", "CAP-2", "aten.nonzero.default"),
        ("h = h * random.random()", "CAP-2", ""),
        ("h = h * float(numpy.random.rand())", "CAP-2", ""),
        ("h = h * (time.perf_counter_ns() % 1_000_003)", "CAP-2", ""),
        ("model.calls += 1; h = h * model.calls", "CAP-2", ""),
        ("h = h.double().float()", "CAP-3", "aten._to_copy.default"),
        ("h = h.half().float()", "CAP-3", "aten._to_copy.default"),
        ("h = torch.view_as_real(torch.fft.fft(h)).sum(-1)", "CAP-3", "aten._fft_r2c.default"),
        ("h = torch.cummax(h, -1)[0]", "CAP-4", "aten.cummax.default"),
        ("h = h + torch.cumprod(h, -1)", "CAP-4", "aten.cumprod.default"),
        ("h[h > 0] = torch.arange(3.)", "CAP-4", "aten.index_put.default"),
        ("h = h.masked_scatter(h > 0, h)", "CAP-4", "aten.masked_scatter.default"),
        ("h = h.index_reduce(0, torch.tensor([1]), h[:1], 'amax')", "CAP-4", ""),
        ("h = h + h.floor()", "CAP-4", "aten.floor.default"),
        ("h = torch.linalg.vector_norm(h, 3) * h", "CAP-4", "aten.linalg_vector_norm.default"),
        ("h = h ** h", "CAP-4", "aten.pow.Tensor_Tensor"),
        ("h = h ** 2.3", "CAP-4", "aten.pow.Tensor_Scalar"),
        ("h = F.conv3d(h.view(1, 1, 1, 4, -1), torch.ones(1, 1, 1, 1, 1)).view(4, 4)", "CAP-4", ""),
        ("h = F.adaptive_max_pool2d(h[None, None], 3)[0, 0, 0, :1] + h", "CAP-4", ""),
        ("h = F.interpolate(h[:, None], 7, mode='nearest')[:, 0, :4]", "CAP-4", ""),
        ("h = torch.where(h // 0.5 > 0, h, -h)", "CAP-4", ""),
        (
            "h = torch.view_as_real(torch.view_as_complex(h.view(-1, 2, 2)) * 1j).flatten(1)",
            "CAP-3",
            "",
        ),
        ("h = h * h.detach().numpy().mean()", "CAP-2", ""),
        ("h = h * torch.from_numpy(numpy.asarray(h.detach()))", "CAP-2", ""),
        ("h = h * float(h.mean())", "CAP-2", ITEM),
        ("h = h * int(y.max())", "CAP-2", ITEM),
        ("h = torch.stack([r for r in h if r.sum() > 0])", "CAP-2", ITEM),
        ("h = h * torch.unique(y).shape[0]", "CAP-2", ""),
        ("h = h[y.bool()]", "CAP-2", "aten.nonzero.default"),
        ("h = torch.linalg.inv(h @ h.T)[:, :1] * h", "CAP-4", "aten.linalg_inv_ex.default"),
        ("h = torch.linalg.svd(h)[0] @ h", "CAP-4", ""),
        ("h = h * torch.linalg.det(h)", "CAP-4", ""),
        ("h = torch.special.bessel_j0(h) + h", "CAP-4", "aten.special_bessel_j0.default"),
        ("h = h[torch.randperm(4)]", "CAP-8", "aten.randperm.default"),
        ("h = h + torch.rand(4, generator=torch.Generator())", "CAP-8", ""),
        ("h = h * torch.multinomial(h.softmax(-1), 1)", "CAP-8", "aten.multinomial.default"),
        ("h = h * undefined", "CAP-1", ""),
        ("h = h @ torch.zeros(3, 3)", "CAP-1", ""),
    ],
)
def test_cap_2__cap_3__cap_4__cap_8__refusals_name_the_line(
    tmp_path: Path, body: str, rule: str, operator: str
) -> None:
    error = refused(tmp_path, body)
    assert (error.rule, error.file, error.line) == (rule, "train.py", LINE), error
    assert error.text == body
    assert error.problem
    assert error.advice
    assert isinstance(error, ProtocolError)
    assert error.code is Code.CANNOT_CAPTURE
    if operator:
        assert error.operator == operator


@pytest.mark.parametrize(
    "body",
    [
        "return F.cross_entropy(h, y, reduction='none')",
        "return float(4)",
        "return F.cross_entropy(h, y).detach()",
        "return h.sum().to(torch.int64)",
    ],
)
def test_cap_1__a_loss_is_a_float32_scalar_of_a_trained_parameter(
    tmp_path: Path, body: str
) -> None:
    error = refused(tmp_path, body)
    assert error.rule == "CAP-1"
    assert "loss" in error.problem


def loading(target: str) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        load_job(target)
    assert caught.value.rule == "CAP-1"
    return caught.value


def test_cap_1__a_job_is_what_a_file_and_a_function_say(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(HEAD.replace("{body}", "pass"), encoding="utf-8")
    assert isinstance(load_job(f"{file}:job"), TrainingJob)
    assert isinstance(load_job(str(file)), TrainingJob)
    assert "no file" in loading(f"{tmp_path / 'missing.py'}:job").problem
    assert "has no other" in loading(f"{file}:other").problem
    assert "int" in loading(_write(tmp_path, "job = lambda: 3")).problem


def _write(folder: Path, text: str) -> str:
    path = folder / "wrong.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:job"


def test_cap_1__what_a_job_file_raises_is_reported_with_its_line(tmp_path: Path) -> None:
    raised = loading(_write(tmp_path, "x = 1\n\nx = x / 0\n"))
    assert (raised.file, raised.line, raised.text) == ("wrong.py", 3, "x = x / 0")
    assert "ZeroDivisionError" in raised.problem
    inside = loading(_write(tmp_path, "def job():\n    return unknown\n"))
    assert (inside.file, inside.line) == ("wrong.py", 2)
    syntax = loading(_write(tmp_path, "def job(:\n"))
    assert (syntax.file, syntax.line) == ("wrong.py", 1)
    missing = loading(_write(tmp_path, "import nowhere_to_be_found\n"))
    assert (missing.file, missing.line) == ("wrong.py", 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": 0},
        {"shards": 3},
        {"shards": 0},
        {"seed": -1},
        {"clip": 0.0},
        {"optimizer": "adam"},
        {"data": [1, 2]},
        {"model": lambda x: x},
    ],
)
def test_cap_1__wrong_settings_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(**changed))
    assert caught.value.rule == "CAP-1"


@pytest.mark.parametrize("wrap", [torch.jit.script, lambda _: "model"])
def test_cap_1__a_model_is_a_module_with_its_code(wrap: Callable[[nn.Module], object]) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(model=wrap(nn.Linear(12, 5))))
    assert caught.value.rule == "CAP-1"


def test_cap_3__buffers_have_the_element_types_of_programs() -> None:
    model = MLP()
    model.register_buffer("table", torch.zeros(3, dtype=torch.bfloat16))
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(model=model))
    assert caught.value.rule == "CAP-3"


def test_cap_1__a_model_trains_something() -> None:
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(model=MLP().requires_grad_(requires_grad=False)))
    assert caught.value.rule == "CAP-1"


def test_cap_2__gradient_hooks_are_refused() -> None:
    model = MLP()
    model.l1.weight.register_hook(lambda g: g * 2)  # type: ignore[no-untyped-call]
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(model=model))
    assert caught.value.rule == "CAP-2"


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_cap_3__parameters_are_float32(dtype: torch.dtype) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(model=MLP().to(dtype)))
    assert caught.value.rule == "CAP-3"


def test_cap_3__data_are_never_converted_with_loss() -> None:
    with pytest.raises(CaptureError) as caught:
        Rows(np.zeros((4, 2)), batch=2).tensors()
    assert caught.value.rule == "CAP-3"
    ((_, table),) = Rows(np.arange(6, dtype=np.uint16)[:, None] + 65530, batch=2).tensors()
    assert table.dtype == np.int32
    assert table.reshape(-1).tolist() == [65530, 65531, 65532, 65533, 65534, 65535]


@pytest.mark.parametrize(
    "data",
    [
        Windows(np.zeros(8, np.uint8), length=8, batch=2),
        Windows(np.zeros((8, 2), np.uint8), length=2, batch=2),
        Windows(np.zeros(8, np.float32), length=2, batch=2),
        Rows(batch=2),
        Rows(np.zeros((4, 2), np.float32), np.zeros(3, np.int64), batch=2),
    ],
)
def test_cap_10__data_that_cannot_be_sampled_are_refused(data: Rows | Windows) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(
            TrainingJob(model=nn.Linear(2, 2), loss=classify, optimizer=AdamW(), data=data, steps=1)
        )
    assert caught.value.rule == "CAP-10"


def test_a_refusal_reads_as_place_problem_and_advice(tmp_path: Path) -> None:
    text = str(refused(tmp_path, "h = torch.cummax(h, -1)[0]"))
    first, *rest = text.split("\n")
    assert first == f"cannot capture train.py:{LINE}   h = torch.cummax(h, -1)[0]"
    assert any("aten.cummax" in line for line in rest)
