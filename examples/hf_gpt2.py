"""GPT-2 of the transformers package, from a configuration, on Python's own documentation.

Nothing is downloaded: the weights are new, the tokens are bytes. The model is used as it is,
with its dropout; the labels are shifted by the model itself.

    pip install transformers
    identic job submit examples/hf_gpt2.py:job --watch
"""

from __future__ import annotations

from pydoc_data.topics import topics
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import identic

CONTEXT = 64


def loss(model: Any, x: Tensor, _: Tensor) -> Tensor:
    """Mean cross entropy of the next byte, as the model computes it."""
    found: Tensor = model(input_ids=x, labels=x, use_cache=False).loss
    return found


def job(layers: int = 3) -> identic.TrainingJob:
    """Forty steps."""
    torch.manual_seed(3)
    config = GPT2Config(vocab_size=256, n_positions=CONTEXT, n_embd=96, n_layer=layers, n_head=4)
    model = GPT2LMHeadModel(config).train()
    text = "\n\n".join(topics[name] for name in sorted(topics))
    return identic.TrainingJob(
        model=model,
        loss=loss,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1),
        data=identic.Windows(np.frombuffer(text.encode(), np.uint8), length=CONTEXT, batch=8),
        steps=40,
        schedule=identic.WarmupCosine(warmup=5, floor=0.1),
        clip=1.0,
        seed=3,
    )
