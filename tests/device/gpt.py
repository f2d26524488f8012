"""GPTs of the usual sizes as jobs, on tokens of noise: for the time and the memory of a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import identic


@dataclass(frozen=True)
class Size:
    """Sizes of a model and of its batch."""

    layers: int
    heads: int
    width: int
    vocabulary: int = 50257
    batch: int = 8
    length: int = 1024


SMALL = Size(layers=12, heads=12, width=768)
"""GPT-2 small: 124 million parameters."""

MEDIUM = Size(layers=24, heads=16, width=1024, batch=4)
"""350 million parameters; beside torch's the step has room on a device of 80 GB."""

LEAST = Size(layers=2, heads=2, width=32, vocabulary=61, batch=2, length=12)
"""For a look at the program of this script where there is no device."""


class Block(nn.Module):
    """Attention to the positions before, then two layers at each position."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads, width = size.heads, size.width
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        B, T, C = x.shape
        parts = self.qkv(self.before(x)).split(C, 2)
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        wide = F.gelu(self.wide(self.between(x)), approximate="tanh")
        x = x + self.narrow(wide)
        return x  # noqa: RET504 - torch declares what modules return as anything


class GPT(nn.Module):
    """Tokens in, scores of the next token out; the table of tokens is the last layer, too."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.places = nn.Embedding(size.length, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.last = nn.LayerNorm(size.width)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.tokens.weight)


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the next token."""
    scores = model(x)
    return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))


def job(size: Size) -> identic.TrainingJob:
    """A few steps on noise."""
    torch.manual_seed(1)
    tokens = np.random.default_rng(1).integers(0, size.vocabulary, 40 * size.length)
    return identic.TrainingJob(
        model=GPT(size),
        loss=loss,
        optimizer=identic.AdamW(lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1),
        data=identic.Windows(tokens.astype(np.int64), length=size.length, batch=size.batch),
        steps=100,
        clip=1.0,
    )
