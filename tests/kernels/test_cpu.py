"""The CPU kernels give the reference's bits on every path, with one thread and with two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array, from_words, words
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.reference_backend import REFERENCE
from identic.protocol.ops import TABLE
from tests.helpers.calls import calls
from tests.helpers.effort import examples


@pytest.fixture(params=_native.paths())
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    name: str = request.param
    _native.set_path(name)
    yield name
    _native.set_path("auto")
    _native.set_threads(1)


def disguised(array: Array, how: int) -> Array:
    """The same elements in another layout: axes reversed in memory, or gaps between them."""
    if how == 1:
        return array.transpose().copy(order="C").transpose()
    if how == 2 and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        view = wide[..., 1::2]
        view[...] = array
        return view
    return array


@pytest.mark.parametrize("name", sorted(TABLE))
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_cpu_kernels_read_any_layout(name: str, data: st.DataObject) -> None:
    case = data.draw(calls(name))
    kinds = zip(case.call.inputs, case.inputs, strict=True)
    arrays = [from_words(kind, values) for kind, values in kinds]
    want = words(CpuBackend(1).run(case.call, arrays))
    views = [disguised(a, data.draw(st.integers(0, 2))) for a in arrays]
    before = [words(v) for v in views]
    assert words(CpuBackend(1).run(case.call, views)) == want
    assert [words(v) for v in views] == before


@pytest.mark.parametrize("name", sorted(TABLE))
@pytest.mark.usefixtures("path")
def test_op_8__cpu_kernels_give_the_bits_of_the_reference(name: str) -> None:
    @settings(max_examples=examples(40), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(calls(name))
        kinds = zip(case.call.inputs, case.inputs, strict=True)
        arrays = [from_words(kind, values) for kind, values in kinds]
        want = REFERENCE[name](case.call, case.inputs)
        for threads in (1, 2):
            got = CpuBackend(threads).run(case.call, arrays)
            assert got.shape == case.call.output.shape
            assert got.flags.c_contiguous
            assert words(got) == want, f"{case.call.inputs} with {threads} threads"

    check()
