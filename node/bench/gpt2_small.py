"""A job of GPT-2 small: 124 million numbers, 12 layers of 768, 50,257 tokens; 256 tokens a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import identic

TOKENS, CONTEXT, STEPS = 1 << 14, 256, 1000


def loss(model: Any, x: Tensor, _: Tensor) -> Tensor:
    """Mean cross entropy of the next token, as the model computes it."""
    found: Tensor = model(input_ids=x, labels=x, use_cache=False).loss
    return found


def job(batch: int = 1) -> identic.TrainingJob:
    """Weights are new and tokens noise, as good as any for the time of a step.

    Args:
        batch: windows of 256 tokens a step.
    """
    torch.manual_seed(1)
    config = GPT2Config(n_positions=CONTEXT, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    tokens = np.random.default_rng(1).integers(0, config.vocab_size, TOKENS, dtype=np.int32)
    return identic.TrainingJob(
        model=GPT2LMHeadModel(config).train(),
        loss=loss,
        optimizer=identic.AdamW(lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1),
        data=identic.Windows(tokens, length=CONTEXT, batch=batch),
        steps=STEPS,
        clip=1.0,
        seed=1,
    )


def job_of_4() -> identic.TrainingJob:
    """1,024 tokens a step."""
    return job(4)
