"""The rounded functions on a device give the nearest number, as on the CPU. Rules: NUM-7, NUM-8."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest

from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cuda import source
from identic.kernels.cuda.device import Kernel
from identic.kernels.elementwise import cuda
from tests.cuda import nvrtc
from tests.cuda.shim.device import ShimDevice
from tests.kernels.test_vectors import PIECES
from tests.vectors import functions

HARD = {
    "exp": [0x42AE0000, 0xC2AE0000, 0xC2D00000],
    "log": [
        *(0x3C413D3A, 0x41178FEB, 0x4C5D65A5, 0x65D890D3, 0x6F31A8EC),
        *(word << 16 for word in range(0x3F35, 0x3FB6)),
    ],
    "tanh": [0x3E000000, 0xBE000000, 0x41200000],
    "sigmoid": [0xBA928601, 0x39000000, 0xB9000000, 0x42700000, 0xC2700000, 0xC2D00000],
    "sin": [0x6F79BE45, 0x48000000, 0x3F490FDB, 0x40490FDB, 0x47C90FDB],
    "cos": [0x6F79BE45, 0x48000000, 0x3FC90FDB, 0x4096CBE4, 0x47C90FDB],
}
"""Where the text takes another way: exceptions, borders, and angles all but a quadrant's end."""


def on_device(name: str, x: Array) -> Array:
    device = ShimDevice()
    out = device.empty(x.shape, x.dtype)
    cuda.unary(device, name, out, device.upload(x))
    return device.download(out)


def stored(name: str) -> list[bytes]:
    table = json.loads(functions.PATH.read_text(encoding="utf-8"))["digests"]
    return [b"", *(bytes.fromhex(d) for d in table[name])]


def check_piece(name: str, piece: int) -> None:
    got = on_device(name, functions.operands(piece)).tobytes()
    before, want = stored(name)[piece : piece + 2]
    assert hashlib.sha256(before + got).digest() == want


@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_num_7__a_piece_of_the_sample_on_a_device(name: str) -> None:
    check_piece(name, PIECES[name])


@pytest.mark.long
@pytest.mark.parametrize("piece", range(functions.PIECES))
@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_num_7__the_whole_sample_on_a_device(name: str, piece: int) -> None:
    check_piece(name, piece)


@pytest.mark.parametrize("name", functions.FUNCTIONS)
def test_num_8__special_operands_and_any_bits(name: str) -> None:
    exponents = np.arange(512, dtype=np.uint32) << 23
    edges = np.concatenate([exponents + d for d in (0, 1, 0x400000, 0x7FFFFF)])
    any_bits = np.random.default_rng(7).integers(0, 1 << 32, 1 << 15, np.uint32)
    hard = np.array(HARD.get(name, []), np.uint32)
    near = np.concatenate([hard - 1, hard, hard + 1])
    x = np.concatenate([edges, any_bits, near]).astype("<u4").view("<f4")
    want = np.empty_like(x)
    _native.unary(name, want, x)
    assert on_device(name, x).tobytes() == want.tobytes()


def test_num_7__kernels_leave_binary64_to_what_is_called_where_pairs_are_not_sure() -> None:
    text = source.text(Kernel("elementwise/cuda.cu", "unary_exp"))
    made = nvrtc.to_ptx(text, 80, source.OPTIONS)
    bodies = dict(re.findall(r"\.entry (\w+)\(.*?\n\{(.*?)\n\}", made, re.DOTALL))
    for name in functions.FUNCTIONS:
        body = bodies[f"unary_{name}"]
        assert ".f64" not in body
        assert re.search(r"\w+_with_care\w*", body)
    assert ".f64" in made
