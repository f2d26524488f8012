"""Data and states of old jobs leave the coordinator's store; what a job is about stays."""

from dataclasses import replace

from identic.node.coordinator.retention import forgettable
from identic.protocol.ids import JobId
from tests.node.coordinator.village import Run, Village, posting

HOUR = 3_600_000


def test_exe_12__data_and_states_go_after_their_time_and_the_rest_stays(
    village: Village, honest: Run
) -> None:
    village.judged(honest)
    village.wait()
    job = village.job
    assert job.finish is not None
    assert job.receipt is not None
    bulky = {job.artifacts.state, *job.artifacts.data, job.finish.state}
    bulky |= {stored.blob for stored in job.stored}
    assert all(village.blobs.path(blob).exists() for blob in bulky)
    village.clock.now += HOUR
    assert village.host.forget(HOUR) == 0
    village.clock.now += 1
    assert village.host.forget(HOUR) == len(bulky)
    assert not any(village.blobs.path(blob).exists() for blob in bulky)
    for blob in (job.artifacts.program, job.finish.model, job.receipt):
        assert village.blobs.sound(blob)
    # The log is read again without them.
    village.restart()
    assert village.job == job
    assert village.host.forget(HOUR) == 0


def test_exe_12__what_a_job_that_goes_on_names_stays(village: Village, honest: Run) -> None:
    village.judged(honest)
    village.wait()
    board, job = village.host.board, village.job
    other = replace(posting().said.terms, seed=posting().said.terms.seed)
    fresh = replace(job, id=JobId(bytes(32)), terms=other, phase=type(job.phase).OPEN, finish=None)
    fresh = replace(fresh, receipt=None, stored=job.stored[:1])
    both = replace(board, jobs={**board.jobs, fresh.id: fresh})
    gone = forgettable(both, lambda _: 0, 1)
    assert job.finish is not None
    assert gone == {job.finish.state} - {job.stored[0].blob}
    assert forgettable(both, lambda _: 2, 1) == set()
