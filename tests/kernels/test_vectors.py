"""The golden vectors of the operators: fresh, complete, and what both backends compute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from identic.kernels import _native
from identic.kernels.arrays import from_words, words
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.operators import KERNELS
from identic.kernels.reference_backend import REFERENCE
from identic.protocol.job import terms
from identic.protocol.ops import KERNEL_SET, TABLE
from identic.protocol.ops.kernel_set import VECTORS
from tests.vectors import functions, generate, kernel_set

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


def test_num_20__the_kernel_set_is_bound_to_its_vectors() -> None:
    # After a change of the vectors: `make vectors`, which refuses another result.
    assert kernel_set.digest() == VECTORS
    assert terms.KERNEL_SET == KERNEL_SET
    for path in kernel_set.files():
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content.get("kernel_set", KERNEL_SET) == KERNEL_SET


def test_num_20__another_result_is_another_kernel_set() -> None:
    for name, old, new in (
        ("arithmetic.json", '"3f800000"]', '"3f800001"]'),
        ("functions.json", '"kernel_set"', '"kernel_set"'),
        ("ops/cumsum.json", "", ""),
    ):
        before = (kernel_set.FOLDER / name).read_text(encoding="utf-8")
        assert kernel_set.changed(before, before) == []
        after = before.replace(old, new, 1) if old != new else flipped(before)
        assert kernel_set.changed(before, after)
        if name != "arithmetic.json":
            other = after.replace('"kernel_set": 1', '"kernel_set": 2')
            assert kernel_set.changed(before, other) == []


def flipped(text: str) -> str:
    """A file with the last result of its first case, or its first digest, changed."""
    content = json.loads(text)
    if "cases" in content:
        found = next(c["output"]["words"] for c in content["cases"] if c["output"]["words"])
        found[-1] = found[-1].translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    else:
        content["digests"]["exp"][0] = "00"
    return json.dumps(content)


def test_num_7__functions_over_the_sample() -> None:
    stored = json.loads(functions.PATH.read_text(encoding="utf-8"))["digests"]
    assert {name: functions.digests(name) for name in functions.FUNCTIONS} == stored


PIECES = {"exp": 12, "log": 4, "tanh": 11, "erf": 3, "sigmoid": 12, "sin": 4, "cos": 12}
"""A million operands of each function around its bends: small ones, large ones, of either sign."""


@pytest.mark.parametrize("path", _native.paths())
def test_num_7__a_piece_of_the_sample_on_every_path(path: str) -> None:
    stored = json.loads(functions.PATH.read_text(encoding="utf-8"))["digests"]
    try:
        _native.set_path(path)
        for name, piece in PIECES.items():
            before = bytes.fromhex(stored[name][piece - 1])
            assert functions.digest(before, name, piece).hex() == stored[name][piece], name
    finally:
        _native.set_path("auto")


def test_op_8__every_operator_has_its_twins_and_vectors() -> None:
    files = {p.stem for p in (ROOT / "tests" / "vectors" / "ops").glob("*.json")}
    assert files == set(TABLE) == set(REFERENCE) == set(KERNELS)
