"""Capture: an ordinary torch training job becomes a program.

The only part of the project that imports torch; it runs on the submitter's machine, in the
submitter's process, and never on a node.

* ``load_job("train.py:job")`` runs the user's file and returns its ``TrainingJob``.
* ``capture(job)`` returns the program, its initial state, its data, and notes for people.
* ``check_against_eager(captured, job)`` compares one step with torch itself.

Spec: docs/spec/capture.md.
"""

from __future__ import annotations

import importlib.util

from identic.protocol.errors import LocalError

if importlib.util.find_spec("torch") is None:
    raise LocalError(
        "capturing a job needs PyTorch, which is not installed",
        remedy="run: pip install 'identic[torch]'",
    )

from identic.node.capture.check import Comparison, check_against_eager
from identic.node.capture.data import Examples, Rows, Windows
from identic.node.capture.initial import initial
from identic.node.capture.job import SGD, AdamW, Average, TrainingJob, WarmupCosine
from identic.node.capture.loading import load_job
from identic.node.capture.program import Captured, Notes, Summary, capture
from identic.node.capture.start import Start
from identic.protocol.lowering import CaptureError

__all__ = [
    "SGD",
    "AdamW",
    "Average",
    "CaptureError",
    "Captured",
    "Comparison",
    "Examples",
    "Notes",
    "Rows",
    "Start",
    "Summary",
    "TrainingJob",
    "WarmupCosine",
    "Windows",
    "capture",
    "check_against_eager",
    "initial",
    "load_job",
]
