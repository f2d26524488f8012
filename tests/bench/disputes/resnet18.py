"""ResNet-18 at its full width, on random images of 64 x 64: four steps of four."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

import identic

EXAMPLE = runpy.run_path(str(Path(__file__).resolve().parents[3] / "examples/resnet_digits.py"))
SIDE, BATCH, CLASSES = 64, 4, 1000


def job() -> identic.TrainingJob:
    """Stochastic gradient descent with momentum, as the model was trained with."""
    draw = np.random.default_rng(1)
    images = draw.standard_normal((16, 3, SIDE, SIDE), dtype=np.float32)
    return identic.TrainingJob(
        model=EXAMPLE["ResNet18"](64, 3, CLASSES),
        loss=EXAMPLE["loss"],
        optimizer=identic.SGD(lr=0.1, momentum=0.9, weight_decay=1e-4),
        data=identic.Rows(images, draw.integers(0, CLASSES, 16), batch=BATCH),
        steps=4,
        seed=1,
    )
