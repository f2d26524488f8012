"""The golden vectors of the operators: fresh, complete, and what both backends compute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from identic.kernels.arrays import from_words, words
from identic.kernels.cpu_backend import KERNELS, CpuBackend
from identic.kernels.reference_backend import REFERENCE
from identic.protocol.ops import TABLE
from tests.vectors import generate

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_op_8__vectors_are_what_the_folds_give(name: str) -> None:
    assert generate.path(name).read_text(encoding="utf-8") == generate.text(name)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_op_8__both_backends_give_the_vectors(name: str) -> None:
    stored = json.loads(generate.path(name).read_text(encoding="utf-8"))
    for row in stored["cases"]:
        call, inputs, want = generate.parse(row, name)
        assert [int(n) for n in call.output.shape] == row["output"]["shape"]
        assert call.output.dtype.label == row["output"]["dtype"]
        assert REFERENCE[name](call, inputs) == want
        arrays = [from_words(k, w) for k, w in zip(call.inputs, inputs, strict=True)]
        assert words(CpuBackend().run(call, arrays)) == want


def test_op_8__every_operator_has_its_twins_and_vectors() -> None:
    files = {p.stem for p in (ROOT / "tests" / "vectors" / "ops").glob("*.json")}
    assert files == set(TABLE) == set(REFERENCE) == set(KERNELS)
