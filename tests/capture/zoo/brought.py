"""Models of the transformers package, made from small configurations; nothing is downloaded.

The package is imported when a model is made: it takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from identic.node.capture import AdamW, Rows, TrainingJob
from tests.capture.zoo import digits, text
from tests.capture.zoo.language import BYTES

LENGTH = 12
SIZES = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}


def package() -> Any:
    """The transformers package, without its remarks about unset options."""
    import transformers  # noqa: PLC0415 - slow

    transformers.logging.set_verbosity_error()
    return transformers


def gpt2() -> Any:
    """GPT-2 with its own dropout and tied weights."""
    made = package()
    config = made.GPT2Config(vocab_size=BYTES, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    return made.GPT2LMHeadModel(config)


def llama() -> Any:
    """Llama with grouped queries."""
    made = package()
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return made.LlamaForCausalLM(made.LlamaConfig(vocab_size=BYTES, **heads, **SIZES))


def bert() -> Any:
    """BERT for masked tokens, with its own dropout."""
    made = package()
    heads = {"num_attention_heads": 2, "max_position_embeddings": 16}
    return made.BertForMaskedLM(made.BertConfig(vocab_size=BYTES, **heads, **SIZES))


def vit() -> Any:
    """ViT for classes of images."""
    made = package()
    image = {"image_size": 8, "patch_size": 2, "num_channels": 1, "num_labels": 10}
    config = made.ViTConfig(num_attention_heads=2, initializer_range=0.2, **image, **SIZES)
    return made.ViTForImageClassification(config)


def tokens() -> dict[str, Any]:
    """Lines of text with their labels, which these models shift themselves."""
    rows = np.array(text()[: 200 * LENGTH], np.int64).reshape(-1, LENGTH)
    return {"input_ids": rows, "labels": rows.copy()}


def masked() -> dict[str, Any]:
    """The same with every third token hidden, and padding of some lengths at the end."""
    found = tokens()
    hidden = np.arange(LENGTH) % 3 == 1
    found["labels"] = np.where(hidden, found["input_ids"], -100)
    found["input_ids"] = np.where(hidden, 0, found["input_ids"])
    lengths = 6 + np.arange(len(found["labels"]))[:, None] % 7
    found["attention_mask"] = (np.arange(LENGTH) < lengths).astype(np.int64)
    return found


def pictures() -> dict[str, Any]:
    """Digits and what they are."""
    pixels, labels = digits()
    return {"pixel_values": pixels, "labels": labels}


def its_own(model: Any, batch: dict[str, Tensor]) -> Any:
    """The loss that the model computes itself."""
    return model(**batch).loss


def without_cache(model: Any, batch: dict[str, Tensor]) -> Any:
    """The same, without the keys and values that decoding would keep."""
    return model(**batch, use_cache=False).loss


@dataclass(frozen=True)
class Brought:
    """A model of the package with its task."""

    what: str
    """In a few words, for the table of docs/models.md."""
    make: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    data: Callable[[], dict[str, Any]]
    batch: int = 8
    lr: float = 3e-3

    def job(self, steps: int = 3) -> TrainingJob:
        """The job, always with the same weights."""
        torch.manual_seed(1)
        model = self.make().train()
        optimizer, data = AdamW(lr=self.lr, eps=1e-6), Rows(self.data(), batch=self.batch)
        return TrainingJob(model, self.loss, optimizer, data, steps, seed=7)


BROUGHT: dict[str, Brought] = {
    "GPT2LMHeadModel": Brought("`transformers`: GPT-2 with dropout", gpt2, without_cache, tokens),
    "LlamaForCausalLM": Brought("`transformers`: Llama", llama, without_cache, tokens),
    "BertForMaskedLM": Brought(
        "`transformers`: BERT with dropout, hidden tokens, padding", bert, its_own, masked
    ),
    "ViTForImageClassification": Brought(
        "`transformers`: ViT", vit, its_own, pictures, batch=24, lr=1e-2
    ),
}
"""Models by name."""
