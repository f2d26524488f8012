"""The folder of a finished job, complete for checking it offline.

It has ``model.safetensors``, ``receipt.json``, ``disputes/*.identic``, and for audits
``run.json`` with ``blobs/``: program, data and stored states under their digests. None of it
is believed when it is used: a receipt is verified, a state is compared with its root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from identic.node.cli import files
from identic.proofs import json_form
from identic.proofs.receipt import Receipt, from_json
from identic.protocol.errors import LocalError
from identic.protocol.ids import Count, Digest
from identic.protocol.job.messages import Artifacts
from identic.protocol.job.state import Job

MODEL: Final = "model.safetensors"
RECEIPT: Final = "receipt.json"
DISPUTES: Final = "disputes"
PLACES: Final = "places.json"
MAX_MODEL_BYTES: Final = 1 << 40
MAX_RECEIPT_BYTES: Final = 1 << 30
BLOBS: Final = "blobs"
INDEX: Final = "run.json"
STORE_BYTES: Final = 1 << 42
"""Most bytes that a folder of blobs may hold."""


@dataclass(frozen=True)
class Kept:
    """A stored state."""

    mark: Count
    blob: Digest


@dataclass(frozen=True)
class RunIndex:
    """Which blob of the folder is what; nobody signs it, so every blob is checked on use."""

    artifacts: Artifacts
    states: tuple[Kept, ...]
    """Stored states in the order of their marks, the initial one first."""


def index_of(job: Job) -> RunIndex:
    """What is stored of a job's run."""
    kept = [Kept(Count(0), job.artifacts.state)]
    kept += [Kept(s.mark, s.blob) for s in sorted(job.stored, key=lambda s: s.mark)]
    if job.finish is not None:
        kept.append(Kept(Count(job.terms.last_mark), job.finish.state))
    return RunIndex(job.artifacts, tuple(kept))


def load_receipt(path: Path) -> Receipt:
    """Read a receipt file.

    Raises:
        LocalError: the file cannot be read.
        ProtocolError: it is no receipt (RCP-4).
    """
    return from_json(files.read(path, MAX_RECEIPT_BYTES, "a receipt").decode(errors="replace"))


def load_index(folder: Path) -> RunIndex:
    """The index of a job's folder.

    Raises:
        LocalError: the folder has none, or it cannot be read.
        ProtocolError: it is no index (RCP-4).
    """
    path = folder / INDEX
    try:
        return json_form.parse(RunIndex, files.read(path, MAX_RECEIPT_BYTES, "a run").decode())
    except (LocalError, UnicodeDecodeError) as error:
        raise LocalError(
            f"there are no stored states here: {path} cannot be read",
            remedy="fetch them with `identic job fetch JOB --states`",
        ) from error
