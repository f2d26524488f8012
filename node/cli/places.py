"""Where the values of a job's steps come from in the submitter's source.

Captured on the submitter's machine only, kept there, and never sent: a program carries no
names of files. With it a dispute's screen says ``blocks.2.mlp (train.py:31)``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from identic.protocol.graph import Place
from identic.protocol.ids import JobId
from identic.protocol.program.plan import Part, StepPlan

Places = Mapping[int, str]
"""Text for each plan value that has one."""


def of_plan(plan: StepPlan, gradient: Sequence[Place], update: Sequence[Place]) -> Places:
    """Places of plan values from the notes of the two sections."""
    found = {}
    for number, call in enumerate(plan.calls, start=len(plan.loads)):
        if call.part is Part.REDUCTION:
            continue
        spots = gradient if call.part is Part.GRADIENT else update
        if call.position < len(spots) and (text := str(spots[call.position])):
            found[number] = text
    return found


def path_of(folder: Path, job: JobId) -> Path:
    """Where a client keeps the places of a job."""
    return folder / "places" / f"{job.hex()}.json"


def save(path: Path, places: Places) -> None:
    """Keep the places of a job."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({str(value): text for value, text in places.items()}))


def load(path: Path) -> Places:
    """Places of a job as far as they are known here; they are for reading only."""
    try:
        found = json.loads(path.read_text())
        return {int(value): str(text) for value, text in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}
