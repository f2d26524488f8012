"""Empty axes through every operator: results, digests, openings and disputes.

Each operator is called with operands or a result that have no elements. Where the result has
some all the same, a lie about it is found; where it has none, its one digest is held to.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import from_words, to_bytes, words
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.hashing import chunk_root
from identic.kernels.reference_backend import REFERENCE
from identic.proofs.tensors import tensor_digest
from identic.protocol.dispute.moves import Side
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.ops.evaluate import element
from tests.helpers.calls import BUILDERS, Case, Maker
from tests.helpers.duel import duel
from tests.helpers.execution import Lie
from tests.helpers.one_operator import job_of
from tests.helpers.scripted import Chooser, Scripted

SEEDS = 250
MOST = 3
"""Cases of each kind that are looked at."""


def empty(call: Call) -> bool:
    """Whether a tensor of the call has no elements."""
    return any(kind.elements == 0 for kind in (*call.inputs, call.output))


def cases(name: str) -> Iterator[Case]:
    """A few calls with an empty tensor: results with elements first."""
    found = [
        made
        for made in (BUILDERS[name](Maker(seed)) for seed in range(SEEDS))
        if empty(made.call) and made.call.output.elements <= 60
    ]
    found.sort(key=lambda made: made.call.output.elements == 0)
    full = [made for made in found if made.call.output.elements]
    yield from full[:MOST]
    yield from found[len(full) : len(full) + MOST]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_op_8__empty_axes_go_through_every_operator(name: str) -> None:
    looked = 0
    for made in cases(name):
        call = made.call
        kinds = zip(call.inputs, made.inputs, strict=True)
        arrays = [from_words(kind, values) for kind, values in kinds]
        want = [element(call, i, made.read) for i in range(call.output.elements)]
        assert REFERENCE[name](call, made.inputs) == want
        for path in _native.paths():
            _native.set_path(path)
            for threads in (1, 2):
                got = CpuBackend(threads).run(call, arrays)
                assert got.shape == call.output.shape
                assert words(got) == want
        _native.set_path("auto")
        _native.set_threads(1)
        result = from_words(call.output, want)
        view = memoryview(np.ascontiguousarray(result).reshape(-1).view(np.uint8).data)
        digest = tensor_digest(call.output, to_bytes(result))
        assert tensor_digest(call.output, view, chunk_root) == digest
        looked += 1
    # A vector of random numbers and the like has an empty result at most.
    assert looked >= 2


@pytest.mark.parametrize("name", sorted(TABLE))
def test_ref_9__ref_12__lies_about_results_of_empty_operands_are_found(name: str) -> None:
    for number, made in enumerate(cases(name)):
        job = job_of(made)
        side = Side.DEFENDER if number % 2 else Side.CHALLENGER
        if not made.call.output.elements:
            assert job.good.chunk_hashes(0, job.value) == []
            teller = Scripted(job.good, Chooser([1, 0, job.value, 0]).pick)
            ended = duel(job).claiming(side, teller.leaves, teller).play()
            ended.wrong(side, "REF-9", 0, job.value)
            continue
        at = made.call.output.elements - 1
        word = job.good.entries(0, job.value, at, ())[-1]
        liar = job.lying(Lie(0, job.value, at, (), word ^ 1))
        ended = duel(job).liar(side, liar).play()
        assert ended.wrong(side, "REF-12", 0, job.value).ruling.element == at
