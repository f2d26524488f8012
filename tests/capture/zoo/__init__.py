"""Small models of all kinds that people train, each with a job over real data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import Tensor, nn

from identic.node.capture import AdamW, Average, Rows, TrainingJob, Windows
from tests.capture.convnets import LeNet
from tests.capture.zoo import images as of_images
from tests.capture.zoo import language as lm


@cache
def digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The digits of scikit-learn: 1797 images of 8 x 8, and which digit each is."""
    pixels, labels = load_digits(return_X_y=True)
    return (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8), labels.astype(np.int64)


@cache
def text() -> NDArray[np.uint8]:
    """Python's own documentation, ASCII."""
    whole = "\n\n".join(topics[name] for name in sorted(topics))
    return np.frombuffer(whole.encode("ascii", "replace"), np.uint8)


@dataclass(frozen=True)
class Animal:
    """A model with its task."""

    what: str
    """In a few words, for the table of docs/models.md."""
    make: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    lr: float = 3e-3
    length: int = lm.LENGTH
    average: Average | None = None

    def job(self, steps: int = 3) -> TrainingJob:
        """The job, always with the same weights."""
        torch.manual_seed(1)
        data: Windows | Rows
        if self.loss in (lm.next_byte, lm.balanced):
            data = Windows(text(), length=self.length, batch=8)
        else:
            data = Rows(*digits(), batch=16)
        optimizer = AdamW(lr=self.lr, eps=1e-6)
        return TrainingJob(
            self.make(), self.loss, optimizer, data, steps, average=self.average, seed=7
        )


ZOO: dict[str, Animal] = {
    "mlp": Animal("two linear layers", of_images.MLP, of_images.classified),
    "lenet": Animal(
        "LeNet: convolutions under max pools", of_images.tripled(LeNet), of_images.classified
    ),
    "resnet": Animal("ResNet-18 with BatchNorm", of_images.enlarged, of_images.classified),
    "gpt": Animal("GPT with tied weights", lm.GPT, lm.next_byte),
    "gpt_dropout": Animal("GPT with dropout", lambda: lm.GPT(0.1), lm.next_byte),
    "checkpoints": Animal(
        "gradient checkpointing, dropout inside",
        lambda: lm.GPT(0.1, checkpoints=True),
        lm.next_byte,
    ),
    "llama": Animal("Llama: RMSNorm, RoPE, SwiGLU, grouped queries", lm.Llama, lm.next_byte),
    "vit": Animal("ViT: convolved patches, a class token", of_images.ViT, of_images.classified),
    "lstm": Animal("two layers of LSTM", lambda: lm.Recurrent("LSTM"), lm.next_byte, length=6),
    "gru": Animal("two layers of GRU", lambda: lm.Recurrent("GRU"), lm.next_byte, length=6),
    "lora": Animal("LoRA: a frozen GPT with adapters", lm.lora, lm.next_byte, lr=1e-2),
    "moe": Animal("mixture of experts, top-2 routing", lm.Mixture, lm.balanced),
    "attention": Animal("nn.MultiheadAttention, causal and padding masks", lm.Masked, lm.next_byte),
    "encoder": Animal("nn.TransformerEncoder with dropout", lm.Encoder, lm.next_byte),
    "unet": Animal("U-Net: transposed convolutions, ways around", of_images.UNet, of_images.bright),
    "autoencoder": Animal(
        "variational autoencoder, four losses", of_images.Autoencoder, of_images.several
    ),
    "groupnorm": Animal("convolutions under GroupNorm", of_images.Grouped, of_images.classified),
    "shuffle": Animal("PixelShuffle", lambda: of_images.Larger("shuffle"), of_images.sharper),
    "nearest": Animal("nearest upsampling", lambda: of_images.Larger("nearest"), of_images.sharper),
    "bilinear": Animal(
        "bilinear upsampling", lambda: of_images.Larger("bilinear"), of_images.sharper
    ),
    "custom": Animal("an autograd.Function of one's own", of_images.Custom, of_images.classified),
    "diffusion": Animal("diffusion: random levels and noise", of_images.Noised, of_images.denoised),
    "average": Animal(
        "a running average of the weights",
        of_images.MLP,
        of_images.classified,
        average=Average(0.9),
    ),
}
"""Models by name."""
