"""The golden vectors: made by their program, and right by exact arithmetic."""

import json
from typing import Any

import pytest

from tests.protocol.arithmetic.oracle import is_finite, nearest, value
from tests.protocol.arithmetic.test_f32 import exact_fma
from tests.protocol.arithmetic.test_functions import FUNCTIONS, in_domain, reference
from tests.vectors import arithmetic


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(arithmetic.PATH.read_text())
    return loaded


def rows(stored: dict[str, Any], name: str) -> list[list[int]]:
    return [[int(word, 16) for word in row] for row in stored["rows"][name]]


def test_the_file_is_what_its_program_makes() -> None:
    # Rows of every operation, digests over whole sets, Philox and the permutation.
    assert arithmetic.PATH.read_text() == arithmetic.text()


def test_num_1__fma_rows_are_exact(stored: dict[str, Any]) -> None:
    for a, b, c, result in rows(stored, "fma"):
        assert result == exact_fma(a, b, c)


def test_num_1__sums_and_products_are_exact(stored: dict[str, Any]) -> None:
    for a, b, result in rows(stored, "add"):
        assert not is_finite(a) or not is_finite(b) or result == nearest(value(a) + value(b))
    for a, b, result in rows(stored, "div"):
        assert not is_finite(a) or not is_finite(b) or result == nearest(value(a) / value(b))


def test_num_7__function_rows_are_correctly_rounded(stored: dict[str, Any]) -> None:
    for function, true in FUNCTIONS:
        for x, result in rows(stored, function.__name__):
            assert not in_domain(function, x) or result == reference(true, x)
