"""The worker process: what it answers, how it ends, and its float environment."""

from __future__ import annotations

import os
import platform
import resource
import signal
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from identic.kernels import _native
from identic.node.worker import frames
from identic.node.worker.backends import check_float_environment, native_backend
from identic.node.worker.handle import COMMAND, Worker
from identic.protocol.errors import LocalError, ProtocolError
from identic.protocol.ids import Count, StepIndex, Unsigned
from identic.protocol.program.types import CONTEXT_TYPE, Program, Variable
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits
from tests.helpers.game import terms_of
from tests.helpers.programs import SectionBuilder, f32
from tests.helpers.small_run import small_run
from tests.node.execution.parts import Kept, forced_at, keep, keep_parts

RUN = small_run(shards=1, steps=4, cadence=2)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A short job."""
    return keep(tmp_path / "blobs", RUN)


async def trained(
    worker: Worker, own: frames.OwnRun, last: int, *, whole: bool = True
) -> tuple[frames.OwnRun, frames.Trained]:
    """Let a worker train, and return the run with it."""
    roots, stored, final = list(own.roots), list(own.stored), None
    async for reply in worker.train(frames.Train(own, Count(last), keep=whole)):
        if isinstance(reply, frames.MarkDone):
            roots[int(reply.index) :] = [reply.mark.state_root]
        elif isinstance(reply, frames.StateStored):
            stored.append(reply.state)
        elif isinstance(reply, frames.Trained):
            final = reply
    assert final is not None
    return frames.OwnRun(tuple(roots), tuple(stored)), final


async def test_a_worker_trains_and_answers(kept: Kept) -> None:
    want = kept.execute()
    async with Worker(kept.assignment()) as worker:
        run, final = await trained(worker, kept.start, kept.terms.last_mark)
        assert run == want
        assert final.state == want.stored[-1].blob
        assert final.model is not None
        for step in (3, 0):
            reply = await worker.ask(frames.TraceRoot(StepIndex(step), run))
            assert reply == frames.TraceRooted(kept.rerun(want).trace_root(step))


async def test_exe_4__a_worker_takes_a_run_up_from_its_last_state(kept: Kept) -> None:
    want = kept.execute()
    async with Worker(kept.assignment()) as worker:
        half, _ = await trained(worker, kept.start, 1)
        whole, _ = await trained(worker, half, 2)
        assert whole.roots == want.roots


async def test_exe_8__a_worker_passes_over_a_damaged_state(kept: Kept) -> None:
    want = kept.execute()
    kept.damage(want.stored[1].blob)
    async with Worker(kept.assignment()) as worker:
        half = frames.OwnRun(want.roots[:2], want.stored[:2])
        run, _ = await trained(worker, half, 2)
    assert run.roots == want.roots
    # The damaged blob was written again on the way.
    assert kept.blobs.sound(want.stored[1].blob)


async def test_an_audit_stores_nothing(kept: Kept) -> None:
    before = sorted(kept.folder.glob("??/*"))
    async with Worker(kept.assignment()) as worker:
        _, final = await trained(worker, kept.start, 2, whole=False)
    assert (final.state, final.model) == (None, None)
    assert sorted(kept.folder.glob("??/*")) == before


async def test_a_job_at_fault_and_a_machine_at_fault_are_told_apart(kept: Kept) -> None:
    other = replace(kept, terms=replace(kept.terms, data=kept.terms.data[::-1]))
    with pytest.raises(ProtocolError) as refusal:
        await Worker(other.assignment()).__aenter__()
    assert refusal.value.rule == "EXE-2"
    with pytest.raises(LocalError):
        await Worker(kept.assignment(path="abacus")).__aenter__()
    with pytest.raises(LocalError):
        await Worker(kept.assignment(forced=forced_at(9, 40, 0, (0,), 1))).__aenter__()
    small = replace(kept.assignment(), bounds=frames.Bounds.of(Limits(max_bytes=64)))
    with pytest.raises(ProtocolError) as refusal:
        await Worker(small).__aenter__()
    assert refusal.value.rule == "PRG-16"


async def test_a_worker_keeps_to_the_quota_of_the_store(kept: Kept) -> None:
    full = replace(kept.assignment(), disk_bytes=Count(kept.blobs.used_bytes))
    async with Worker(full) as worker:
        with pytest.raises(LocalError) as fault:
            await trained(worker, kept.start, 2)
    assert "store is full" in fault.value.problem


async def test_exe_9__a_killed_worker_is_told_in_words(kept: Kept) -> None:
    worker = Worker(kept.assignment())
    async with worker:
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(LocalError) as fault:
            await trained(worker, kept.start, 2)
        assert "SIGKILL" in fault.value.problem
        assert not worker.alive


async def test_a_full_disk_is_told_and_the_run_goes_on_once_there_is_room(tmp_path: Path) -> None:
    want = subnormal_job(tmp_path / "elsewhere").execute().roots
    job = subnormal_job(tmp_path / "blobs")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        worker = await Worker(job.assignment()).__aenter__()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises(LocalError) as fault:
        await trained(worker, job.start, job.terms.last_mark)
    assert "no room left" in fault.value.problem
    await worker.close()
    async with Worker(job.assignment()) as worker:
        run, _ = await trained(worker, job.start, job.terms.last_mark)
    assert run.roots == want


def long_job(folder: Path) -> Kept:
    """A job that nobody waits for the end of."""
    terms = replace(RUN.terms, steps=Count(1 << 20), cadence=Count(2048))
    return keep_parts(folder, terms, RUN.program, RUN.state, RUN.data)


def test_exe_9__a_worker_ends_with_its_daemon_in_the_middle_of_its_work(tmp_path: Path) -> None:
    job = long_job(tmp_path / "blobs")
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdout:
        process.stdin.write(frames.pack_request(job.assignment()))
        process.stdin.write(frames.pack_request(frames.Train(job.start, Count(512), keep=True)))
        process.stdin.flush()
        length = frames.frame_length(process.stdout.read(frames.LENGTH_BYTES))
        assert isinstance(frames.unpack_reply(process.stdout.read(length)), frames.Ready)
        # A mark is 2,048 steps away; the process must not wait for it.
        process.stdin.close()
        assert process.wait() == 0


# ---- the float environment ------------------------------------------------------------------

FLUSHING = {
    "x86_64": "_mm_setcsr(_mm_getcsr() | 0x8040);",
    "aarch64": 'asm volatile("msr fpcr, %0" : : "r"(1ul << 24));',
}
HEADERS = {"x86_64": "#include <immintrin.h>\n", "aarch64": ""}


def flushing_library(folder: Path) -> Path:
    """A library that makes whoever loads it flush subnormals, as some fast ones do."""
    machine = platform.machine()
    source, library = folder / "flush.cpp", folder / "flush.so"
    source.write_text(
        f"{HEADERS[machine]}__attribute__((constructor)) static void flush() "
        f"{{ {FLUSHING[machine]} }}\n"
    )
    subprocess.run(["c++", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def flushes() -> bool:
    """Whether a process that is started now flushes subnormals."""
    program = "print(2.0**-1060 + 2.0**-1060)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return float(done.stdout) == 0.0


def subnormal_job(folder: Path) -> Kept:
    """A job whose gradients are subnormal: flushing loses all of them."""
    kind, count = f32(1 << 16), 1 << 16
    gradient = SectionBuilder([kind, CONTEXT_TYPE])
    square = gradient.op("mul", 0, 0)
    loss = gradient.op("sum_last", square)
    update = SectionBuilder([kind, kind, CONTEXT_TYPE])
    program = Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=(Variable("w", kind),),
        trainable=(Unsigned(0),),
        buffers=(),
        optimizer=(),
        data=(),
        gradient=gradient.build(loss, square),
        update=update.build(update.op("add", 0, 1)),
    )
    state = [struct.pack("<f", 1e-20) * count, bytes(4)]
    terms = terms_of(unroll(program), state, [], steps=2)
    return keep_parts(folder, terms, program, state, [])


async def test_exe_7__a_worker_undoes_what_a_library_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = subnormal_job(tmp_path / "blobs")
    want = job.execute()
    monkeypatch.setenv("LD_PRELOAD", str(flushing_library(tmp_path)))
    assert flushes()
    for threads in (1, 2):
        async with Worker(job.assignment(threads=threads)) as worker:
            run, _ = await trained(worker, job.start, job.terms.last_mark)
            assert run.roots == want.roots


@pytest.mark.parametrize(
    "seen",
    [
        {"ftz": True, "daz": False, "rounding": "nearest"},
        {"ftz": False, "daz": True, "rounding": "nearest"},
        {"ftz": False, "daz": False, "rounding": "up"},
    ],
)
def test_exe_7__nothing_is_handed_out_of_an_unsound_environment(
    monkeypatch: pytest.MonkeyPatch, seen: dict[str, bool | str]
) -> None:
    check_float_environment()
    monkeypatch.setattr(_native, "float_environment", lambda: seen)
    with pytest.raises(LocalError):
        check_float_environment()
    with pytest.raises(LocalError):
        native_backend(1, "auto")
