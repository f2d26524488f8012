"""ResNet-18, as narrow as one likes, that reads handwritten digits.

The layout is the one everybody knows: a first convolution, four stages of two blocks with 1, 2, 4
and 8 times the width, a mean over space, one linear layer. Batch norm's running statistics are
part of the state, so that they are committed and disputed like the weights.

    identic job submit examples/resnet_digits.py:job --watch
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import identic


class Block(nn.Module):
    """Two convolutions, and the way around them; halves the image where ``stride`` is 2."""

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or channels != outputs:
            narrow = nn.Conv2d(channels, outputs, 1, stride, bias=False)
            self.around = nn.Sequential(narrow, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, H, W) -> (B, outputs, H / stride, W / stride)."""
        y = F.relu(self.norm1(self.first(x)))
        return F.relu(self.norm2(self.second(y)) + self.around(x))


class ResNet18(nn.Module):
    """Scores of classes from images.

    Args:
        width: channels of the first stage; 64 is the full size.
        channels: of an image.
        classes: to tell apart.
        small: whether images are small, so that nothing halves them before the first stage.
    """

    def __init__(
        self, width: int = 64, channels: int = 3, classes: int = 1000, *, small: bool = False
    ) -> None:
        super().__init__()
        self.small = small
        size, stride = (3, 1) if small else (7, 2)
        self.first = nn.Conv2d(channels, width, size, stride, size // 2, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.stages = nn.Sequential(*self._blocks(width))
        self.last = nn.Linear(8 * width, classes)
        for stream, (_, p) in enumerate(self.named_parameters()):
            if p.dim() > 1:
                scale = (6 / p[0].numel()) ** 0.5 if p.dim() == 4 else p.shape[1] ** -0.5
                weights = identic.initial(p.shape, seed=1, stream=stream, scale=scale)
                p.data = torch.from_numpy(weights)
        self.last.bias.data.zero_()

    @staticmethod
    def _blocks(width: int) -> list[Block]:
        blocks, channels = [], width
        for stage in range(4):
            outputs = width << stage
            blocks += [Block(channels, outputs, 2 if stage else 1), Block(outputs, outputs, 1)]
            channels = outputs
        return blocks

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, H, W) -> (B, classes)."""
        x = F.relu(self.norm(self.first(x)))
        if not self.small:
            x = F.max_pool2d(x, 3, 2, 1)
        x = self.last(self.stages(x).mean((2, 3)))
        return x  # noqa: RET504 - torch declares what modules return as anything


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the digit."""
    return F.cross_entropy(model(x), y)


def job(width: int = 8) -> identic.TrainingJob:
    """Two passes over the 1,797 images of 8 x 8."""
    # Only here: the model is at hand without the package that brings the digits.
    from sklearn.datasets import load_digits  # noqa: PLC0415

    images, digits = load_digits(return_X_y=True)
    pixels = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    return identic.TrainingJob(
        model=ResNet18(width, channels=1, classes=10, small=True),
        loss=loss,
        optimizer=identic.SGD(lr=0.1, momentum=0.9, weight_decay=5e-4),
        data=identic.Rows(pixels, digits.astype("int64"), batch=64),
        steps=56,
        schedule=identic.WarmupCosine(warmup=8, floor=0.01),
        seed=1,
    )
