"""The benchmarks compute what they say and write well-formed rows; no time is judged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.bench import __main__ as bench
from tests.bench import operators
from tests.bench.rows import Benchmark, Row, cells, markdown

FUNCTIONS = [b for b in operators.benchmarks() if not b.name.startswith(("matmul", "adamw"))]

ROW = Row(
    name="a",
    ours_s=0.0123456,
    peer="torch",
    peer_s=0.00002,
    ratio=0.0123456 / 0.00002,
    threads=2,
    path="scalar",
    fraction_of_peak=None,
    repetitions=15,
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick run of one benchmark of each kind."""
    folder = tmp_path_factory.mktemp("bench")
    only = ["digits", "matmul 256", "layer norm", "tensor digest"]
    words = [word for name in only for word in ("--only", name)]
    arguments = ["--quick", "--threads", "1", "--out", str(folder), *words]
    assert bench.main(arguments) == 0
    return folder


def test_rows_are_well_formed(report: Path) -> None:
    found = json.loads((report / "bench.json").read_text())
    rows = [Row(**row) for row in found["rows"]]
    assert found["machine"]["processor"]
    for row in rows:
        assert row.ours_s > 0
        assert row.peer_s > 0
        assert math.isclose(row.ratio, row.ours_s / row.peer_s)
        assert row.path
        assert row.repetitions >= 1
        assert row.name.startswith("matmul") or row.fraction_of_peak is None
    made = {(row.name, row.peer, row.threads) for row in rows}
    assert len(made) == len(rows)
    assert ("digits step", "torch", 1) in made
    assert ("matmul 256 NN", "numpy", 1) in made


def test_the_table_has_the_same_rows(report: Path) -> None:
    found = json.loads((report / "bench.json").read_text())
    table = (report / "bench.md").read_text()
    assert markdown(found["machine"], [Row(**row) for row in found["rows"]]) == table


def test_a_row_is_written_with_three_figures() -> None:
    assert cells(ROW) == ("a", "2", "12.3 ms", "torch", "20 µs", "617.28", "")


@pytest.mark.parametrize("benchmark", FUNCTIONS, ids=lambda b: str(b.name))
def test_both_sides_compute_the_same(benchmark: Benchmark) -> None:
    case = benchmark.prepare()
    ours, theirs = case.ours(), case.peers["torch"]()
    assert isinstance(ours, list)
    assert isinstance(theirs, list)
    assert len(ours) == len(theirs) + 1  # The step's loss is the last.
    for one, other in zip(ours, theirs, strict=False):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("form", ["NN", "NT", "TN"])
def test_all_sides_multiply_the_same(form: str) -> None:
    case = operators.product(64, form)
    ours = np.asarray(case.ours())
    for peer in case.peers.values():
        np.testing.assert_allclose(ours, np.asarray(peer()), rtol=1e-3, atol=1e-4)
