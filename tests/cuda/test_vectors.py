"""The operators of the CUDA backend give the golden vectors, whatever the order of threads."""

from __future__ import annotations

import json

import pytest

from identic.kernels.arrays import from_words, words
from identic.kernels.cuda.engine import LAUNCHERS
from identic.kernels.cuda_backend import CudaBackend
from identic.kernels.engine import Calls
from identic.protocol.ops import TABLE
from tests.cuda.shim.device import ORDERS, ShimDevice
from tests.vectors import generate


@pytest.mark.parametrize("name", sorted(TABLE))
@pytest.mark.parametrize("order", ORDERS)
def test_op_8__a_device_gives_the_vectors(order: int, name: str) -> None:
    backend = CudaBackend(ShimDevice(order))
    stored = json.loads(generate.path(name).read_text(encoding="utf-8"))
    for row in stored["cases"]:
        call, inputs, want = generate.parse(row, name)
        arrays = [from_words(k, w) for k, w in zip(call.inputs, inputs, strict=True)]
        got = backend.run(call, arrays)
        assert got.shape == tuple(call.output.shape)
        assert words(got) == want
        assert [words(a) for a in arrays] == inputs


def test_every_function_of_an_engine_has_a_launcher() -> None:
    functions = {name for name in vars(Calls) if not name.startswith("_")}
    assert functions - {"Chain"} == set(LAUNCHERS)
