"""Limits and identity of terms."""

from dataclasses import fields, replace

import pytest

from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Count, Credits, Digest, Millis
from identic.protocol.job.machine import open_job
from identic.protocol.job.messages import Artifacts, SubmitJob
from identic.protocol.job.state import Event
from identic.protocol.job.terms import Clocks, JobTerms, Prices, check_terms, job_id
from tests.protocol.job.world import ANNA, ARTIFACTS, JOB, SUBMITTER, TERMS, digest, terms_with

BEYOND = [
    {"version": Count(2)},
    {"kernel_set": Count(2)},
    {"steps": Count(0)},
    {"cadence": Count(0)},
    {"cadence": Count(2049)},
    {"steps": Count(1 << 21), "cadence": Count(2)},
    {"checkpoint": Count(0)},
    {"verifiers": Count(0)},
    {"verifiers": Count(17)},
    {"data": (digest("x"),) * 1025},
    {"prices": replace(TERMS.prices, solver_bond=Credits(0))},
    {"prices": replace(TERMS.prices, solver_reward=Credits((1 << 48) + 1))},
    {"clocks": replace(TERMS.clocks, move_ms=Millis(0))},
    {"clocks": replace(TERMS.clocks, budget_ms=Millis(0))},
]


@pytest.mark.parametrize("change", BEYOND, ids=lambda c: next(iter(c)))
def test_job_1__terms_beyond_a_limit_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ProtocolError) as refused:
        check_terms(terms_with(**change))
    assert (refused.value.rule, refused.value.code) == ("JOB-1", Code.OUT_OF_RANGE)


def test_job_1__terms_at_the_limits_are_accepted() -> None:
    check_terms(TERMS)
    check_terms(terms_with(steps=Count((1 << 20) - 1), cadence=Count(1)))
    check_terms(terms_with(cadence=Count(2048), verifiers=Count(16), data=(digest("x"),) * 1024))


def test_job_2__every_field_of_the_terms_changes_the_name() -> None:
    changes: list[JobTerms] = []
    for kind, path in ((JobTerms, None), (Prices, "prices"), (Clocks, "clocks")):
        for field in fields(kind):
            holder = TERMS if path is None else getattr(TERMS, path)
            old = getattr(holder, field.name)
            if isinstance(old, Prices | Clocks):
                continue
            if isinstance(old, tuple):
                new: object = ()
            elif isinstance(old, int):
                new = type(old)(old + 1)
            else:
                new = type(old)(bytes(32))
            inner = replace(holder, **{field.name: new})
            changes.append(inner if path is None else terms_with(**{path: inner}))
    names = {job_id(terms) for terms in changes}
    assert len(names) == len(changes)
    assert JOB not in names


def test_job_2__a_posting_names_one_blob_for_each_data_tensor() -> None:
    artifacts = Artifacts(ARTIFACTS.program, ARTIFACTS.state, ())
    said = SubmitJob(TERMS, artifacts)
    with pytest.raises(ProtocolError) as refused:
        open_job(Event(Millis(1), said, SUBMITTER, digest("m")), said)
    assert refused.value.rule == "JOB-2"


def test_job_6__only_the_submitter_posts_its_terms() -> None:
    said = SubmitJob(TERMS, ARTIFACTS)
    with pytest.raises(ProtocolError) as refused:
        open_job(Event(Millis(1), said, ANNA, digest("m")), said)
    assert (refused.value.rule, refused.value.code) == ("JOB-6", Code.FORBIDDEN)


def test_marks_end_with_the_last_step() -> None:
    assert [int(TERMS.step_of(m)) for m in range(TERMS.marks)] == [0, 2, 4, 6, 7]
    assert decode(JobTerms, encode(TERMS)) == TERMS
    assert isinstance(JOB, Digest)
