"""``identic debug``: bit patterns on every backend, and backends side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cuda_backend import CudaBackend
from identic.node.debug import twins
from identic.node.debug.cases import SPECIAL
from identic.node.worker import cards
from identic.protocol.dtypes import DType
from identic.protocol.encoding import encode
from identic.protocol.errors import LocalError
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.ops.elementwise import OPERATORS as ELEMENTWISE
from identic.protocol.ops.primitives import PRIMITIVES
from tests.cuda.shim.device import ShimDevice
from tests.helpers.programs import mlp
from tests.node.cli.conftest import Command


class Liar:
    """The reference with the lowest bit of one element of some operators inverted."""

    def __init__(self, *operators: str) -> None:
        self.operators = operators

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        result = twins.named("reference").run(call, inputs)
        if call.op.name in self.operators and result.size:
            result = result.copy()
            result.reshape(-1).view(np.uint8)[-result.dtype.itemsize] ^= 1
        return result


def lying(patch: pytest.MonkeyPatch, *operators: str) -> None:
    """Make the scalar path lie about some operators."""
    liar, named = Liar(*operators), twins.named
    patch.setattr(twins, "named", lambda n: twins.Twin(n, liar.run) if n == "scalar" else named(n))


@pytest.mark.parametrize("name", [op.name for op in ELEMENTWISE])
def test_eval_gives_the_primitive_step_on_every_backend(name: str, identic: Command) -> None:
    kind = DType.BOOL if name in {"not", "and", "or"} else DType.FLOAT32
    arity = TABLE[name].arity or 1
    patterns = [word for word in SPECIAL[kind] for _ in range(arity)]
    for i in range(0, len(patterns), max(1, arity - 1)):
        patterns[i] = patterns[-i - 1]
    if name == "where":
        patterns[::3] = [w & 1 for w in patterns[::3]]
    width = 2 * kind.size
    ran = identic("debug", "eval", name, *(f"{w:0{width}x}" for w in patterns), "--json")
    assert ran.code == 0, ran.out + ran.err
    assert ran.value["agree"] is True
    primitive = {"where": "select", "cast": "cast.float32.float32"}.get(
        name, f"{name}.{kind.label}"
    )
    for at, row in enumerate(ran.value["rows"]):
        words = tuple(patterns[at * arity : (at + 1) * arity])
        want = PRIMITIVES[primitive].apply(words)
        assert {int(r, 16) for r in row["results"].values()} == {want}
        assert set(row["results"]) == {"fold", "reference", *_native.paths()}


def test_eval_writes_patterns_and_decimals(identic: Command) -> None:
    ran = identic("debug", "eval", "add", "3f800000", "0x33800000", "7f7fffff", "7f7fffff")
    assert ran.code == 0
    assert "add 3f800000 (1)  33800000 (5.9604645e-08)" in ran.out
    assert "3f800000  1  fold, reference" in ran.out
    assert "7f800000  inf  fold, reference" in ran.out


@pytest.mark.parametrize(
    ("arguments", "result", "value"),
    [
        (["cast", "4f000000", "--to", "int32"], "7fffffff", "2147483647"),
        (["cast", "ffffffff", "--dtype", "int32", "--to", "float32"], "bf800000", "-1"),
        (["cast", "3f808000", "--to", "bfloat16"], "3f80", "1"),
        (["mul", "8000000000000000", "ffffffffffffffff", "--dtype", "int64"], f"{1 << 63:x}", ""),
        (["where", "1", "7f800001", "0"], "7f800001", "nan"),
        (["exp", "1"], "3f800000", "1"),
    ],
)
def test_eval_takes_every_element_type(
    arguments: list[str], result: str, value: str, identic: Command
) -> None:
    ran = identic("debug", "eval", *arguments, "--json")
    assert ran.code == 0
    (row,) = ran.value["rows"]
    assert set(row["results"].values()) == {result}
    assert row["value"] == value or not value


@pytest.mark.parametrize(
    "arguments",
    [
        ["matmul", "3f800000", "3f800000"],
        ["nonsense", "0"],
        ["add", "3f800000"],
        ["exp", "xyz"],
        ["exp", "1_0"],
        ["exp", "-1"],
        ["exp", "100000000"],
        ["not", "2"],
        ["exp", "0", "--dtype", "float64"],
        ["cast", "0", "--to", "half"],
    ],
)
def test_eval_refuses_what_makes_no_sense(arguments: list[str], identic: Command) -> None:
    ran = (
        identic("debug", "eval", "--", *arguments)
        if "-1" in arguments
        else identic("debug", "eval", *arguments)
    )
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_eval_refuses_types_that_the_operator_does_not_take(identic: Command) -> None:
    ran = identic("debug", "eval", "exp", "0", "--dtype", "int64")
    assert ran.code == 1
    assert "OP-1" in ran.err


def test_eval_ends_with_1_when_backends_differ(
    identic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, "exp")
    ran = identic("debug", "eval", "exp", "0", "3f800000")
    assert ran.code == 1
    assert ran.out.count("they differ") == 1
    assert "402df855  2.718282   scalar" in ran.out
    assert identic("debug", "eval", "exp", "0", "3f800000", "--json").value["agree"] is False


def test_bits_says_how_much_is_equal(identic: Command) -> None:
    ran = identic("debug", "bits", "reference", "cpu:2", "--cases", "2", "--json")
    assert ran.code == 0, ran.out
    assert ran.value["equal"] is True
    assert ran.value["calls"] == 2 * len(TABLE)
    assert ran.value["elements"] > 300
    said = identic("debug", "bits", "scalar", "cpu", "--op", "exp", "--op", "matmul")
    assert said.code == 0
    assert said.out.startswith("✓ equal: scalar and cpu, ")
    assert "of 100 calls compared" in said.out


def test_bits_shows_the_first_element_that_differs(
    identic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, "exp", "sum_last")
    arguments = ["debug", "bits", "reference", "scalar"]
    ran = identic(*arguments, "--op", "exp")
    assert ran.code == 1
    assert "✗ reference and scalar differ in exp, seed " in ran.out
    found = identic(*arguments, "--op", "exp", "--json").value["difference"]
    assert int(found["a"], 16) ^ int(found["b"], 16) == 1
    assert found["a"] == found["rule"]
    (operand,) = found["operands"]
    assert operand["place"].startswith("a[")
    again = ran.out.partition("again: identic ")[2].split()
    assert identic(*again, "--json").value["difference"] == found
    longer = identic(*arguments, "--op", "sum_last", "--json").value["difference"]
    assert longer["operands"] == []
    assert longer["fold"] == 127
    assert identic(*arguments, "--op", "abs").code == 0


def test_bits_takes_a_program_and_a_job(
    tmp_path: Path, identic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "program"
    file.write_bytes(encode(mlp(shards=2, batch=4)))
    ran = identic("debug", "bits", "fold", "cpu", "--program", file, "--json")
    assert ran.code == 0, ran.err
    assert ran.value["calls"] > 50
    lying(monkeypatch, "matmul")
    ran = identic("debug", "bits", "cpu", "scalar", "--program", file)
    assert ran.code == 1
    assert "matmul of float32[" in ran.out
    assert "a fold of" not in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["cpu", "nonsense"],
        ["cpu", "scalar:0"],
        ["cpu", "scalar:x"],
        ["fold:2", "cpu"],
        ["cpu", "scalar", "--op", "nonsense"],
        ["cpu", "scalar", "--op", "exp", "--program", "file"],
        ["cpu"],
    ],
)
def test_bits_refuses_what_makes_no_sense(arguments: list[str], identic: Command) -> None:
    ran = identic("debug", "bits", *arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_bits_refuses_a_file_that_is_no_program(tmp_path: Path, identic: Command) -> None:
    file = tmp_path / "program"
    assert identic("debug", "bits", "cpu", "scalar", "--program", file).code == 3
    file.write_bytes(b"not a program")
    assert identic("debug", "bits", "cpu", "scalar", "--program", file).code == 1


def test_a_twin_leaves_path_and_threads_as_they_were() -> None:
    before = (_native.path(), _native.threads())
    with twins.taken("scalar", 3):
        assert (_native.path(), _native.threads()) == ("scalar", 3)
    assert (_native.path(), _native.threads()) == before


# ---- devices ----------------------------------------------------------------------------------


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The second device of this machine is one that runs the kernels on the CPU."""

    def opened(index: int) -> CudaBackend:
        if index != 1:
            raise LocalError(f"there is no device {index}", remedy="take cuda:1")
        return CudaBackend(ShimDevice())

    twins.card.cache_clear()
    monkeypatch.setattr(cards, "opened", opened)
    yield
    twins.card.cache_clear()


@pytest.mark.usefixtures("shim")
def test_a_device_is_a_twin_under_its_name(identic: Command) -> None:
    patterns = ["3f800000", "33800000", "7f7fffff", "7f7fffff"]
    ran = identic("debug", "eval", "add", *patterns, "--device", "cuda:1", "--json")
    assert ran.code == 0, ran.out + ran.err
    results = ran.value["rows"][0]["results"]
    assert list(results) == ["fold", "reference", *_native.paths(), "cuda:1"]
    assert "cuda" not in identic("debug", "eval", "add", *patterns).out
    missing = identic("debug", "eval", "add", *patterns, "--device", "cuda")
    assert missing.code == 3
    assert "there is no device 0" in missing.err
    assert identic("debug", "eval", "add", *patterns, "--device", "abacus").code != 0


@pytest.mark.usefixtures("shim")
def test_a_device_is_compared_with_the_cpu(identic: Command) -> None:
    chosen = ["--op", "exp", "--op", "where", "--op", "permute", "--cases", 4]
    ran = identic("debug", "bits", "cpu", "cuda:1", *chosen, "--json")
    assert ran.code == 0, ran.out + ran.err
    assert ran.value["calls"] == 12
