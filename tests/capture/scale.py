"""``python -m tests.capture.scale NAME``: what it takes to capture a large model, as JSON.

Memory is the most that was held beside the model. ``gpt2`` is GPT-2 small with its weights, on
4 x 1024 tokens; ``llama`` has the shape of Llama 7B and stands on the meta device, without
weights, on 1 x 2048 tokens. Both are those of transformers.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from identic.node.capture import AdamW, TrainingJob, Windows, capture
from identic.protocol.encoding import encode
from identic.protocol.program.codec import load
from identic.protocol.program.validate import Limits
from tests.capture.zoo.brought import package

LIMITS = Limits(max_bytes=1 << 42)
"""Beyond the memory of this machine: nothing of the program runs."""


def gpt2() -> tuple[nn.Module, int, int]:
    """Model, examples and tokens of each."""
    made = package()
    return made.GPT2LMHeadModel(made.GPT2Config()), 4, 1024


def llama() -> tuple[nn.Module, int, int]:
    """The same of the larger one."""
    made = package()
    with torch.device("meta"):
        return made.LlamaForCausalLM(made.LlamaConfig()), 1, 2048


MODELS = {"gpt2": gpt2, "llama": llama}


def loss(model: Any, x: torch.Tensor, _: torch.Tensor) -> Any:
    """The model's own."""
    return model(input_ids=x, labels=x, use_cache=False).loss


def held(what: str) -> int:
    """Bytes that this process holds (``VmRSS``), or has held at most (``VmHWM``); Linux."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def measured(name: str) -> dict[str, float]:
    """Capture, encode, and validate as a node does: counts, bytes, seconds of processor time."""
    model, batch, length = MODELS[name]()
    data = Windows(np.zeros(1 << 16, np.uint16), length=length, batch=batch)
    job = TrainingJob(model.train(), loss, AdamW(lr=1e-3), data, 100, seed=7)
    weights = sum(p.numel() for p in model.parameters())
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak so far
    before, began = held("VmRSS"), time.process_time()
    captured = capture(job)
    traced = time.process_time()
    encoded = encode(captured.program)
    program = load(encoded, LIMITS)
    return {
        "weights": weights,
        "instructions": len(program.gradient.instructions) + len(program.update.instructions),
        "encoded": len(encoded),
        "memory": held("VmHWM") - before,
        "capture_seconds": round(traced - began, 1),
        "validate_seconds": round(time.process_time() - traced, 1),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measured(sys.argv[1])) + "\n")
