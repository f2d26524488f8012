"""The benchmarks compute what they say and write well-formed rows; no time is judged."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from identic.node.bench import measure, memory, operators, run, steps, timing
from identic.node.bench.rows import Benchmark, Case, Footprint, Row, cells, markdown, size_cells
from identic.node.cli import main
from identic.node.worker import cards
from tests.helpers.cards import Sound

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
    assert main.run(["bench", "--quick", "--threads", "1", "--into", str(folder), *words]) == 0
    return folder


@pytest.mark.long
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


@pytest.mark.long
def test_the_table_has_the_same_rows(report: Path) -> None:
    found = json.loads((report / "bench.json").read_text())
    table = (report / "bench.md").read_text()
    memory_rows = [Footprint(**row) for row in found["memory"]]
    assert markdown(found["machine"], [Row(**row) for row in found["rows"]], memory_rows) == table


@pytest.mark.parametrize(
    "arguments", [["--clock", "sun"], ["--threads", "0"], ["--only", "no such row", "--quick"]]
)
def test_what_makes_no_sense_is_refused(arguments: list[str], tmp_path: Path) -> None:
    assert main.run(["bench", "--threads", "1", *arguments, "--into", str(tmp_path)]) == 2


def test_without_torch_the_bench_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main.run(["bench", "--quick"]) == 3
    assert "identic[torch]" in capsys.readouterr().err


def test_a_measuring_process_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "VARIABLES", ())
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert main.run(["bench", "--quick"]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_without_the_examples_steps_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {b.name for b in steps.benchmarks()} >= {"gpt step", "digits step"}
    monkeypatch.setattr(steps, "EXAMPLES", Path("nowhere"))
    assert {b.name for b in steps.benchmarks()} == {"tensor digest, 16 MiB"}


def test_a_job_is_left_out_where_what_it_imports_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "gpt-2 small step, 1 x 256" in {b.name for b in steps.benchmarks()}
    monkeypatch.setattr(steps, "NEEDS", {"gpt2_small": "no_such_package"})
    assert not [b.name for b in steps.benchmarks() if "gpt-2" in b.name]


def test_a_look_leaves_out_what_takes_minutes() -> None:
    quick = [b.name for b in measure.selected([], quick=True)]
    assert "gpt step" in quick
    assert not [name for name in quick if "gpt-2" in name]
    assert [b.name for b in measure.selected(["gpt-2 small step"], quick=True)]


def test_long_calls_are_repeated_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "MOST_S", 1e-9)
    case = Case(lambda: sum(range(100)), {"torch": lambda: None})
    found = timing.measure(case, timing.FULL, timing.CLOCKS["cpu"], threads=1)
    assert found.repetitions == timing.FEWEST


PEAK = """
from identic.node.bench import memory
start = memory.Start.here()
b"x" * (1 << 26)
print(start.peak())
"""


def test_a_peak_counts_what_was_there_for_a_while() -> None:
    # In a process of its own, as it is used: one that holds much may lose some meanwhile.
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert 0.9 * (1 << 26) < int(done.stdout) < 1 << 28


@pytest.mark.long
def test_memory_is_measured_on_both_sides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "JOBS", {"memory of digits": "digits_mlp"})
    words = ["--only", "memory", "--threads", "1"]
    assert main.run(["bench", *words, "--into", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "bench.json").read_text())
    (row,) = (Footprint(**row) for row in found["memory"])
    assert row.ours_bytes > 0
    assert row.peer_bytes > 0
    assert math.isclose(row.ratio, row.ours_bytes / row.peer_bytes)
    assert " | ".join(size_cells(row)) in (tmp_path / "bench.md").read_text()


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


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("form", ["NN", "NT", "TN"])
def test_all_sides_multiply_the_same(form: str, count: int) -> None:
    case = operators.product(20, 64, 36, form, count=count)
    ours = np.asarray(case.ours())
    for peer in case.peers.values():
        other = np.asarray(peer()).reshape(ours.shape)
        np.testing.assert_allclose(ours, other, rtol=1e-3, atol=1e-4)


# ---- on a device ------------------------------------------------------------------------------


def test_steps_on_a_device_are_those_of_the_examples() -> None:
    card = Sound()
    found = {benchmark.name: benchmark for benchmark in measure.selected(["digits"], card)}
    case = found["digits step"].prepare()
    loss = case.ours()
    assert isinstance(loss, np.ndarray)
    assert loss == steps.Training("digits_mlp").step()[-1]
    assert card.steps == 1
    assert set(case.peers) == {"torch on the CPU"} or torch.cuda.is_available()


def test_a_device_that_is_not_here_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cards, "installed", lambda: False)
    assert main.run(["bench", "--quick", "--device", "cuda:1"]) == 3
    assert "CuPy is not installed" in capsys.readouterr().err
