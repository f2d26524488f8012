"""Lies deep inside the fold that finds a place in sorted order are found."""

from __future__ import annotations

import pytest

from identic.protocol.dispute.moves import Side
from identic.protocol.dtypes import DType
from identic.protocol.tensors import TensorType
from tests.helpers.calls import Maker, case
from tests.helpers.duel import duel
from tests.helpers.execution import Lie, full_path
from tests.helpers.one_operator import Job, job_of

LENGTH = 1030
"""Elements of a row: a chain over it nests once more."""

ENTRIES = 6
"""Entries of the fold for each bit of a key."""


@pytest.fixture(scope="module")
def job() -> Job:
    """The job that takes the largest of a long row."""
    kind = TensorType.of(DType.FLOAT32, (LENGTH,))
    words = Maker(3, finite=True).words(kind)
    return job_of(case("argtopk", [kind], [words], k=1, largest=1))


PATHS = {
    "the end of a count of keys": (0, 1, LENGTH - 1025),
    "a candidate": (ENTRIES * 9 + 5,),
    "the search for the place": (ENTRIES * 32, 0, 700),
}


@pytest.mark.parametrize(
    ("path", "side"), list(zip(PATHS.values(), [*Side, Side.DEFENDER], strict=True)), ids=PATHS
)
def test_ref_12__a_lie_inside_a_long_order_is_found(
    job: Job, path: tuple[int, ...], side: Side
) -> None:
    call = job.plan.calls[0].call
    whole = full_path(call.op.fold(call, 0), path)
    right = job.good.entries(0, job.value, 0, whole[:-1])[whole[-1]]
    # No key at all, or a candidate or a place far off.
    wrong = 0 if whole[0] == 0 else right ^ 1 << 62
    liar = job.lying(Lie(0, job.value, 0, whole, wrong))
    ended = duel(job).liar(side, liar).play()
    ruling = ended.wrong(side, "REF-12", 0, job.value).ruling
    assert tuple(ruling.path) == whole
    assert int.from_bytes(ruling.computed, "big") == right
    assert ruling.read_bytes < 13_000
