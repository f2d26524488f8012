"""GPT-2 small with random weights and random tokens: the shapes of a real step, cut short.

The layout, the widths and the vocabulary are those of GPT-2 small; a batch is one short window.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import identic

TOKENS, WIDTH, HEADS, LAYERS, CONTEXT = 50_257, 768, 12, 12, 1024
WINDOW = 32
"""Tokens of the one window of a batch."""


class Attention(nn.Module):
    """Causal attention of twelve heads."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        B, T, C = x.shape
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in self.qkv(x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = self.out(y.transpose(1, 2).reshape(B, T, C))
        return x  # noqa: RET504 - torch declares what modules return as anything


class Block(nn.Module):
    """Attention, then two layers at each position."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x  # noqa: RET504


class GPT2(nn.Module):
    """Tokens in, scores of the next token out; the scores share the embedding's weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T) -> (B, T, TOKENS)."""
        h: Tensor = self.tokens(x) + self.positions.weight[: x.shape[1]]
        for block in self.blocks:
            h = block(h)
        h = F.linear(self.norm(h), self.tokens.weight)
        return h  # noqa: RET504


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the next token."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def job() -> identic.TrainingJob:
    """Two steps."""
    torch.manual_seed(1)
    text = np.random.default_rng(1).integers(0, TOKENS, 1 << 14)
    return identic.TrainingJob(
        model=GPT2(),
        loss=loss,
        optimizer=identic.AdamW(lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1),
        data=identic.Windows(text, length=WINDOW, batch=1),
        steps=2,
        clip=1.0,
        seed=1,
    )
