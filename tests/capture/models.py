"""Small models and losses as a user writes them, one for each thing that captures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from identic.node.capture import SGD, AdamW, Rows, TrainingJob, Windows

# mypy: disable-error-code="no-any-return"


class MLP(nn.Module):
    """Linear layers with an activation and optional dropout."""

    def __init__(self, act: Callable[[Tensor], Tensor] = F.relu, p: float = 0.0) -> None:
        super().__init__()
        self.l1, self.l2 = nn.Linear(12, 16), nn.Linear(16, 5)
        self.act, self.drop = act, nn.Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        return self.l2(self.drop(self.act(self.l1(x))))


class Attention(nn.Module):
    """Causal attention with optional dropout."""

    def __init__(self, width: int, heads: int, p: float) -> None:
        super().__init__()
        self.heads, self.p = heads, p
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class GPT(nn.Module):
    """A transformer with tied or untied embeddings."""

    def __init__(self, *, tied: bool = False, p: float = 0.0, approximate: str = "none") -> None:
        super().__init__()
        V, T, C = 32, 8, 16
        self.tokens, self.places = nn.Embedding(V, C), nn.Embedding(T, C)
        self.n1, self.n2, self.n3 = nn.LayerNorm(C), nn.LayerNorm(C), nn.LayerNorm(C)
        self.attention = Attention(C, 2, p)
        self.mlp = nn.Sequential(
            nn.Linear(C, 4 * C),
            nn.GELU(approximate=approximate),
            nn.Linear(4 * C, C),
            nn.Dropout(p),
        )
        self.head = nn.Linear(C, V, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        h = h + self.attention(self.n1(h))
        h = h + self.mlp(self.n2(h))
        return self.head(self.n3(h))


class RMSNorm(nn.Module):
    """Root mean square norm with a hand-written formula."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Llama(nn.Module):
    """Rotary positions in buffers, grouped keys, gated activation."""

    def __init__(self) -> None:
        super().__init__()
        C, T = 16, 8
        self.tokens, self.norm, self.norm2 = nn.Embedding(32, C), RMSNorm(C), RMSNorm(C)
        self.q, self.k = nn.Linear(C, C, bias=False), nn.Linear(C, 8, bias=False)
        self.v, self.o = nn.Linear(C, 8, bias=False), nn.Linear(C, C, bias=False)
        self.up, self.gate = nn.Linear(C, 24, bias=False), nn.Linear(C, 24, bias=False)
        self.down, self.head = nn.Linear(24, C, bias=False), nn.Linear(C, 32, bias=False)
        angles = torch.outer(
            torch.arange(T).float(), 10000.0 ** (-torch.arange(0, 8, 2).float() / 8)
        )
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        cos: Any = self.cos
        sin: Any = self.sin
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x)
        B, T, C = h.shape
        n = self.norm(h)
        q = self.rotate(self.q(n).view(B, T, 2, 8).transpose(1, 2))
        k = self.rotate(self.k(n).view(B, T, 1, 8).transpose(1, 2)).repeat_interleave(2, 1)
        v = self.v(n).view(B, T, 1, 8).transpose(1, 2).repeat_interleave(2, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.o(y.transpose(1, 2).reshape(B, T, C))
        n = self.norm2(h)
        return self.head(h + self.down(F.silu(self.gate(n)) * self.up(n)))


class BatchNormed(nn.Module):
    """Batch norm writes its running statistics in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.l1, self.norm, self.l2 = nn.Linear(12, 16), nn.BatchNorm1d(16), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.l2(torch.tanh(self.norm(self.l1(x))))


class Counting(nn.Module):
    """A buffer replaced by assignment, and a layer under activation checkpointing."""

    calls: Tensor

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.l1, self.l2, self.p = nn.Linear(12, 16), nn.Linear(16, 5), p
        self.register_buffer("calls", torch.ones(()))

    def inner(self, x: Tensor) -> Tensor:
        return F.dropout(torch.sigmoid(self.l1(x)), self.p)

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        h: Any = checkpoint(self.inner, x, use_reentrant=False)
        return self.l2(h) * self.calls


class Recurrent(nn.Module):
    """An LSTM over tokens."""

    def __init__(self, kind: str = "LSTM") -> None:
        super().__init__()
        self.tokens = nn.Embedding(32, 8)
        self.cells = getattr(nn, kind)(8, 12, batch_first=True)
        self.head = nn.Linear(12, 32)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(self.tokens(x))[0])


class Encoder(nn.Module):
    """Torch's own transformer layer, with a token mask made in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)
        layer = nn.TransformerEncoderLayer(
            16, 2, 32, dropout=0.0, activation="gelu", batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layers(self.tokens(x), mask=mask, is_causal=True))


def frozen() -> nn.Module:
    """A model whose first layer is not trained."""
    model = MLP()
    model.l1.requires_grad_(requires_grad=False)
    return model


def with_functions(functions: Sequence[Callable[[Tensor], Tensor]]) -> Callable[[], nn.Module]:
    """A model that applies functions to its hidden layer."""

    def make() -> nn.Module:
        def act(x: Tensor) -> Tensor:
            for function in functions:
                x = function(x)
            return x

        return MLP(act)

    return make


def classify(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x), y)


def next_token(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


_ADAMW = AdamW(lr=1e-2, weight_decay=0.1)


@dataclass(frozen=True)
class Case:
    """One captured job."""

    make: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    tokens: bool = False
    optimizer: AdamW | SGD = _ADAMW
    clip: float | None = None
    shards: int = 1

    def job(self, **changed: Any) -> TrainingJob:
        """The job, always with the same weights and data."""
        torch.manual_seed(3)
        random = np.random.default_rng(5)
        data: Rows | Windows = Rows(
            random.standard_normal((40, 12)).astype("float32"), random.integers(0, 5, 40), batch=8
        )
        if self.tokens:
            data = Windows(random.integers(0, 32, 300).astype("uint8"), length=8, batch=4)
        settings: dict[str, Any] = {
            "model": self.make(),
            "loss": self.loss,
            "optimizer": self.optimizer,
            "data": data,
            "steps": 4,
            "clip": self.clip,
            "shards": self.shards,
            "seed": 11,
        }
        return TrainingJob(**{**settings, **changed})


def _smooth(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    scores = model(x)
    weights = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.5]).to(scores.dtype)
    return F.cross_entropy(scores, y, weight=weights, label_smoothing=0.1, ignore_index=2)


def _several(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    scores = model(x)
    target = F.one_hot(y, 5).to(scores.dtype)
    picked = scores.gather(1, y[:, None]).squeeze(1)
    return (
        F.mse_loss(scores, target)
        + F.binary_cross_entropy_with_logits(scores, target)
        + F.huber_loss(scores, target)
        + F.smooth_l1_loss(scores, target)
        + (scores.argmax(1) == y).to(scores.dtype).mean()
        + picked.var()
        + scores.max(dim=1).values.mean()
    )


def _masked(x: Tensor) -> Tensor:
    mask = torch.ones(16, 16).triu(1).bool()[: x.shape[0]]
    return x.masked_fill(mask, -1.0)


def _pieces(x: Tensor) -> Tensor:
    a, b = x.chunk(2, 1)
    y = torch.stack([a, b], 1).transpose(1, 2).flatten(1)
    y = torch.cat([y[:, 4:], F.pad(y[:, :3], (1, 0))], 1)
    y = torch.cat([y[:, 1::2] * 2, y[:, ::3], y[:, :2]], 1)
    return y.unsqueeze(1).expand(-1, 3, -1).mean(1) + y.repeat(1, 2)[:, 2:18] + x.roll(1, 1)


def _curves(x: Tensor) -> Tensor:
    y = torch.tanh(x) + torch.sigmoid(x) + F.silu(x) + F.leaky_relu(x) + F.elu(x) + F.softplus(x)
    y = y + x.abs() + x.sin() * x.cos() + x.exp() - (x * x + 1).log() + (x * x + 1).sqrt() + x**3
    return y + 1 / (1 + x * x) + x.clamp(-0.5, 0.5) + F.hardtanh(x) + x.softmax(1) + torch.erf(x)


def _in_place(x: Tensor) -> Tensor:
    y = x * 1.0
    y += 1
    y[:, 2:4] = y[:, 0:2] * 3
    y[:, 5] = 0.25
    y.mul_(0.5).relu_()
    return y


def _norms(x: Tensor) -> Tensor:
    y = F.normalize(x, dim=1) + x.norm() + F.group_norm(x, 4) + x.sum(0) + x.mean((0, 1))
    return (
        y
        + (x - x.mean(0)) / (x.std(0) + 1)
        + x.amin(1, keepdim=True)
        + x.view(-1, 4, 4).sum((0, 2)).repeat(4)
    )


def _noise(x: Tensor) -> Tensor:
    return x + 0.1 * torch.randn_like(x) + torch.rand(16)


CASES: dict[str, Case] = {
    "mlp": Case(MLP, classify, optimizer=SGD(lr=0.1)),
    "mlp_momentum": Case(
        MLP, classify, optimizer=SGD(lr=0.1, momentum=0.9, weight_decay=0.01), clip=0.1
    ),
    "mlp_shards": Case(MLP, classify, shards=4, clip=1.0),
    "frozen": Case(frozen, classify),
    "batch_norm": Case(BatchNormed, classify, shards=2),
    "counting": Case(Counting, classify),
    "losses": Case(MLP, _several),
    "smooth": Case(MLP, _smooth),
    "gpt": Case(GPT, next_token, tokens=True, clip=1.0),
    "gpt_tied": Case(lambda: GPT(tied=True, approximate="tanh"), next_token, tokens=True),
    "llama": Case(Llama, next_token, tokens=True),
    "lstm": Case(Recurrent, next_token, tokens=True),
    "gru": Case(lambda: Recurrent("GRU"), next_token, tokens=True),
    "encoder": Case(Encoder, next_token, tokens=True),
    "masked": Case(with_functions([_masked]), classify),
    "pieces": Case(with_functions([_pieces]), classify),
    "curves": Case(with_functions([_curves]), classify),
    "in_place": Case(with_functions([_in_place]), classify),
    "norms": Case(with_functions([_norms]), classify),
}
"""Jobs without random operations."""

RANDOM: dict[str, Case] = {
    "mlp_dropout": Case(lambda: MLP(p=0.5), classify),
    "gpt_dropout": Case(lambda: GPT(p=0.1), next_token, tokens=True, shards=2),
    "noise": Case(with_functions([_noise]), classify),
}
"""Jobs that draw random numbers."""
