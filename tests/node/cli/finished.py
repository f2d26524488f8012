"""The folder of a finished small run, as ``identic job fetch --states`` makes it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from identic.kernels.arrays import from_bytes
from identic.node.blobs import Blobs
from identic.node.cli.folder import BLOBS, INDEX, MODEL, RECEIPT, Kept, RunIndex
from identic.node.execution.loaded import state_header
from identic.node.execution.states import Arrays, pack_state, pack_tensors
from identic.proofs import json_form
from identic.proofs.receipt import Receipt, to_json
from identic.protocol.encoding import encode
from identic.protocol.ids import Count, Digest
from identic.protocol.job.messages import Artifacts
from identic.protocol.program.types import Variable
from tests.helpers.receipts import SOLVER, VERIFIER, finish_of, receipt_over, said, verdict_of
from tests.helpers.small_run import Run

QUOTA = 1 << 30


def arrays(variables: tuple[Variable, ...], data: list[bytes]) -> Arrays:
    """Tensors from their bytes."""
    pairs = zip(variables, data, strict=True)
    return [from_bytes(v.type, memoryview(bytearray(d))) for v, d in pairs]


def model_of(run: Run) -> bytes:
    """The model file of the honest run."""
    state = arrays(run.program.state, run.good.states[-1])
    kept = (*run.program.parameters, *run.program.buffers)
    return save({v.name: np.ascontiguousarray(t) for v, t in zip(kept, state, strict=False)})


def receipt_of(run: Run, model: bytes) -> Receipt:
    """A receipt for this model file."""
    finish = replace(finish_of(run), model=Digest(hashlib.sha256(model).digest()))
    return receipt_over(run, said(SOLVER, finish), [said(VERIFIER, verdict_of(run))], [])


def write(run: Run, folder: Path, *, marks: tuple[int, ...]) -> Receipt:
    """Write everything, with the states of some marks."""
    model = model_of(run)
    receipt = receipt_of(run, model)
    (folder / MODEL).write_bytes(model)
    (folder / RECEIPT).write_text(to_json(receipt))
    store = Blobs(folder / BLOBS, QUOTA)
    kept = []
    for mark in marks:
        step = int(run.terms.step_of(mark))
        state = arrays(run.program.state, run.good.states[step])
        blob = store.put(pack_state(state_header(run.terms, run.program, step), state))
        kept.append(Kept(Count(mark), blob))
    data = arrays(run.program.data, run.good.data)
    index = RunIndex(
        Artifacts(
            program=store.put(encode(run.program)),
            state=kept[0].blob,
            data=tuple(store.put(pack_tensors([tensor])) for tensor in data),
        ),
        tuple(kept),
    )
    (folder / INDEX).write_text(json_form.render(index))
    return receipt
