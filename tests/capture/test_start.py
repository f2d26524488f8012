"""A job goes on from a finished one, or from a file of weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.capture import (
    SGD,
    AdamW,
    Average,
    CaptureError,
    Start,
    TrainingJob,
    capture,
    check_against_eager,
)
from identic.node.cli.folder import BLOBS, INDEX, MODEL, RECEIPT, STORE_BYTES, Kept, RunIndex
from identic.node.execution.loaded import state_header
from identic.node.execution.model import model_file
from identic.node.execution.states import array_digest, commit_state, pack_state
from identic.proofs import json_form
from identic.proofs.receipt import to_json
from identic.protocol.encoding import encode
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Unsigned
from identic.protocol.job.messages import Artifacts
from identic.protocol.program.codec import program_digest
from identic.protocol.program.unroll import unroll
from tests.capture.models import CASES, MLP
from tests.capture.test_optimizers import Loop, agree, mlp, trained, twin_of
from tests.helpers.receipts import good_receipt
from tests.helpers.small_run import tiny_run


def finished(folder: Path, job: TrainingJob) -> Path:
    """What `identic job fetch --states` brings of the job, with its last state alone."""
    captured = capture(job)
    program, steps = captured.program, job.steps
    state: list[Any] = captured.state
    executor = Executor(unroll(program), CpuBackend())
    for step in range(steps):
        state = executor.step(state, captured.data, job.seed, step)
    known = good_receipt(tiny_run())
    terms = replace(
        known.terms,
        program=program_digest(program),
        seed=Unsigned(job.seed),
        steps=Count(steps),
        cadence=Count(steps),
    )
    header = state_header(terms, program, steps)
    commitment = commit_state(header, program.state, state)
    receipt = replace(
        known,
        terms=terms,
        program=encode(program),
        marks=(terms.initial_state, commitment.root),
        header=header,
        digests=tuple(array_digest(v, a) for v, a in zip(program.state, state, strict=True)),
    )
    folder.mkdir(parents=True)
    store = Blobs(folder / BLOBS, STORE_BYTES)
    blob = store.put(pack_state(header, state))
    nothing = sha256(b"")
    index = RunIndex(Artifacts(nothing, nothing, ()), (Kept(Count(1), blob),))
    (folder / INDEX).write_text(json_form.render(index))
    (folder / RECEIPT).write_text(to_json(receipt))
    kept = len(program.parameters) + len(program.buffers)
    (folder / MODEL).write_bytes(model_file(program.state[:kept], state[:kept]))
    return folder


def model_only(folder: Path) -> Path:
    """The same without states."""
    (folder / INDEX).unlink()
    return folder


@pytest.mark.parametrize(
    "optimizer",
    [
        AdamW(lr=1e-2, eps=1e-4, weight_decay=0.5),
        SGD(lr=0.5, momentum=0.9),
    ],
)
def test_cap_17__a_job_goes_on_with_what_the_optimizer_keeps(
    tmp_path: Path, optimizer: AdamW | SGD
) -> None:
    first, second = {"optimizer": optimizer}, {"optimizer": optimizer, "seed": 12}
    folder = finished(tmp_path / "job", mlp(**first))
    job = mlp(**second, start=folder)
    captured = capture(job)
    assert captured.notes.origin.endswith(")")
    assert "after 10 steps (state " in captured.notes.origin
    # Torch's loop over the first job's batches, then over the second's, with one optimizer.
    loop = mlp(**first)
    twin = twin_of(optimizer, loop.model)
    Loop(loop, twin).run()
    want = Loop(mlp(**second, model=loop.model), twin).run()
    agree(trained(job), want)


def test_cap_17__without_states_the_optimizer_begins_anew(tmp_path: Path) -> None:
    optimizer = AdamW(lr=1e-2, eps=1e-4)
    folder = model_only(finished(tmp_path / "job", mlp(optimizer=optimizer)))
    loop = mlp(optimizer=optimizer)
    Loop(loop, twin_of(optimizer, loop.model)).run()
    again = mlp(optimizer=optimizer, model=loop.model)
    want = Loop(again, twin_of(optimizer, loop.model)).run()
    agree(trained(mlp(optimizer=optimizer, start=str(folder))), want)
    # Another optimizer keeps other things: it begins anew, too.
    other = finished(tmp_path / "other", mlp(optimizer=SGD(lr=0.1, momentum=0.9)))
    job = mlp(start=other, optimizer=optimizer)
    assert check_against_eager(capture(job), job).difference < 1e-5


def test_cap_17__averages_go_on_beside_the_weights(tmp_path: Path) -> None:
    average = Average(0.5)
    folder = finished(tmp_path / "job", mlp(optimizer=SGD(lr=0.5), average=average))
    file = load_file(folder / MODEL)
    for model_file_too in (True, False):
        kept = Average(0.5, model_file=model_file_too)
        captured = capture(mlp(start=folder, average=kept))
        state = {v.name: a for v, a in zip(captured.program.state, captured.state, strict=True)}
        names = ("trained.l1.weight", "l1.weight")
        if not model_file_too:
            names = ("l1.weight", "average.l1.weight")
        for name, source in zip(names, ("trained.l1.weight", "l1.weight"), strict=True):
            assert np.array_equal(state[name], file[source].numpy())
    # Without an average the trained weights go on, not their average.
    plain = capture(mlp(start=folder))
    assert np.array_equal(plain.state[0], file["trained.l1.weight"].numpy())


def test_cap_17__a_safetensors_file_gives_weights_and_buffers(tmp_path: Path) -> None:
    torch.manual_seed(9)
    tensors = {n: torch.randn_like(p) for n, p in MLP().named_parameters()}
    save_file(tensors, tmp_path / "weights.safetensors")
    job = CASES["mlp"].job(start=Start(tmp_path / "weights.safetensors", taken=4))
    captured = capture(job)
    assert captured.notes.origin == "weights.safetensors"
    for name, array in zip(tensors, captured.state, strict=False):
        assert np.array_equal(array, tensors[name].numpy())
    normed = CASES["batch_norm"].job()
    before = {n: t.clone() for n, t in normed.model.state_dict().items()}
    saved = {**before, "norm.running_mean": torch.arange(16.0)}
    save_file(saved, tmp_path / "norm.safetensors")
    job = CASES["batch_norm"].job(start=tmp_path / "norm.safetensors")
    assert check_against_eager(capture(job), job).difference < 1e-5
    state = dict(zip((v.name for v in capture(job).program.state), capture(job).state, strict=True))
    assert state["norm.running_mean"].tolist() == list(range(16))
    assert all(torch.equal(t, before[n]) for n, t in job.model.state_dict().items())


def test_cap_17__tied_weights_are_found_under_either_name(tmp_path: Path) -> None:
    job = CASES["gpt_tied"].job()
    tensors = {n: p.detach() + 1 for n, p in job.model.named_parameters()}
    tensors["head.weight"] = tensors.pop("tokens.weight")
    save_file(tensors, tmp_path / "tied.safetensors")
    captured = capture(CASES["gpt_tied"].job(start=tmp_path / "tied.safetensors"))
    assert np.array_equal(captured.state[0], tensors["head.weight"].numpy())


def test_cap_17__the_meta_device_and_a_file_make_a_whole_job(tmp_path: Path) -> None:
    job = CASES["mlp"].job()
    save_file(job.model.state_dict(), tmp_path / "weights.safetensors")
    with torch.device("meta"):
        empty = MLP()
    captured = capture(CASES["mlp"].job(model=empty, start=tmp_path / "weights.safetensors"))
    assert [a.tobytes() for a in captured.state] == [a.tobytes() for a in capture(job).state]


def refused(model: nn.Module, path: Path) -> CaptureError:
    """The refusal of a job with this start."""
    with pytest.raises(CaptureError) as caught:
        capture(CASES["mlp"].job(model=model, start=path))
    assert caught.value.rule == "CAP-17"
    assert caught.value.advice
    return caught.value


def test_cap_17__what_no_job_can_begin_with_is_refused(tmp_path: Path) -> None:
    def saved(**changed: Tensor) -> Path:
        save_file({**dict(MLP().named_parameters()), **changed}, tmp_path / "w.safetensors")
        return tmp_path / "w.safetensors"

    some: dict[str, Tensor] = dict(MLP().named_parameters())
    del some["l2.bias"]
    save_file(some, tmp_path / "some.safetensors")
    assert "has no l2.bias" in refused(MLP(), tmp_path / "some.safetensors").problem
    small = saved(**{"l1.weight": torch.zeros(3, 3)})
    assert "float32[3, 3]" in refused(MLP(), small).problem
    half = saved(**{"l1.weight": torch.zeros(16, 12, dtype=torch.bfloat16)})
    assert "bfloat16" in refused(MLP(), half).problem
    (tmp_path / "wrong.safetensors").write_bytes(b"no tensors")
    assert "no safetensors file" in refused(MLP(), tmp_path / "wrong.safetensors").problem
    assert "no safetensors file" in refused(MLP(), tmp_path / "missing.safetensors").problem
    (tmp_path / "folder").mkdir()
    assert RECEIPT in refused(MLP(), tmp_path / "folder").problem


def test_cap_17__what_the_receipt_does_not_vouch_for_is_refused(tmp_path: Path) -> None:
    folder = finished(tmp_path / "job", CASES["mlp"].job())
    store = Blobs(folder / BLOBS, STORE_BYTES)
    index = json_form.parse(RunIndex, (folder / INDEX).read_text())
    whole = bytearray(store.read(index.states[0].blob, 1 << 20))
    whole[-8] ^= 1
    other = Kept(Count(1), store.put(bytes(whole)))
    (folder / INDEX).write_text(json_form.render(replace(index, states=(other,))))
    with pytest.raises(ProtocolError) as caught:
        capture(CASES["mlp"].job(start=folder))
    assert caught.value.rule == "EXE-3"
    model = folder / MODEL
    changed = bytearray(model.read_bytes())
    changed[-1] ^= 1
    model.write_bytes(changed)
    assert "vouches for" in refused(MLP(), model_only(folder)).problem
    empty = finished(tmp_path / "empty", CASES["mlp"].job())
    index = json_form.parse(RunIndex, (empty / INDEX).read_text())
    (empty / INDEX).write_text(json_form.render(replace(index, states=())))
    assert "no last state" in refused(MLP(), empty).problem
