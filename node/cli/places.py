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


class Places(dict[int, str]):
    """Text for each plan value that has one, such as ``blocks.2.mlp  (train.py:31)``.

    Attributes:
        lines: the line of source at that place, for those values whose line is known.
    """

    def __init__(self, texts: Mapping[int, str] | None = None) -> None:
        """Start with texts and no lines."""
        super().__init__(texts or {})
        self.lines: dict[int, str] = {}


def of_plan(plan: StepPlan, gradient: Sequence[Place], update: Sequence[Place]) -> Places:
    """Places of plan values from the notes of the two sections."""
    found = Places()
    for number, call in enumerate(plan.calls, start=len(plan.loads)):
        if call.part is Part.REDUCTION:
            continue
        spots = gradient if call.part is Part.GRADIENT else update
        if call.position >= len(spots):
            continue
        spot = spots[call.position]
        if text := str(spot):
            found[number] = text
        if spot.text:
            found.lines[number] = spot.text
    return found


def path_of(folder: Path, job: JobId) -> Path:
    """Where a client keeps the places of a job."""
    return folder / "places" / f"{job.hex()}.json"


def save(path: Path, places: Places) -> None:
    """Keep the places of a job."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {"places": places, "lines": places.lines}
    path.write_text(json.dumps(kept))


def load(path: Path) -> Places:
    """Places of a job as far as they are known here; they are for reading only."""
    try:
        kept = json.loads(path.read_text())
        # Earlier files hold the places alone.
        found = Places(_texts(kept.get("places", kept)))
        found.lines = _texts(kept.get("lines", {}))
    except (OSError, ValueError, AttributeError, TypeError):
        return Places()
    return found


def _texts(kept: Mapping[str, object]) -> dict[int, str]:
    return {int(value): str(text) for value, text in kept.items()}
