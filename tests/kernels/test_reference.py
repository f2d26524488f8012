"""The reference kernels and the folds of the operators agree on every element."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels.reference_backend import REFERENCE
from identic.protocol.ops import TABLE
from identic.protocol.ops.evaluate import element
from tests.helpers.calls import calls
from tests.helpers.effort import examples


@pytest.mark.parametrize("name", sorted(TABLE))
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_op_6__reference_and_folds_agree(name: str, data: st.DataObject) -> None:
    case = data.draw(calls(name))
    words = REFERENCE[name](case.call, case.inputs)
    assert len(words) == case.call.output.elements
    # Long folds are slow: a few elements of a large result are enough.
    every = max(1, len(words) // 200)
    for flat in range(0, len(words), every):
        assert element(case.call, flat, case.read) == words[flat], (case.call.inputs, flat)
