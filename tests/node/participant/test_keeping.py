"""What a party keeps on its disk: real folders and quotas, runs of a real job."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.node.blobs import Blobs
from identic.node.participant.keeping import Keeping, nearer, sparse
from identic.node.participant.runs import SPACE
from identic.node.storage.sqlite import SqliteStorage
from identic.node.worker.frames import OwnRun, StoredState
from identic.protocol.encoding import encode
from identic.protocol.errors import LocalError
from identic.protocol.ids import Count, Digest, JobId
from identic.protocol.job.state import Job
from tests.node.coordinator.village import Run, Village

STATE = 10_000
"""Bytes of a stored state, about."""


@given(
    marks=st.lists(st.integers(1, 500), unique=True, min_size=1, max_size=40).map(sorted),
    most=st.integers(1, 12),
    data=st.data(),
)
def test_exe_12__states_that_stay_are_spread_evenly(
    marks: list[int], most: int, data: st.DataObject
) -> None:
    free = set(data.draw(st.lists(st.sampled_from(marks), unique=True)))
    kept = sparse([0, *marks], free, most)
    assert (kept[0], kept[-1]) == (0, marks[-1])
    assert set(marks) - set(kept) <= free
    assert len(kept) <= max(2, most) or not free & set(kept[1:-1])


def test_exe_12__of_equally_spaced_states_every_second_stays() -> None:
    marks = range(0, 170, 10)
    assert sparse(marks, set(marks), 9) == tuple(range(0, 170, 20))


class Disk:
    """A party's store and storage."""

    def __init__(
        self,
        folder: Path,
        quota: int = 1 << 30,
        states_bytes: int = 1 << 30,
        *,
        shared: bool = False,
    ) -> None:
        self.storage = SqliteStorage(folder / "state")
        self.blobs = Blobs(folder / "blobs", quota)
        self.keeping = Keeping(self.storage, self.blobs, states_bytes, shared=shared)

    def run(self, states: int, first: int = 1) -> OwnRun:
        """A run with stored states at marks ``first``, ..., all different."""
        marks = range(first, first + states)
        stored = [StoredState(Count(m), self.blobs.put(bytes([m]) * STATE)) for m in marks]
        start = StoredState(Count(0), self.blobs.put(b"start"))
        roots = tuple(Digest(bytes([m]) * 32) for m in range(first + states))
        return OwnRun(roots, (start, *stored))

    def here(self, run: OwnRun) -> list[int]:
        """Marks whose states lie on the disk."""
        return [int(s.mark) for s in run.stored if self.blobs.path(s.blob).exists()]

    def note(self, role: str, job: JobId, attempt: int, run: OwnRun) -> None:
        """Note an own run."""
        self.storage.put(SPACE, f"{role}/{job.hex()}/{attempt}".encode(), encode(run))


@pytest.fixture
def job(village: Village, honest: Run) -> Job:
    """A job that is being trained."""
    village.post().accept().commit(honest, upto=3)
    return village.job


def test_exe_12__states_stay_within_their_budget(tmp_path: Path, job: Job) -> None:
    at = Disk(tmp_path / "node", states_bytes=3 * STATE)
    run = at.run(8)
    thin = at.keeping.thinned(job, run, set(range(9)))
    assert at.here(run) == at.here(thin) == [int(s.mark) for s in thin.stored]
    assert at.here(run) == [0, 4, 6, 8]
    assert thin.roots == run.roots


def test_exe_12__states_that_may_not_go_stay(tmp_path: Path, job: Job) -> None:
    at = Disk(tmp_path / "node", states_bytes=STATE)
    run = at.run(5)
    assert at.here(at.keeping.thinned(job, run, {2, 3})) == [0, 1, 4, 5]


def test_exe_12__a_store_that_fills_up_makes_room_for_what_comes(tmp_path: Path, job: Job) -> None:
    """Without this the next state would not fit, and the job be lost to a full disk."""
    at = Disk(tmp_path / "node", quota=7 * STATE)
    run = at.run(6)
    with pytest.raises(LocalError, match="store is full"):
        at.blobs.put(b"x" * 2 * STATE)
    thin = at.keeping.thinned(job, run, set(range(7)))
    assert at.blobs.room_bytes >= 3 * STATE
    at.blobs.put(b"x" * 3 * STATE)
    assert {0, 6} <= set(at.here(thin))


def test_exe_12__a_state_that_another_run_names_stays(tmp_path: Path, job: Job) -> None:
    at = Disk(tmp_path / "node", states_bytes=STATE)
    run = at.run(4)
    at.note("verifier", JobId(bytes(32)), 1, OwnRun(run.roots, run.stored[:3]))
    at.keeping.thinned(job, run, {1, 2, 3})
    assert at.here(run) == [0, 1, 2, 4]


def test_exe_12__what_was_stored_for_a_job_goes_when_it_is_over(
    tmp_path: Path, village: Village, honest: Run
) -> None:
    at = Disk(tmp_path / "node")
    store = at.blobs
    village.judged(honest)
    running = village.job
    run = at.run(3)
    parts = [store.put(data) for data in (*honest.states, honest.model)]
    assert running.finish is not None
    assert {running.finish.state, running.finish.model} <= set(parts)
    at.note("solver", running.id, 1, run)
    assert at.keeping.let_go(village.host.board) == 0
    village.wait()
    assert village.job.phase.over
    assert at.keeping.let_go(village.host.board) == 1
    assert at.here(run) == []
    assert not store.path(running.finish.state).exists()
    assert not store.path(running.finish.model).exists()
    assert at.storage.items(SPACE) == []
    assert at.keeping.let_go(village.host.board) == 0


def test_exe_12__an_attempt_that_is_over_goes_and_the_next_one_stays(
    tmp_path: Path, village: Village, honest: Run
) -> None:
    at = Disk(tmp_path / "node")
    village.post().accept().commit(honest, upto=3)
    old, new = at.run(3), at.run(3, first=4)
    at.note("verifier", village.job.id, 1, old)
    state = at.blobs.put(village.blobs.read(village.job.artifacts.state, 1 << 20))
    village.wait()
    assert village.job.attempt == 2
    at.note("verifier", village.job.id, 2, new)
    assert at.keeping.let_go(village.host.board) == 1
    assert at.here(old) == [0]
    assert at.here(new) == [0, 4, 5, 6]
    assert at.blobs.path(state).exists()


def test_exe_12__a_node_that_is_the_coordinator_too_removes_nothing(
    tmp_path: Path, village: Village, job: Job
) -> None:
    at = Disk(tmp_path / "node", states_bytes=STATE, shared=True)
    run = at.run(4)
    assert at.keeping.thinned(job, run, {1, 2, 3}) == run
    at.note("solver", job.id, 1, run)
    village.wait()
    assert village.job.attempt == 2
    assert at.keeping.let_go(village.host.board) == 0
    assert at.here(run) == [0, 1, 2, 3, 4]


def test_exe_12__a_checkpoint_with_ones_own_root_is_fetched_for_a_dispute(
    village: Village, honest: Run, false: Run
) -> None:
    """The run of the village stores mark 2; the false one parts from the honest one there."""
    village.post().accept().commit(honest, upto=5)
    job, start = village.job, StoredState(Count(0), village.job.artifacts.state)
    mine = OwnRun(tuple(honest.roots), (start,))
    (stored,) = job.stored
    assert nearer(job, mine, 4) == StoredState(stored.mark, stored.blob)
    assert nearer(job, mine, 2) is None
    near = OwnRun(mine.roots, (start, StoredState(Count(3), stored.blob)))
    assert nearer(job, near, 4) is None
    assert nearer(job, near, 3) == StoredState(stored.mark, stored.blob)
    # With another root there it is of no use, and neither before the run has come so far.
    assert false.roots[2] != honest.roots[2]
    assert nearer(job, OwnRun(tuple(false.roots), (start,)), 4) is None
    assert nearer(job, OwnRun(mine.roots[:2], (start,)), 4) is None
