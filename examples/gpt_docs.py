"""A small GPT that learns to write Python's own documentation, byte by byte.

identic job submit examples/gpt_docs.py:job --watch
"""

from __future__ import annotations

from pydoc_data.topics import topics

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import identic

BYTES, WIDTH, HEADS, LAYERS, CONTEXT = 256, 128, 4, 4, 128


class Attention(nn.Module):
    """Every position looks at itself and the positions before it."""

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
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x  # noqa: RET504


class GPT(nn.Module):
    """Bytes in, scores of the next byte out."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = nn.Embedding(BYTES, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, BYTES, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(
                    p, std=0.02 / (2 * LAYERS) ** 0.5 if name.endswith("out.weight") else 0.02
                )

    def forward(self, x: Tensor) -> Tensor:
        """(B, T) -> (B, T, BYTES)."""
        h: Tensor = self.bytes(x) + self.positions.weight[: x.shape[1]]
        for block in self.blocks:
            h = block(h)
        h = self.head(self.norm(h))
        return h  # noqa: RET504


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the next byte."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def job() -> identic.TrainingJob:
    """Sixty steps; enough to see the loss fall."""
    torch.manual_seed(1)
    text = "\n\n".join(topics[name] for name in sorted(topics))
    return identic.TrainingJob(
        model=GPT(),
        loss=loss,
        optimizer=identic.AdamW(lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1),
        data=identic.Windows(np.frombuffer(text.encode(), np.uint8), length=CONTEXT, batch=16),
        steps=60,
        schedule=identic.WarmupCosine(warmup=10, floor=0.1),
        clip=1.0,
        seed=1,
    )
