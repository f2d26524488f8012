"""Language models, and their losses."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

# mypy: disable-error-code="no-any-return"

BYTES, WIDTH, LENGTH = 128, 32, 16


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
