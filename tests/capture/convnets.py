"""Small convolutional models as a user writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from identic.node.capture import SGD, Rows, TrainingJob

# mypy: disable-error-code="no-any-return"


class LeNet(nn.Module):
    """Two convolutions with biases, each under a pool, and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 4, 5, padding=2), nn.Conv2d(4, 6, 3)
        self.l1, self.l2 = nn.Linear(6 * 3 * 3, 12), nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(torch.tanh(self.c2(x)), 2)
        return self.l2(F.relu(self.l1(x.flatten(1))))


class Block(nn.Module):
    """Two convolutions and the way around them."""

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(channels, outputs, 3, stride, 1, bias=False)
        self.c2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.n1, self.n2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or channels != outputs:
            around = nn.Conv2d(channels, outputs, 1, stride, bias=False)
            self.around = nn.Sequential(around, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.n2(self.c2(F.relu(self.n1(self.c1(x)))))
        return F.relu(y + self.around(x))


class ResNet(nn.Module):
    """The layout of ResNet-18, narrow, with one block a stage by default."""

    def __init__(self, width: int = 4, blocks: int = 1) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        layers, channels = [], width
        for stage in range(4):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                layers.append(Block(channels, width << stage, stride))
                channels = width << stage
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(channels, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 3, 2, 1)
        return self.head(F.adaptive_avg_pool2d(self.layers(x), 1).flatten(1))


class Waves(nn.Module):
    """Convolutions and pools over one axis: groups, dilation, equal padding, transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.c1 = nn.Conv1d(3, 6, 5, stride=2, padding=3, dilation=2, groups=3)
        self.c2 = nn.Conv1d(6, 4, 4, padding="same", bias=False)
        self.c3 = nn.ConvTranspose1d(4, 6, 3, 2, 1, output_padding=1, groups=2)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.c1(x.flatten(2)))
        x = F.avg_pool1d(F.max_pool1d(self.c2(x), 3, 2, 1), 2, padding=1)
        x = F.interpolate(torch.tanh(self.c3(x)), scale_factor=2)
        return self.head(x.mean(-1))


class Pools(nn.Module):
    """Every kind of pool, a transposed convolution, interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.ConvTranspose2d(3, 4, (3, 2), (2, 1), (1, 0), dilation=(1, 2))
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.c(x)[:, :, :18, :15]
        y = F.avg_pool2d(x, 3, 2, 1).mean((2, 3))
        y = y + F.avg_pool2d(x, (4, 3), (3, 2), (2, 1), ceil_mode=True).amax((2, 3))
        y = y + F.avg_pool2d(x, 3, 2, 1, True, False).sum((2, 3))
        y = y + F.avg_pool2d(x, 2, divisor_override=3).sum((2, 3))
        y = y + F.max_pool2d(x, 3, 4, 1, 2, ceil_mode=True).mean((2, 3))
        y = y + F.adaptive_avg_pool2d(x, (6, 3)).amax((2, 3))
        y = y + F.adaptive_avg_pool2d(x, (7, 4)).amax((2, 3))
        y = y + F.adaptive_max_pool2d(x, (2, 5)).sum((2, 3))
        x = F.interpolate(x[:, :, :3, :4], scale_factor=(2, 3), mode="nearest")
        values, indices = F.max_pool2d(x, 2, return_indices=True)
        return self.head(y * 0.1 + (values * (indices > 9)).mean((2, 3)))


class Evaluated(nn.Module):
    """Batch norm over its own statistics, over stored ones, and over one axis."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3, stride=3)
        self.own = nn.BatchNorm2d(4, track_running_stats=False, affine=False)
        self.stored, self.flat = nn.BatchNorm2d(4), nn.BatchNorm1d(4, momentum=0.3)
        self.stored.running_mean = torch.tensor([0.1, -0.2, 0.3, 0.0])
        self.stored.running_var = torch.tensor([0.5, 2.0, 1.0, 1.5])
        self.stored.eval()
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stored(torch.tanh(self.own(self.c(x))))
        return self.head(self.flat(x.flatten(2)).mean(-1))


def classify(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x), y)


@dataclass(frozen=True)
class Case:
    """One captured job over 3 x 16 x 16 images."""

    make: Callable[[], nn.Module]
    shards: int = 1

    def job(self, **changed: Any) -> TrainingJob:
        """The job, always with the same weights and data."""
        torch.manual_seed(3)
        random = np.random.default_rng(5)
        images = random.standard_normal((24, 3, 16, 16)).astype("float32")
        settings: dict[str, Any] = {
            "model": self.make(),
            "loss": classify,
            "optimizer": SGD(lr=0.05, momentum=0.9),
            "data": Rows(images, random.integers(0, 5, 24), batch=8 * self.shards),
            "steps": 3,
            "shards": self.shards,
            "seed": 11,
        }
        return TrainingJob(**{**settings, **changed})


CASES: dict[str, Case] = {
    "lenet": Case(LeNet),
    "resnet": Case(ResNet),
    "resnet_shards": Case(ResNet, shards=2),
    "waves": Case(Waves),
    "pools": Case(Pools),
    "evaluated": Case(Evaluated),
}
"""Jobs without random operations."""
