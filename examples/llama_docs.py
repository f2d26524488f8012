"""A small model in the shape of Llama that learns Python's own documentation, byte by byte.

RMSNorm, rotary positions, two queries for each key, a gated activation; torch's own optimizer
with two groups, torch's own scheduler, and a running average of the weights, which is what the
model file holds.

    identic job submit examples/llama_docs.py:job --watch
"""

from __future__ import annotations

from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

import identic

BYTES, WIDTH, HEADS, KEYS, LAYERS, CONTEXT = 256, 96, 6, 3, 3, 64
SIZE = WIDTH // HEADS


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs of channels turned by an angle that grows with the position."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(nn.Module):
    """Attention with grouped queries, then a gated layer at each position."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, eps=1e-5), nn.RMSNorm(WIDTH, eps=1e-5)
        self.q = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.k = nn.Linear(WIDTH, KEYS * SIZE, bias=False)
        self.v = nn.Linear(WIDTH, KEYS * SIZE, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 256, bias=False)
        self.up = nn.Linear(WIDTH, 256, bias=False)
        self.down = nn.Linear(256, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        B, T, C = x.shape
        h = self.norm1(x)
        q = rotated(self.q(h).view(B, T, HEADS, SIZE).transpose(1, 2), cos, sin)
        k = rotated(self.k(h).view(B, T, KEYS, SIZE).transpose(1, 2), cos, sin)
        v = self.v(h).view(B, T, KEYS, SIZE).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        h = self.norm2(x)
        x = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return x  # noqa: RET504 - torch declares what modules return as anything


class Llama(nn.Module):
    """Bytes in, scores of the next byte out."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.bytes = nn.Embedding(BYTES, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH, eps=1e-5), nn.Linear(WIDTH, BYTES, bias=False)
        angles = torch.outer(torch.arange(CONTEXT), 10000.0 ** (-torch.arange(0, SIZE, 2) / SIZE))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T) -> (B, T, BYTES)."""
        h: Tensor = self.bytes(x)
        for layer in self.layers:
            h = layer(h, self.cos, self.sin)
        h = self.head(self.norm(h))
        return h  # noqa: RET504


def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross entropy of the next byte."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def job(steps: int = 60) -> identic.TrainingJob:
    """Sixty steps; enough to see the loss fall."""
    torch.manual_seed(1)
    model = Llama()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
    warmup = LinearLR(optimizer, 0.1, total_iters=10)
    schedule = SequentialLR(optimizer, [warmup, CosineAnnealingLR(optimizer, steps)], [10])
    text = "\n\n".join(topics[name] for name in sorted(topics))
    return identic.TrainingJob(
        model=model,
        loss=loss,
        optimizer=optimizer,
        data=identic.Windows(np.frombuffer(text.encode(), np.uint8), length=CONTEXT, batch=16),
        steps=steps,
        schedule=schedule,
        clip=1.0,
        average=identic.Average(0.95),
        seed=1,
    )
