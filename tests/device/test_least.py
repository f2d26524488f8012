"""The checks of a device in their smallest form, on the stand-in for one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib.util import module_from_spec
from pathlib import Path
from typing import NoReturn

import pytest

from identic.kernels.arrays import Array
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda.device import DeviceFault
from identic.kernels.cuda_backend import CudaBackend
from identic.node.bench.rows import Row
from identic.protocol.errors import LocalError
from identic.protocol.hashing import EMPTY_ROOT, fold
from identic.protocol.hashing import leaf_hash as leaf
from identic.protocol.ops.base import Call
from tests.cuda.fake_cupy import Fake
from tests.cuda.shim.device import ShimDevice
from tests.device import __main__ as script
from tests.device import checks, part, ratios, roots, stand_ins
from tests.device.setting import Finding, Setting

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def setting() -> Setting:
    """The stand-in, and the smallest sizes."""
    return Setting(ShimDevice(), CpuBackend(), least=True, torch_device="cpu")


@pytest.mark.parametrize("name", sorted({*checks.CHECKS, "roots"}))
def test_every_check_comes_out_right(setting: Setting, name: str) -> None:
    found = list(part.found(name, setting))
    assert found
    assert [one for one in found if one["ok"] is not True] == []


class Negating(CudaBackend):
    """Operators with a wrong sign."""

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        negative: Array = -super().run(call, inputs)
        return negative


class Wrong(Setting):
    """A device with a wrong sign."""

    @cached_property
    def backend(self) -> CudaBackend:
        return Negating(self.device)


def test_a_wrong_bit_is_found(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Wrong(setting.device, setting.cpu, least=True)
    assert any(f.ok is False for f in checks.vectors(wrong))
    assert any(f.ok is False for f in checks.random_calls(wrong))
    stored = json.loads(roots.GOLDEN.read_text(encoding="utf-8"))
    stored["mlp"]["end"] = "00" * 32
    monkeypatch.setattr(roots, "GOLDEN", _File(json.dumps(stored)))
    assert [f.ok for f in roots.roots(setting)] == [False, True]
    assert [f.ok for f in checks.random_calls(Setting(setting.device, None))] == [None]


class _File:
    """A file of some text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read_text(self, encoding: str) -> str:
        assert encoding == "utf-8"
        return self.text


def test_the_stored_roots_are_those_of_the_cpu() -> None:
    stored = json.loads(roots.GOLDEN.read_text(encoding="utf-8"))
    assert set(stored) == set(roots.RUNS)
    assert roots.made(["mlp"]) == {"mlp": stored["mlp"]}


def test_a_card_without_room_is_told_from_one_that_fails(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(error: LocalError) -> Setting:
        device = ShimDevice()

        def empty(*asked: object) -> NoReturn:
            del asked
            raise error

        monkeypatch.setattr(device, "empty", empty)
        return replace(setting, device=device)

    small = refusing(LocalError("no room", remedy=""))
    assert {f.ok for f in checks.large(small)} == {None}
    with pytest.raises(DeviceFault):
        list(checks.large(refusing(DeviceFault("gone", remedy=""))))


@pytest.mark.long
def test_all_stored_roots_are_those_of_the_cpu() -> None:
    assert roots.made(list(roots.RUNS)) == json.loads(roots.GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["products", "hashing", "fused"])
def test_times_are_rows_of_the_bench(setting: Setting, name: str) -> None:
    found = list(part.found(name, setting))
    assert found
    for one in found:
        assert Row(**one).ours_s > 0
        assert script.told(one).startswith(one["name"])


@pytest.mark.long
def test_a_step_of_a_gpt_is_timed(setting: Setting) -> None:
    found = [one["name"] for one in part.found("gpt-2 small", setting)]
    assert found == ["GPT-2 small step, 8 x 1024", "GPT-2 small step, 8 x 1024 and state root"]


@pytest.mark.long
def test_a_step_without_room_is_not_timed(setting: Setting) -> None:
    small = replace(setting, device=ShimDevice(capacity=1 << 20))
    (one,) = part.found("gpt 350M", small)
    assert one["ok"] is None
    assert "1.0 MiB free" in one["note"]


@pytest.mark.parametrize("name", ["roots", "hashing"])
def test_a_part_runs_through_cupys_interface(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "cupy", Fake().module())
    monkeypatch.delitem(sys.modules, "identic.kernels.cuda.cupy_device", raising=False)
    assert part.main(name, least=True) == 0
    monkeypatch.delitem(sys.modules, "identic.kernels.cuda.cupy_device")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines
    assert all(one.get("ok", True) for one in lines)


PLAIN = """
import re, sys, tomllib
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

listed = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]
lacking = {re.match("[a-z0-9]+", name)[0] for name in listed} - {"numpy"}
lacking |= {"google", "grpc", "hypothesis", "nacl", "pytest", "sklearn", "transformers"}

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in lacking or name == "identic.kernels._native":
            return None
        return super().find_spec(name, path, target)

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Finder]
from tests.device import part, ratios, roots
assert not part.BUILT
assert next(part.found("random calls", ratios.Setting(None, None)))["ok"] is None
for name in ("gpt_docs", "resnet_digits"):
    roots.runpy.run_path(f"{roots.EXAMPLES / name}.py")
print(roots.RUNS["mlp"][0]().seed)
"""
"""Makes what the checks need where there are numpy and torch, and no more."""


def test_the_checks_need_no_other_packages() -> None:
    command = [sys.executable, "-c", PLAIN]
    root = HERE.parents[1]
    places = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    ran = subprocess.run(command, cwd=root, env=places, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["3"], ran.stderr


def test_every_part_has_a_limit() -> None:
    assert set(script.LIMITS) == {*checks.CHECKS, *ratios.RATIOS, "roots"}


def test_all_limits_and_the_start_fit_into_eight_minutes() -> None:
    text = (HERE / "run.sh").read_text(encoding="utf-8")
    start = sum(int(seconds) for seconds in re.findall(r"timeout (\d+) ", text))
    (whole,) = (int(seconds) for seconds in re.findall(r"left=\$\(\((\d+) - ", text))
    assert start + sum(script.LIMITS.values()) <= whole <= 480 - 10
    assert list(script.LIMITS)[:5] == [
        "vectors",
        "random calls",
        "roots",
        "products",
        "gpt-2 small",
    ]


def test_the_first_parts_have_the_time_and_leave_what_they_do_not_need() -> None:
    names = list(script.LIMITS)
    given: dict[str, float] = {}

    def run(name: str, seconds: float) -> tuple[str, list[str], str]:
        given[name] = seconds
        return "ok", [], ""

    script.report(names, sum(script.LIMITS.values()), run, list[str]().append)
    assert list(given) == names
    assert all(given[n] >= script.LIMITS[n] - 1 for n in names)
    assert given[names[-1]] > sum(script.LIMITS.values()) - 1
    given.clear()
    script.report(names[:3], script.LIMITS["vectors"] + 20.0, run, list[str]().append)
    assert round(given["vectors"]) == script.LIMITS["vectors"]
    assert round(given["random calls"]) == script.LIMITS["random calls"]


def test_a_part_that_fails_does_not_keep_others_from_running() -> None:
    right = json.dumps({"name": "x", "ok": True, "note": ""})
    ends = {"vectors": ("stopped after 70 s", [right], "said"), "roots": ("ok", ["?", right], "")}
    lines: list[str] = []
    found = script.report(list(ends), 100.0, lambda name, _: ends[name], lines.append)
    assert [p["ended"] for p in found["parts"]] == ["stopped after 70 s", "ok"]
    assert len(found["checks"]) == 2
    assert not script.good(found)
    assert "said" in lines
    late = script.report(["roots"], 0.0, lambda name, _: ends[name], lines.append)
    assert late["parts"][0]["ended"] == script.NOT_RUN
    assert lines[-1] == "NOT RUN, for lack of time: roots"
    assert not script.good(late)
    assert script.good(script.report(["roots"], 9.0, lambda name, _: ends[name], lines.append))


def test_a_process_is_stopped_at_its_limit_and_reported_when_it_fails() -> None:
    ended, lines, _ = script.process("vectors", 0.01)
    assert (ended, lines) == ("stopped after 0 s", [])


def test_stand_ins_hash_and_refuse_the_rest() -> None:
    plain = stand_ins.PlainHashes("native")
    data = bytes(range(200)) * 50
    hashes = plain.chunk_hashes(memoryview(data), 4096, b"\0")
    want = [leaf(data[at : at + 4096]) for at in range(0, len(data), 4096)]
    assert hashes == b"".join(want)
    assert plain.tree_root(hashes, b"\1") == fold(want)
    assert plain.tree_root(b"", b"\1") == EMPTY_ROOT
    with pytest.raises(LocalError, match=r"native.matmul of 1 values"):
        plain.matmul(1)
    functions = stand_ins.AbsentTypes("mpfr")
    with pytest.raises(LocalError, match=r"mpfr.context, of which exp"):
        functions.context(precision=functions.RoundUp).exp(1)
    finder = stand_ins.Finder("missing")
    found = finder.find_spec("missing.part", None)
    assert found is not None
    assert module_from_spec(found).__name__ == "missing.part"
    assert finder.find_spec("present", None) is None
    assert stand_ins.install()


def test_the_script_is_one_that_a_shell_reads() -> None:
    assert subprocess.run(["sh", "-n", HERE / "run.sh"], check=False).returncode == 0
    without = {**os.environ, "PYTHON": "false"}
    refused = subprocess.run([HERE / "run.sh"], env=without, capture_output=True, check=False)
    assert refused.returncode == 2
    assert b"cupy" in refused.stderr


def test_a_finding_is_told_in_words() -> None:
    for ok, word in ((True, "right"), (False, "WRONG"), (None, "cannot tell")):
        finding = Finding("x", ok)
        assert word in script.told({"name": finding.name, "ok": finding.ok, "note": finding.note})
