"""Small models of all kinds that people train, each with a job over real data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from identic.node.capture import AdamW, Average, Rows, TrainingJob, Windows
from tests.capture.convnets import LeNet, ResNet

# mypy: disable-error-code="no-any-return"

BYTES, WIDTH, LENGTH = 128, 32, 16


@cache
def images() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The digits of scikit-learn: 1797 images of 8 x 8, and which digit each is."""
    pixels, digits = load_digits(return_X_y=True)
    return (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8), digits.astype(np.int64)


@cache
def text() -> NDArray[np.uint8]:
    """Python's own documentation, ASCII."""
    whole = "\n\n".join(topics[name] for name in sorted(topics))
    return np.frombuffer(whole.encode("ascii", "replace"), np.uint8)


# ---- language models ------------------------------------------------------------------------


class Attention(nn.Module):
    """Causal attention over heads."""

    def __init__(self, heads: int = 2, p: float = 0.0) -> None:
        super().__init__()
        self.heads, self.p = heads, p
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(C, 2))
        p = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """Attention, then two layers at each position."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.n1, self.n2, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention(2, p)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(p)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    """Two blocks over tied embeddings, with dropout or checkpoints if asked for."""

    def __init__(self, p: float = 0.0, *, checkpoints: bool = False) -> None:
        super().__init__()
        self.checkpoints = checkpoints
        self.tokens, self.places = nn.Embedding(BYTES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(p) for _ in range(2))
        self.norm, self.drop = nn.LayerNorm(WIDTH), nn.Dropout(p)
        self.head = nn.Linear(WIDTH, BYTES, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.1)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop(self.tokens(x) + self.places(torch.arange(x.shape[1])))
        for block in self.blocks:
            again: Any = partial(checkpoint, block, use_reentrant=False)
            h = again(h) if self.checkpoints else block(h)
        return self.head(self.norm(h))


class LlamaLayer(nn.Module):
    """Rotary positions, two queries for each key, a gated activation."""

    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(WIDTH, eps=1e-5), nn.RMSNorm(WIDTH, eps=1e-5)
        self.q, self.kv = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 32, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.gate = nn.Linear(WIDTH, 64, bias=False), nn.Linear(WIDTH, 64, bias=False)
        self.down = nn.Linear(64, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        B, T, _ = x.shape
        h = self.n1(x)
        q = self.q(h).view(B, T, 4, 8).transpose(1, 2)
        k, v = (t.view(B, T, 2, 8).transpose(1, 2) for t in self.kv(h).chunk(2, -1))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, WIDTH))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs of channels turned by an angle that grows with the position."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Llama(nn.Module):
    """The shape of Llama."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(BYTES, WIDTH), nn.RMSNorm(WIDTH, eps=1e-5)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(2))
        self.head = nn.Linear(WIDTH, BYTES, bias=False)
        angles = torch.outer(torch.arange(LENGTH), 10000.0 ** (-torch.arange(0, 8, 2) / 8))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x)
        for layer in self.layers:
            h = layer(h, self.cos, self.sin)
        return self.head(self.norm(h))


class Recurrent(nn.Module):
    """Two layers of LSTM or GRU."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.tokens = nn.Embedding(BYTES, WIDTH)
        self.cells = getattr(nn, kind)(WIDTH, WIDTH, 2, batch_first=True)
        self.head = nn.Linear(WIDTH, BYTES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(self.tokens(x))[0])


class LowRank(nn.Module):
    """A frozen linear layer with a trained product of two thin matrices beside it."""

    def __init__(self, inner: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.inner = inner.requires_grad_(requires_grad=False)
        self.a = nn.Parameter(torch.randn(rank, inner.in_features) * 0.1)
        self.b = nn.Parameter(torch.zeros(inner.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + x @ self.a.T @ self.b.T * 2


def lora() -> nn.Module:
    """A GPT of which only the adapters of its attention are trained."""
    model = GPT().requires_grad_(requires_grad=False)
    for block in model.blocks:
        assert isinstance(block, Block)
        for name in ("qkv", "out"):
            setattr(block.attention, name, LowRank(getattr(block.attention, name)))
    return model


class Experts(nn.Module):
    """Each token goes to two of four experts, weighted; a second loss keeps them busy."""

    balance: Tensor

    def __init__(self, count: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.chosen, self.router = chosen, nn.Linear(WIDTH, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, WIDTH, 2 * WIDTH) * 0.1)
        self.down = nn.Parameter(torch.randn(count, 2 * WIDTH, WIDTH) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, WIDTH)
        odds = self.router(flat).softmax(-1)
        weights, best = odds.topk(self.chosen, dim=-1)
        share = torch.zeros_like(odds).scatter(1, best, weights / weights.sum(-1, keepdim=True))
        self.balance = (odds.mean(0) * (share > 0).float().mean(0)).sum() * odds.shape[1]
        hidden = F.silu(torch.einsum("nc,ech->neh", flat, self.up))
        mixed = torch.einsum("neh,ehc,ne->nc", hidden, self.down, share)
        return mixed.view_as(x)


class Mixture(nn.Module):
    """A transformer whose two layers at each position are experts."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(BYTES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.n1, self.n2, self.n3 = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.attention, self.experts = Attention(), Experts()
        self.head = nn.Linear(WIDTH, BYTES)

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        h = h + self.attention(self.n1(h))
        h = h + self.experts(self.n2(h))
        return self.head(self.n3(h))


class Masked(nn.Module):
    """nn.MultiheadAttention with a causal mask and one over padding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(BYTES, WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.head = nn.Linear(WIDTH, BYTES)

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        spaces = (x == ord("\n")) & (torch.arange(x.shape[1]) > 0)
        y, _ = self.attention(h, h, h, attn_mask=later, key_padding_mask=spaces, need_weights=False)
        return self.head(self.norm(h + y))


class Encoder(nn.Module):
    """Torch's own transformer encoder, with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(BYTES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, BYTES)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.layers(h, mask=mask, is_causal=True))


def next_byte(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the next byte."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def balanced(model: Any, x: Tensor, y: Tensor) -> Tensor:
    """The same, and the load of the experts."""
    return next_byte(model, x, y) + 0.01 * model.experts.balance


# ---- images ---------------------------------------------------------------------------------


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


def _tripled(network: type[nn.Module]) -> Callable[[], nn.Module]:
    """A network for colour images of 16 x 16, which is given digits."""

    class Enlarged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()
            self.head = nn.Linear(5, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.inner(F.interpolate(x, scale_factor=2).expand(-1, 3, -1, -1)))

    return Enlarged


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
    noise = torch.randn(len(x), 64)
    return F.mse_loss(model(kept.sqrt() * x.flatten(1) + (1 - kept).sqrt() * noise, level), noise)


def classified(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the digit."""
    return F.cross_entropy(model(x), y)


# ---- the list -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Animal:
    """A model with its task."""

    what: str
    """In a few words, for the table of docs/models.md."""
    make: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    lr: float = 3e-3
    length: int = LENGTH
    average: Average | None = None

    def job(self, steps: int = 3) -> TrainingJob:
        """The job, always with the same weights."""
        torch.manual_seed(1)
        data: Windows | Rows
        if self.loss in (next_byte, balanced):
            data = Windows(text(), length=self.length, batch=8)
        else:
            data = Rows(*images(), batch=16)
        optimizer = AdamW(lr=self.lr, eps=1e-6)
        return TrainingJob(
            self.make(), self.loss, optimizer, data, steps, average=self.average, seed=7
        )


ZOO: dict[str, Animal] = {
    "mlp": Animal("two linear layers", MLP, classified),
    "lenet": Animal("LeNet: convolutions under max pools", _tripled(LeNet), classified),
    "resnet": Animal("ResNet with BatchNorm", _tripled(ResNet), classified),
    "gpt": Animal("GPT with tied weights", GPT, next_byte),
    "gpt_dropout": Animal("GPT with dropout", lambda: GPT(0.1), next_byte),
    "checkpoints": Animal(
        "gradient checkpointing, dropout inside", lambda: GPT(0.1, checkpoints=True), next_byte
    ),
    "llama": Animal("Llama: RMSNorm, RoPE, SwiGLU, grouped queries", Llama, next_byte),
    "vit": Animal("ViT: convolved patches, a class token", ViT, classified),
    "lstm": Animal("two layers of LSTM", lambda: Recurrent("LSTM"), next_byte, length=6),
    "gru": Animal("two layers of GRU", lambda: Recurrent("GRU"), next_byte, length=6),
    "lora": Animal("LoRA: a frozen GPT with adapters", lora, next_byte, lr=1e-2),
    "moe": Animal("mixture of experts, top-2 routing", Mixture, balanced),
    "attention": Animal("nn.MultiheadAttention, causal and padding masks", Masked, next_byte),
    "encoder": Animal("nn.TransformerEncoder with dropout", Encoder, next_byte),
    "unet": Animal("U-Net: transposed convolutions, ways around", UNet, bright),
    "autoencoder": Animal("variational autoencoder, four losses", Autoencoder, several),
    "groupnorm": Animal("convolutions under GroupNorm", Grouped, classified),
    "shuffle": Animal("PixelShuffle", lambda: Larger("shuffle"), sharper),
    "nearest": Animal("nearest upsampling", lambda: Larger("nearest"), sharper),
    "bilinear": Animal("bilinear upsampling", lambda: Larger("bilinear"), sharper),
    "custom": Animal("an autograd.Function of one's own", Custom, classified),
    "diffusion": Animal("diffusion: random levels and noise", Noised, denoised),
    "average": Animal("a running average of the weights", MLP, classified, average=Average(0.9)),
}
"""Models by name."""
