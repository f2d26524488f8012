"""A job of the full ResNet-18: 8 images of 3 x 64 x 64 a step, 1,000 classes."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

import identic

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "resnet_digits.py"
BATCH, IMAGES, STEPS = 8, 64, 1000


def job() -> identic.TrainingJob:
    """Images of noise, as good as any for the time of a step."""
    example = runpy.run_path(str(EXAMPLE))
    random = np.random.default_rng(1)
    return identic.TrainingJob(
        model=example["ResNet18"](),
        loss=example["loss"],
        optimizer=identic.SGD(lr=0.01, momentum=0.9, weight_decay=1e-4),
        data=identic.Rows(
            random.standard_normal((IMAGES, 3, 64, 64), dtype=np.float32),
            random.integers(0, 1000, IMAGES),
            batch=BATCH,
        ),
        steps=STEPS,
    )
