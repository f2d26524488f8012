"""Steps whose gradients hang on last places are compared by what last places do in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from identic.node.capture import SGD, CaptureError, Rows, TrainingJob, capture, check_against_eager
from tests.capture.interpreter import TorchBackend

SIGNS = torch.tensor([1.0, -1.0] * 8)


class Edge(nn.Module):
    """A rectifier over a sum that is ``level``."""

    def __init__(self, level: float) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.ones(16))
        self.level = level

    def forward(self, x: Tensor) -> Tensor:
        total = (self.weights * SIGNS).sum() + self.level
        return torch.relu(total) * 100 + (self.weights * x).mean()


class Rounded(TorchBackend):
    """A backend in whose sums nothing is exactly zero."""

    def compute(self, call: Any, x: Any) -> Tensor:
        """One operator."""
        result = super().compute(call, x)
        if call.op.name == "sum_last" and result.numel() == 1 and float(result) == 0.0:
            return result + 1e-7
        return result


def job(level: float) -> TrainingJob:
    rows = np.random.default_rng(1).random((8, 16)).astype("float32")
    return TrainingJob(
        model=Edge(level),
        loss=lambda model, x: model(x),
        optimizer=SGD(lr=0.1),
        data=Rows(rows, batch=4),
        steps=1,
    )


def test_cap_14__a_sign_that_rounding_decides_is_no_difference() -> None:
    at_the_edge = job(0.0)
    found = check_against_eager(capture(at_the_edge), at_the_edge, Rounded())
    assert found.difference == pytest.approx(100.0, rel=1e-3)


def test_cap_14__a_sign_that_rounding_cannot_reach_is_one() -> None:
    clear = job(-0.5)
    captured = capture(clear)
    names = {i.op for i in captured.program.gradient.instructions}
    assert "le" in names

    class Turned(TorchBackend):
        """A backend that takes every rectifier for open."""

        def compute(self, call: Any, x: Any) -> Tensor:
            """One operator."""
            result = super().compute(call, x)
            return torch.zeros_like(result) if call.op.name == "le" else result

    with pytest.raises(CaptureError) as caught:
        check_against_eager(captured, clear, Turned())
    assert caught.value.rule == "CAP-14"
