"""What ``identic doctor`` finds."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from identic.kernels import _native
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda.survey import Found, Survey
from identic.kernels.reference_backend import ReferenceBackend
from identic.node.cli import gpus, machine, selftest
from identic.node.cli.screens.report import Outcome
from identic.node.config import Config
from identic.node.execution.selftest import GOLDEN, digest
from identic.node.worker import cards
from tests.helpers.cards import Sound, Wrong
from tests.node.cli.conftest import Command, process


def test_the_known_bits_are_those_of_the_reference() -> None:
    assert digest(ReferenceBackend()) == GOLDEN


@pytest.mark.parametrize("path", _native.paths())
def test_every_path_gives_the_known_bits(path: str) -> None:
    before = _native.path()
    try:
        _native.set_path(path)
        assert digest(CpuBackend()) == GOLDEN
    finally:
        _native.set_path(before)


def test_wrong_bits_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "GOLDEN", "0" * 64)
    assert selftest.check(_native.paths()).outcome is Outcome.NO


def test_doctor_checks_everything_and_says_so_in_json(identic: Command) -> None:
    ran = identic("doctor", "--json")
    names = [c["check"] for c in ran.value["checks"] if not c["check"].startswith("cuda:")]
    assert names == [
        "python", "packages", "cores", "vectors", "kernels", "float unit",
        "gpu", "memory", "disk", "ports", "clock", "torch",
    ]  # fmt: skip
    assert (ran.code == 0) == ran.value["ok"]
    assert len(ran.value["devices"]) == len(ran.value["checks"]) - len(names)


def test_doctor_as_a_process_writes_plain_lines(tmp_path: Path) -> None:
    ran = process("doctor", cwd=tmp_path)
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert ran.out.count("\n") >= 12


def config(folder: Path, text: str) -> Config:
    path = folder / "node.toml"
    path.write_text(text)
    return Config.load(path)


def test_a_taken_port_is_told_with_its_address(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        found = machine.ports(config(tmp_path, f'listen = "{address}"'))
    assert found.outcome is Outcome.BUT
    assert address in found.text


def test_more_memory_than_there_is_cannot_be_offered(tmp_path: Path) -> None:
    found = machine.memory(config(tmp_path, "[limits]\nmemory_bytes = '900TiB'"))
    assert found.outcome is Outcome.NO
    assert "node.toml:2" in found.remedy


def test_a_full_disk_is_told_with_what_is_offered(tmp_path: Path) -> None:
    found = machine.disk(tmp_path, config(tmp_path, "[limits]\ndisk_bytes = '900TiB'"))
    assert found.outcome is Outcome.BUT
    assert "node.toml:2" in found.remedy


def test_a_changed_float_unit_is_told() -> None:
    fine = {"ftz": False, "daz": False, "rounding": "nearest"}
    assert machine.floats(fine).outcome is Outcome.FINE
    for change in ({"ftz": True}, {"daz": True}, {"rounding": "up"}):
        assert machine.floats({**fine, **change}).outcome is Outcome.BUT


def test_a_slow_machine_is_told() -> None:
    assert machine.vectors(["scalar"]).outcome is Outcome.BUT
    assert machine.vectors(["avx2", "scalar"]).outcome is Outcome.FINE


def test_a_clock_that_was_never_set_will_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "DRIFT_S", 0.0005)
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    assert machine.clock().outcome is Outcome.NO


def test_a_kernel_that_does_not_tell_about_ntp_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "synchronised", lambda: None)
    monkeypatch.setattr(machine, "DRIFT_S", 0.02)
    assert machine.clock().outcome in {Outcome.FINE, Outcome.BUT}


def test_a_machine_without_torch_can_be_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert machine.torch().outcome is Outcome.BUT


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PACKAGES", ("no-such-package",))
    found = machine.packages()
    assert found.outcome is Outcome.NO
    assert "no-such-package" in found.text


def test_a_folder_that_cannot_be_written_will_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    assert machine.disk(tmp_path / "deep" / "er", None).outcome is Outcome.NO


# ---- devices --------------------------------------------------------------------------------

H100 = Found("cuda:0", "NVIDIA H100", 90, 80 << 30, 79 << 30)
T4 = Found("cuda:1", "Tesla T4", 75, 15 << 30, 1 << 30)


def test_devices_are_tried_and_told_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in: list[Sound] = [Sound(), Wrong("erf")]
    monkeypatch.setattr(cards, "survey", lambda: Survey("14.2.0", "12.9", "13.0", (H100, T4)))
    monkeypatch.setattr(cards, "opened", lambda index: put_in[index])
    lines, devices = gpus.examine()
    assert [line.name for line in lines] == ["gpu", "cuda:0", "cuda:1"]
    assert "CuPy 14.2.0" in lines[0].text
    assert "driver up to CUDA 13.0" in lines[0].text
    assert lines[1].outcome is Outcome.FINE
    assert "NVIDIA H100, sm_90" in lines[1].text
    assert lines[2].outcome is Outcome.NO
    assert "wrong bits for erf" in lines[2].text
    assert [one["sound"] for one in devices] == [True, False]
    assert devices[0]["memory_bytes"] == 80 << 30


def test_a_card_that_cannot_be_used_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpus, "DRIVER", tmp_path)
    monkeypatch.setattr(gpus, "AMD", tmp_path / "none")
    monkeypatch.setattr(cards, "installed", lambda: False)
    (line,), devices = gpus.examine()
    assert (line.outcome, line.text, devices) == (Outcome.FINE, "none found; none needed", [])
    (tmp_path / "0000:01:00.0").mkdir()
    information = "Model: \t NVIDIA GeForce RTX 4090\nIRQ: 1\n"
    (tmp_path / "0000:01:00.0" / "information").write_text(information)
    (line,), _ = gpus.examine()
    assert line.outcome is Outcome.BUT
    assert line.text == "NVIDIA GeForce RTX 4090; not used: CuPy is not installed"
    assert "pip install" in line.remedy
