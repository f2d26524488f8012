"""A two-layer network that reads handwritten digits, from the same bits on every machine.

The initial weights come from ``identic.initial``, not from torch's generator, so that the
whole run, and the root of its last state, is a number one can write down.

    identic job submit examples/digits_mlp.py:job --watch
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

import identic


class Reader(nn.Module):
    """64 grey values in, scores of ten digits out."""

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, hidden), nn.Linear(hidden, 10)
        for stream, (_, p) in enumerate(self.named_parameters()):
            scale = p.shape[-1] ** -0.5 if p.dim() == 2 else 0.0
            weights = identic.initial(p.shape, seed=1, stream=stream, scale=scale)
            p.data = torch.from_numpy(weights)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 64) -> (B, 10)."""
        x = self.second(F.relu(self.first(x)))
        return x  # noqa: RET504 - torch declares what modules return as anything


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the digit."""
    return F.cross_entropy(model(x), y)


def job() -> identic.TrainingJob:
    """Five passes over the 1,797 images."""
    images, digits = load_digits(return_X_y=True)
    return identic.TrainingJob(
        model=Reader(),
        loss=loss,
        optimizer=identic.SGD(lr=0.25, momentum=0.5),
        data=identic.Rows((images / 16).astype("float32"), digits.astype("int64"), batch=64),
        steps=140,
        seed=1,
    )
