"""Which operators a worker takes, and what becomes of it when a device fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda.device import Argument, DeviceFault, Kernel
from identic.kernels.cuda_backend import CudaBackend, need_bytes
from identic.kernels.reference_backend import ReferenceBackend
from identic.node.execution import sample, vectors
from identic.node.execution.elements import with_word, word_at
from identic.node.worker import backends, cards, frames, handle
from identic.node.worker.backends import AGAIN_S, Taken, Wanted, take
from identic.node.worker.devices import number
from identic.node.worker.handle import Worker
from identic.node.worker.session import Session
from identic.protocol.errors import LocalError, Unsound
from identic.protocol.ids import Count, Digest, StepIndex
from identic.protocol.ops import TABLE
from identic.protocol.program.unroll import unroll
from tests.cuda.shim.device import ShimDevice
from tests.helpers.cards import Small, Sound, Vanishing, Wrong, WrongSteps, worker
from tests.helpers.small_run import small_run
from tests.node.execution.parts import Kept, keep
from tests.vectors import packed

RUN = small_run(shards=1, steps=4, cadence=2)


def put_in(patch: pytest.MonkeyPatch, card: Sound) -> list[int]:
    """Put a device into this machine; returns the numbers that are asked for."""
    asked: list[int] = []

    def opened(index: int) -> Sound:
        asked.append(index)
        return card

    patch.setattr(cards, "opened", opened)
    return asked


def taken(device: str) -> Taken:
    return take(Wanted(device, 1), RUN.plan)


# ---- the self-test --------------------------------------------------------------------------


def test_exe_22__a_node_carries_vectors_of_every_operator() -> None:
    assert packed.PATH.read_text(encoding="utf-8") == packed.text()
    assert [one.name for one in vectors.known()] == sorted(TABLE)
    assert min(len(one.calls) for one in vectors.known()) >= 10
    assert list(vectors.differing(CpuBackend())) == []


@pytest.mark.parametrize("name", ["matmul", "scatter_add", "max_pool", "cast"])
def test_exe_22__one_wrong_bit_of_an_operator_is_found(name: str) -> None:
    assert list(vectors.differing(Wrong(name, after=9))) == [name]


def test_exe_22__the_small_program_has_one_root() -> None:
    assert sample.root(CpuBackend()) == sample.root(ReferenceBackend())
    assert sample.root(WrongSteps()) != sample.root(CpuBackend())
    assert len(unroll(sample.program()).calls) > 50


# ---- what is taken --------------------------------------------------------------------------


def test_a_device_has_one_of_a_few_names() -> None:
    assert [number(n) for n in ("auto", "cpu", "cuda", "cuda:0", "cuda:12")] == [0, None, 0, 0, 12]
    for name in ("gpu", "cuda:", "cuda:-1", "cuda:100", "CUDA", "cuda:0 ", ""):
        with pytest.raises(LocalError):
            number(name)


@pytest.mark.parametrize(("device", "index"), [("auto", 0), ("cuda", 0), ("cuda:3", 3)])
def test_exe_22__a_sound_device_is_taken(
    monkeypatch: pytest.MonkeyPatch, device: str, index: int
) -> None:
    card = Sound()
    asked = put_in(monkeypatch, card)
    found = taken(device)
    assert (found.backend, found.device, asked) == (card, "cuda:0", [index])


def test_the_cpu_is_taken_without_a_look_at_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = put_in(monkeypatch, Sound())
    assert (taken("cpu").device, asked) == ("cpu", [])


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (Wrong("tanh"), "wrong bits for tanh"),
        (WrongSteps(), "small program"),
        (Vanishing(at=-1), "has gone"),
        (Small(), "needs 2 KiB"),
    ],
)
def test_exe_22__exe_24__the_cpu_stands_in_unless_the_device_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, card: Sound, words: str
) -> None:
    put_in(monkeypatch, card)
    found = taken("auto")
    assert (found.device, found.backend.name) == ("cpu", "cpu")
    assert words in found.why
    with pytest.raises(Unsound) as fault:
        taken("cuda")
    assert words in fault.value.problem


def test_exe_22__without_cupy_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "installed", lambda: False)
    assert "CuPy" in taken("auto").why
    with pytest.raises(LocalError) as fault:
        taken("cuda:1")
    assert "pip install" in fault.value.remedy


def test_exe_22__the_reason_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    handle.tell.cache_clear()
    for why in ("CuPy is not installed", "CuPy is not installed", "cuda:0 has gone"):
        handle.tell("cpu", why)
    said = capsys.readouterr()
    assert (said.out + said.err).count("CuPy is not installed") == 1
    assert "cuda:0 has gone" in said.out + said.err


# ---- devices that fail ----------------------------------------------------------------------


def test_exe_23__a_device_is_tested_again_after_a_minute_of_work() -> None:
    now = 0.0
    card = Wrong("matmul")
    card.after = 1
    found = Taken(card, "cuda:0", "", clock=lambda: now)
    found.check()
    assert card.after == 1
    now = AGAIN_S
    found.check()
    assert card.after == 0
    now = 2 * AGAIN_S
    with pytest.raises(DeviceFault) as fault:
        found.check()
    assert "cuda:0" in fault.value.problem


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A short job."""
    return keep(tmp_path / "blobs", RUN)


async def test_exe_23__a_worker_ends_with_its_device(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device goes in the fourth step: the first mark, of two steps, was handed out."""
    monkeypatch.setattr(handle, "COMMAND", worker("Vanishing(at=3)", tmp_path / "gone"))
    want, whole = kept.execute(), frames.Train(kept.start, Count(2), keep=False)
    async with Worker(kept.assignment()) as at_work:
        assert at_work.ready is not None
        assert at_work.ready.device == "cuda:0"
        replies = at_work.train(whole)
        first = await anext(replies)
        assert isinstance(first, frames.MarkDone)
        assert first.mark.state_root == want.roots[1]
        with pytest.raises(DeviceFault):
            await anext(replies)
        # Nothing more comes out of it, whatever it is asked.
        with pytest.raises(LocalError):
            await at_work.ask(frames.TraceRoot(StepIndex(0), want))
    (tmp_path / "gone").touch()
    async with Worker(kept.assignment()) as again:
        assert again.ready is not None
        assert (again.ready.device, again.ready.why) == ("cpu", "there is no device any more")
        found = [r async for r in again.train(whole) if isinstance(r, frames.MarkDone)]
        assert [one.mark.state_root for one in found] == list(want.roots[1:])


async def test_exe_23__exe_24__a_named_device_is_refused_before_the_first_step(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for card, kind in (("Wrong('add')", DeviceFault), ("Small()", Unsound)):
        monkeypatch.setattr(handle, "COMMAND", worker(card, tmp_path / "none"))
        with pytest.raises(LocalError) as fault:
            await Worker(kept.assignment(device="cuda")).__aenter__()
        assert type(fault.value) is kind


# ---- the kernels of a device, on the CPU ----------------------------------------------------


class Failing(ShimDevice):
    """A device that fails at a launch.

    Args:
        at: number of the launch, counted from 0.
    """

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        if len(self.launches) == self.at:
            raise DeviceFault("the card fell off the bus", remedy="put it back")
        super().launch(kernel, grid, block, *arguments, shared=shared)


def session(patch: pytest.MonkeyPatch, kept: Kept, device: ShimDevice) -> Session:
    """A worker's session whose device is a stand-in, without the self-test's hundreds of calls."""
    patch.setattr(cards, "opened", lambda _: CudaBackend(device))
    patch.setattr(backends, "check_device", lambda *_: None)
    return Session(kept.assignment(device="cuda"))


def done(session: Session, own: frames.OwnRun) -> list[Digest]:
    """Roots of the marks that a session trains to."""
    replies = session.train(frames.Train(own, Count(2), keep=True))
    return [reply.mark.state_root for reply in replies if isinstance(reply, frames.MarkDone)]


def test_exe_22__the_kernels_pass_the_whole_self_test(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ShimDevice()
    monkeypatch.setattr(cards, "opened", lambda _: CudaBackend(device))
    assert taken("cuda").device == "shim"
    assert len(device.launches) > sum(len(one.calls) for one in vectors.known())


def test_exe_4__exe_5__exe_23__a_job_on_a_device_is_the_job_on_the_cpu_until_it_fails(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = kept.execute()
    device = ShimDevice()
    whole = session(monkeypatch, kept, device)
    assert whole.ready.device == "shim"
    assert done(whole, kept.start) == list(want.roots[1:])
    launches = len(device.launches)
    trace = whole.trace_root(frames.TraceRoot(StepIndex(3), want))
    assert trace == frames.TraceRooted(kept.rerun(want).trace_root(3))
    # Half of the launches reach the first mark; the device fails after it.
    broken = session(monkeypatch, kept, Failing(launches * 3 // 4))
    reached: list[frames.Reply] = []
    with pytest.raises(DeviceFault, match="bus"):
        reached.extend(broken.train(frames.Train(kept.start, Count(2), keep=True)))
    roots = [reply.mark.state_root for reply in reached if isinstance(reply, frames.MarkDone)]
    assert roots == [want.roots[1]]


def test_exe_24__what_a_step_needs_is_said_before_it(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = ShimDevice(capacity=1 << 20)
    need = f"a step needs {need_bytes(RUN.plan) / (1 << 20):.1f} MiB on shim, which has "
    with pytest.raises(LocalError, match=need):
        session(monkeypatch, kept, device)
    assert device.launches == []
    monkeypatch.setattr(cards, "opened", lambda _: CudaBackend(device))
    assert Session(kept.assignment()).ready.device == "cpu"


def test_exe_22__a_device_whose_kernels_differ_in_a_bit_is_found() -> None:
    """The kernels that run are those of the device; one of their results is changed."""
    names = {"mul", "sum_last"}
    some = [known for known in vectors.known() if known.name in names]
    right = CudaBackend(ShimDevice())
    assert all(vectors.digest(right, known) == known.digest for known in some)

    class Flipping(ShimDevice):
        def download(self, array: Any) -> Any:
            copy = super().download(array)
            if copy.size > 1 and self.launches[-1].entry.startswith("sum"):
                return with_word(copy, 1, word_at(copy, 1) ^ 1)
            return copy

    wrong = CudaBackend(Flipping())
    found = {known.name for known in some if vectors.digest(wrong, known) != known.digest}
    assert found == {"sum_last"}
