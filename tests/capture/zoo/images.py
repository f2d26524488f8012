"""Models of images, and their losses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# mypy: disable-error-code="no-any-return"

WIDTH = 32
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "resnet_digits.py"


class MLP(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.l1, self.l2 = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.l2(F.relu(self.l1(x.flatten(1))))


class SquareRoot(torch.autograd.Function):
    """A signed square root whose gradient stays finite at 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """x -> sign(x) * sqrt(|x|)."""
        ctx.save_for_backward(x)
        return x.sign() * x.abs().sqrt()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """The slope, with 0.1 added below the root."""
        (x,) = ctx.saved_tensors
        return gradients[0] * 0.5 * (x.abs() + 0.1).rsqrt()


class Custom(MLP):
    """Two layers with an activation of the user's own."""

    def forward(self, x: Tensor) -> Tensor:
        return self.l2(SquareRoot.apply(self.l1(x.flatten(1))))  # type: ignore[no-untyped-call]


class ViT(nn.Module):
    """Patches by a convolution, a class token, torch's encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 2, 2)
        self.first = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.1)
        self.places = nn.Parameter(torch.randn(1, 17, WIDTH) * 0.1)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.first.expand(len(x), -1, -1), h], 1) + self.places
        return self.head(self.norm(self.layers(h)[:, 0]))


class Grouped(nn.Module):
    """Convolutions under GroupNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU()),
            *(nn.Conv2d(8, 16, 3, 2, 1), nn.GroupNorm(2, 16), nn.SiLU(), nn.Flatten()),
        )
        self.head = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def tripled(network: type[nn.Module]) -> Callable[[], nn.Module]:
    """A network for colour images of 16 x 16, which is given digits."""

    class Enlarged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()
            self.head = nn.Linear(5, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.inner(F.interpolate(x, scale_factor=2).expand(-1, 3, -1, -1)))

    return Enlarged


def enlarged() -> nn.Module:
    """The example's ResNet-18, narrow, for digits enlarged to 64 x 64."""
    resnet = run_path(str(EXAMPLE))["ResNet18"]

    class Enlarged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = resnet(width=4, classes=10)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(F.interpolate(x, scale_factor=8).expand(-1, 3, -1, -1))

    return Enlarged()


class Autoencoder(nn.Module):
    """A variational autoencoder: its numbers are drawn in the step."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, WIDTH), nn.Tanh())
        self.mean, self.spread = nn.Linear(WIDTH, 6), nn.Linear(WIDTH, 6)
        self.decoder = nn.Sequential(nn.Linear(6, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * spread)
        return self.decoder(z), mean, spread


def several(model: nn.Module, x: Tensor, _: Tensor) -> Tensor:
    """Reconstruction in two ways, the distance of the code from noise, a sparse code."""
    logits, mean, spread = model(x)
    y = x.flatten(1)
    distance = -0.5 * (1 + spread - mean.square() - spread.exp()).mean()
    return (
        F.binary_cross_entropy_with_logits(logits, y)
        + 0.5 * F.smooth_l1_loss(logits.sigmoid(), y)
        + 0.1 * distance
        + 0.01 * mean.abs().mean()
    )


class UNet(nn.Module):
    """Down, across, and up by transposed convolutions, with the ways around."""

    def __init__(self) -> None:
        super().__init__()
        self.d1, self.d2 = self._pair(1, 8), self._pair(8, 16)
        self.across = self._pair(16, 32)
        self.u2, self.u1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.m2, self.m1, self.head = self._pair(32, 16), self._pair(16, 8), nn.Conv2d(8, 1, 1)

    @staticmethod
    def _pair(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
        )

    def forward(self, x: Tensor) -> Tensor:
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        h = self.across(F.max_pool2d(b, 2))
        h = self.m2(torch.cat([self.u2(h), b], 1))
        return self.head(self.m1(torch.cat([self.u1(h), a], 1)))


def bright(model: nn.Module, x: Tensor, _: Tensor) -> Tensor:
    """Which pixels are bright, told from a noisy image."""
    return F.binary_cross_entropy_with_logits(
        model(x + 0.3 * torch.randn_like(x)), (x > 0.5).float()
    )


class Larger(nn.Module):
    """From half the resolution: by PixelShuffle, or by interpolation and a convolution."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.up: nn.Module = (
            nn.PixelShuffle(2) if mode == "shuffle" else nn.Upsample(scale_factor=2, mode=mode)
        )
        self.last = nn.Conv2d(4 if mode == "shuffle" else 16, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.up(F.relu(self.first(x))))


def sharper(model: nn.Module, x: Tensor, _: Tensor) -> Tensor:
    """Mean squared error of the image told from its half."""
    return F.mse_loss(model(F.avg_pool2d(x, 2)), x)


class Noised(nn.Module):
    """Tells the noise in an image, at a level drawn in the step: a diffusion model."""

    kept: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-3, 0.2, 50), 0))
        self.levels = nn.Embedding(50, WIDTH)
        self.body = nn.Sequential(nn.Linear(64 + WIDTH, 128), nn.SiLU(), nn.Linear(128, 64))

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        return self.body(torch.cat([x.flatten(1), self.levels(level)], 1))


def denoised(model: Any, x: Tensor, _: Tensor) -> Tensor:
    """Mean squared error of the noise."""
    level = torch.randint(0, 50, (len(x),))
    kept = model.kept[level][:, None]
    noise = torch.randn(len(x), 64, dtype=x.dtype)
    return F.mse_loss(model(kept.sqrt() * x.flatten(1) + (1 - kept).sqrt() * noise, level), noise)


def classified(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the digit."""
    return F.cross_entropy(model(x), y)
