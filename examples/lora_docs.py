"""LoRA: the GPT of gpt_docs.py, frozen, with small trained matrices beside its attention.

Goes on from the demo's model if that is there: run `make demo` (or fetch a job of gpt_docs.py),
and name its file in MODEL. Without one the adapters learn beside untrained weights.

    MODEL=out/model.safetensors identic job submit examples/lora_docs.py:job --watch
"""

from __future__ import annotations

import os
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch
from gpt_docs import CONTEXT, GPT, loss  # type: ignore[import-not-found]
from safetensors.torch import load_file
from torch import Tensor, nn

import identic

RANK, SCALE = 4, 2.0


class LowRank(nn.Module):
    """A frozen linear layer, and the product of two thin matrices that is trained beside it."""

    def __init__(self, inner: nn.Linear) -> None:
        super().__init__()
        self.inner = inner
        self.down = nn.Linear(inner.in_features, RANK, bias=False)
        self.up = nn.Linear(RANK, inner.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """What the layer gives, and a little more."""
        x = self.inner(x) + self.up(self.down(x)) * SCALE
        return x  # noqa: RET504 - torch declares what modules return as anything


def adapted(weights: Path | None) -> nn.Module:
    """The GPT with adapters, of which alone the adapters are trained."""
    torch.manual_seed(2)
    model: nn.Module = GPT()
    if weights is not None:
        model.load_state_dict(load_file(weights))
    model.requires_grad_(requires_grad=False)
    for block in model.get_submodule("blocks").children():
        for name in ("qkv", "out"):
            layer = getattr(block.attention, name)
            setattr(block.attention, name, LowRank(layer))
    return model


def job(steps: int = 30) -> identic.TrainingJob:
    """Thirty steps on the part of the documentation about statements."""
    given = os.environ.get("MODEL")
    text = "\n\n".join(topics[name] for name in ("for", "if", "while", "with", "try"))
    return identic.TrainingJob(
        model=adapted(Path(given) if given else None),
        loss=loss,
        optimizer=identic.AdamW(lr=3e-3, weight_decay=0.0),
        data=identic.Windows(np.frombuffer(text.encode(), np.uint8), length=CONTEXT, batch=8),
        steps=steps,
        seed=2,
    )
