"""Rounded functions on every path; ``exhaustive.cpp`` takes all operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.protocol.arithmetic import functions
from tests.kernels.native.machine import SPECIAL, everywhere

FUNCTIONS: dict[str, Callable[[int], int]] = {
    "exp": functions.exp,
    "log": functions.log,
    "tanh": functions.tanh,
    "erf": functions.erf,
    "sigmoid": functions.sigmoid,
    "sin": functions.sin,
    "cos": functions.cos,
}

HARD = {
    "log": [0x3C413D3A, 0x41178FEB, 0x4C5D65A5, 0x65D890D3, 0x6F31A8EC],
    # 1/2 + x/4 is the middle of two numbers and the cube decides; in the last one, binary64 errs.
    "sigmoid": [k << 23 | sign << 31 for k in range(101, 116) for sign in (0, 1)]
    + [0x34400000, 0xB3C00000, 0x35A00000, 0x36F80000, 0xB7FE0000, 0xBA928601],
}


def apply(name: str, x: Array) -> Array:
    out = np.empty_like(x)
    _native.unary(name, out, x)
    return out


@pytest.mark.parametrize("name", FUNCTIONS)
def test_num_7__results_are_the_nearest_numbers(name: str) -> None:
    rng = np.random.default_rng(7)
    anything = rng.integers(0, 2**32, 1500, dtype="<u4")
    usual = rng.standard_normal(1500, dtype=np.float32) * 6
    hard = np.array(HARD.get(name, []), "<u4")
    x = np.concatenate([anything.view("<f4"), usual, hard.view("<f4"), SPECIAL])
    got = everywhere(lambda: apply(name, x)).view("<u4")
    assert got.tolist() == [FUNCTIONS[name](int(w)) for w in x.view("<u4")]


def test_num_8__special_values() -> None:
    x = np.array([-np.inf, -0.0, 0.0, np.inf, np.nan], np.float32)
    want = {
        "exp": [0x00000000, 0x3F800000, 0x3F800000, 0x7F800000],
        "log": [0x7FC00000, 0xFF800000, 0xFF800000, 0x7F800000],
        "tanh": [0xBF800000, 0x80000000, 0x00000000, 0x3F800000],
        "erf": [0xBF800000, 0x80000000, 0x00000000, 0x3F800000],
        "sigmoid": [0x00000000, 0x3F000000, 0x3F000000, 0x3F800000],
        "sin": [0x7FC00000, 0x80000000, 0x00000000, 0x7FC00000],
        "cos": [0x7FC00000, 0x3F800000, 0x3F800000, 0x7FC00000],
    }
    for name, words in want.items():
        got = everywhere(lambda op=name: apply(op, x))  # type: ignore[misc]
        assert got.view("<u4").tolist() == [*words, 0x7FC00000], name
