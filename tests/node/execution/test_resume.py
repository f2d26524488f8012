"""A run that is interrupted anywhere is the same run."""

from __future__ import annotations

import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cuda_backend import CudaBackend
from identic.kernels.executor import Executor
from identic.kernels.reference_backend import ReferenceBackend
from identic.node.execution.loaded import load_state
from identic.node.execution.rerun import Rerun
from identic.node.execution.training import Reached, Trainer, store_state
from identic.node.worker.frames import OwnRun
from identic.protocol.errors import LocalError
from tests.cuda.shim.device import ShimDevice
from tests.helpers.small_run import small_run
from tests.node.execution.parts import Kept, forced_at, keep

RUN = small_run(shards=2, steps=7, cadence=2)
FORCED = forced_at(3, RUN.value("matmul", 2), 1, (1,), 1 << 30)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A job of seven steps with a mark each two."""
    return keep(tmp_path_factory.mktemp("resume") / "blobs", RUN)


def test_exe_4__a_run_is_that_of_the_definition(kept: Kept) -> None:
    marks = [int(kept.terms.step_of(m)) for m in range(kept.terms.marks)]
    assert list(kept.execute().roots) == [RUN.root(step) for step in marks]


def test_exe_4__both_twins_run_alike(kept: Kept) -> None:
    job = kept.load()
    trainer = Trainer(job, Executor(job.plan, ReferenceBackend()))
    state = load_state(job, kept.blobs, kept.artifacts.state, 0, kept.terms.initial_state)
    roots = [r.mark.state_root for r in trainer.run(state, 0, kept.terms.last_mark)]
    assert (kept.terms.initial_state, *roots) == kept.execute().roots


@pytest.mark.parametrize("forced", [None, FORCED])
def test_exe_4__a_run_goes_on_from_each_stored_state(kept: Kept, forced: type[None] | None) -> None:
    whole = kept.execute(FORCED if forced else None)
    for state in whole.stored:
        taken_up = OwnRun(whole.roots[: state.mark + 1], (state,))
        assert kept.execute(FORCED if forced else None, taken_up).roots == whole.roots


def test_exe_4__states_are_stored_alike(kept: Kept) -> None:
    whole = kept.execute()
    middle = OwnRun(whole.roots[:3], (whole.stored[2],))
    assert kept.execute(own=middle).stored == whole.stored[2:]


def test_exe_4__a_device_keeps_a_state_until_it_has_been_stored(kept: Kept) -> None:
    """What a mark's state is used for comes before the next step, which is given its memory."""
    job, want, device = kept.load(), kept.execute(), ShimDevice()
    trainer = Trainer(job, Executor(job.plan, CudaBackend(device)))
    held = load_state(job, kept.blobs, kept.artifacts.state, 0, kept.terms.initial_state)
    first: list[Array] = [device.upload(a) for a in held]
    marks: list[Reached] = []
    places, stored = [], []
    for reached in trainer.run(first, 0, kept.terms.last_mark):
        step = kept.terms.step_of(reached.index)
        # The state of the mark before is nobody's any more; the first one is the caller's.
        assert [len(other.state) for other in marks] == [0] * len(marks)
        assert [a.tobytes() for a in first] == [a.tobytes() for a in held]
        marks.append(reached)
        places.append([a.ctypes.data for a in reached.state[:-1]])
        stored.append(store_state(job, kept.blobs, step, reached.state))
    assert stored == [one.blob for one in want.stored[1:]]
    assert trainer.commit(kept.terms.steps, marks[-1].state).root == want.roots[-1]
    # The tensors lie where those of the mark before lay.
    assert places == places[:1] * len(places)


def test_exe_11__what_a_device_answers_from_is_not_written_over(kept: Kept) -> None:
    job, want = kept.load(), kept.execute()
    trainer = Trainer(job, Executor(job.plan, CudaBackend(ShimDevice())))
    stored = {0: kept.artifacts.state}
    rerun = Rerun(trainer, kept.blobs, want.roots, stored, 1 << 30)
    honest = kept.rerun(want)
    for mark in range(1, kept.terms.marks):
        assert rerun.interval_roots(mark) == honest.interval_roots(mark)
    for step in range(kept.terms.steps + 1):
        assert rerun.state_digests(step) == honest.state_digests(step)
        assert rerun.nearest(step)[0] == step


def test_exe_6__a_forced_error_makes_another_run_from_its_step_on(kept: Kept) -> None:
    honest, false = kept.execute().roots, kept.execute(FORCED).roots
    same = [a == b for a, b in zip(honest, false, strict=True)]
    assert same == [True, True, False, False, False]


@pytest.mark.parametrize("path", _native.paths())
def test_exe_4__every_vector_path_and_number_of_threads_runs_alike(kept: Kept, path: str) -> None:
    want, before = kept.execute().roots, _native.path()
    try:
        _native.set_path(path)
        for threads in (1, 2, 3):
            _native.set_threads(threads)
            assert kept.execute().roots == want
    finally:
        _native.set_path(before)
        _native.set_threads(1)


def test_exe_8__a_damaged_state_is_passed_over(kept: Kept) -> None:
    whole = kept.execute(FORCED)
    kept.damage(whole.stored[2].blob)
    rerun = kept.rerun(whole, FORCED)
    at, _ = rerun.nearest(5)
    assert at == 2
    assert rerun.trace_leaves(4)[-1] == kept.rerun(kept.execute(FORCED), FORCED).trace_leaves(4)[-1]


def test_exe_8__a_state_with_another_root_is_passed_over(kept: Kept) -> None:
    whole = kept.execute()
    other = kept.execute(FORCED)
    mixed = OwnRun(whole.roots, (*whole.stored[:2], other.stored[2]))
    assert kept.rerun(mixed).nearest(7)[0] == 2


def test_exe_8__without_a_sound_state_nothing_is_answered(kept: Kept) -> None:
    whole = kept.execute()
    false = OwnRun(tuple(reversed(whole.roots)), whole.stored)
    # The state in the middle has its root in the reversed list as well.
    stored = tuple(s for s in false.stored if s.mark != 2)
    with pytest.raises(LocalError):
        kept.rerun(OwnRun(false.roots, stored)).nearest(7)


def test_exe_5__a_run_that_is_not_reproduced_is_not_answered_for(kept: Kept) -> None:
    # As after a fault of the hardware: the claimed run is not what this machine computes.
    rerun = kept.rerun(OwnRun(kept.execute(FORCED).roots, kept.start.stored))
    with pytest.raises(LocalError):
        rerun.trace_leaves(3)
    with pytest.raises(LocalError):
        rerun.interval_roots(2)
