"""Where a job begins when it does not begin with the model's own weights (CAP-17)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from identic.node.blobs import Blobs
from identic.node.cli.folder import (
    BLOBS,
    INDEX,
    MODEL,
    RECEIPT,
    STORE_BYTES,
    load_index,
    load_receipt,
)
from identic.node.execution.loaded import LoadedJob, load_state
from identic.node.execution.states import array_digest
from identic.proofs.receipt import Receipt
from identic.protocol.job.terms import job_id
from identic.protocol.lowering import CaptureError
from identic.protocol.program.codec import load
from identic.protocol.program.types import Program, Variable
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits

Array = NDArray[Any]


@dataclass(frozen=True)
class Start:
    """A finished job, or a file of weights, that a job goes on from.

    Attributes:
        path: the folder that ``identic job fetch`` made, with ``--states`` for what the
            optimizer keeps; or a safetensors file.
        taken: steps that the optimizer had taken; None takes those of the finished job.
    """

    path: str | Path
    taken: int | None = None


@dataclass(frozen=True)
class Begun:
    """What a start gives.

    Attributes:
        tensors: by the names that the earlier program gave them.
        taken: steps that the optimizer had taken.
        origin: in words.
    """

    tensors: Mapping[str, Array]
    taken: int
    origin: str

    def of(self, names: Iterable[str], variable: Variable) -> Array | None:
        """The first tensor under one of the names, if any.

        Raises:
            CaptureError: it has another type than the variable (CAP-17).
        """
        name = next((n for n in names if n in self.tensors), None)
        if name is None:
            return None
        found, kind = self.tensors[name], variable.type
        # CAP-17: a tensor is taken over as it is, without conversion.
        if found.dtype.name != kind.dtype.label or found.shape != tuple(kind.shape):
            raise _refused(
                f"{name} is {found.dtype.name}{list(found.shape)} in {self.origin}; "
                f"the job has {kind}.",
                "make the model of the same shape, or load and convert the weights in the job "
                "function.",
            )
        return found


def begin(start: Start | str | Path) -> Begun:
    """Read a start.

    Raises:
        CaptureError: there is nothing that a job can begin with (CAP-17).
        ProtocolError: a folder is not what its receipt says.
    """
    given = start if isinstance(start, Start) else Start(start)
    path = Path(given.path)
    if path.is_dir():
        return _finished(path, given.taken)
    return Begun(_weights(path), given.taken or 0, path.name)


def _refused(problem: str, advice: str) -> CaptureError:
    return CaptureError("CAP-17", problem, advice=advice)


def _weights(path: Path) -> dict[str, Array]:
    """The tensors of a safetensors file."""
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise _refused(
            f"{path} is no safetensors file: {error}",
            "give a .safetensors file, or the folder that `identic job fetch` made.",
        ) from error
    tensors: dict[str, Array] = {}
    for name, tensor in found.items():
        # CAP-17: element types that programs do not have are not converted in silence.
        if tensor.dtype in (torch.bfloat16, torch.float16, torch.float64):
            raise _refused(
                f"{name} has elements of type {tensor.dtype}.",
                "load the file in the job function, and give the model with .float().",
            )
        tensors[name] = np.array(tensor.numpy())
    return tensors


def _finished(folder: Path, taken: int | None) -> Begun:
    """The last state of a fetched job, or its model alone."""
    if not (folder / RECEIPT).exists():
        raise _refused(
            f"{folder} has no {RECEIPT}.", "fetch the job with `identic job fetch JOB --states`."
        )
    receipt = load_receipt(folder / RECEIPT)
    program = load(receipt.program, Limits(max_bytes=1 << 62, max_flops=1 << 62))
    name = f"{job_id(receipt.terms).name} after {int(receipt.terms.steps):,} steps"
    if (folder / INDEX).exists():
        tensors = _state(folder, receipt, program)
        steps = int(receipt.terms.steps) if taken is None else taken
        return Begun(tensors, steps, f"{name} (state {receipt.marks[-1].short})")
    tensors = _weights(folder / MODEL)
    _check_model(tensors, receipt, program)
    return Begun(tensors, taken or 0, f"the model of {name}")


def _state(folder: Path, receipt: Receipt, program: Program) -> dict[str, Array]:
    """All tensors of the last state but the loss."""
    last, steps = len(receipt.marks) - 1, int(receipt.terms.steps)
    blob = next((s.blob for s in load_index(folder).states if s.mark == last), None)
    if blob is None:
        raise _refused(
            f"{folder} has no last state.", "fetch the job with `identic job fetch JOB --states`."
        )
    job = LoadedJob(receipt.terms, program, unroll(program), [])
    # CAP-17: a state has the root that the receipt has for it.
    state = load_state(job, Blobs(folder / BLOBS, STORE_BYTES), blob, steps, receipt.marks[-1])
    return {v.name: a for v, a in zip(program.state[:-1], state[:-1], strict=True)}


def _check_model(tensors: Mapping[str, Array], receipt: Receipt, program: Program) -> None:
    for variable, digest in zip(program.state, receipt.digests, strict=True):
        tensor = tensors.get(variable.name)
        # CAP-17: a model has the tensors that the receipt has digests of.
        if tensor is not None and array_digest(variable, tensor) != digest:
            raise _refused(
                f"{variable.name} in {MODEL} is not the tensor that {RECEIPT} vouches for.",
                "fetch the job again; `identic receipt verify` checks the folder.",
            )
