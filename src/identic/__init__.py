"""Identic: training runs that anyone can re-execute, bit for bit.

The names a job file uses are found here: ``identic.TrainingJob``, ``identic.AdamW`` and so
on. They are loaded on first use, since only a submitter's machine has torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from identic.node.capture.data import Examples as Examples
    from identic.node.capture.data import Rows as Rows
    from identic.node.capture.data import Windows as Windows
    from identic.node.capture.initial import initial as initial
    from identic.node.capture.job import SGD as SGD
    from identic.node.capture.job import AdamW as AdamW
    from identic.node.capture.job import Average as Average
    from identic.node.capture.job import TrainingJob as TrainingJob
    from identic.node.capture.job import WarmupCosine as WarmupCosine
    from identic.node.capture.start import Start as Start

_JOB_WORDS = {
    "AdamW": "job",
    "Average": "job",
    "Examples": "data",
    "Rows": "data",
    "SGD": "job",
    "Start": "start",
    "TrainingJob": "job",
    "WarmupCosine": "job",
    "Windows": "data",
    "initial": "initial",
}

__all__ = [
    "SGD",
    "AdamW",
    "Average",
    "Examples",
    "Rows",
    "Start",
    "TrainingJob",
    "WarmupCosine",
    "Windows",
    "initial",
]


def __getattr__(name: str) -> Any:
    """Load a job word on first use."""
    if name not in _JOB_WORDS:
        raise AttributeError(f"module 'identic' has no attribute {name!r}")
    return getattr(importlib.import_module(f"identic.node.capture.{_JOB_WORDS[name]}"), name)
