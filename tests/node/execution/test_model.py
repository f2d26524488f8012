"""The model file: whatever a program may keep in its state, one form, readable by others."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import deserialize
from safetensors.numpy import load

from identic.kernels.arrays import from_bytes
from identic.node.execution.model import DTYPE_NAMES, model_file
from identic.protocol.dtypes import DType
from identic.protocol.program.types import Variable
from identic.protocol.tensors import TensorType

SHAPES = ((), (3,), (2, 0, 5), (0,), (1, 2, 3))


def variables(kinds: list[tuple[DType, tuple[int, ...]]]) -> list[Variable]:
    return [Variable(f'v"{i}\\', TensorType.of(*kind)) for i, kind in enumerate(kinds)]


def content(variable: Variable) -> bytes:
    """Some bytes of a tensor; truth values are 0 and 1."""
    return bytes(i % 2 for i in range(variable.type.nbytes))


@given(st.lists(st.tuples(st.sampled_from(DType), st.sampled_from(SHAPES)), max_size=6))
def test_job_12__every_type_and_shape_is_kept(kinds: list[tuple[DType, tuple[int, ...]]]) -> None:
    made = variables(kinds)
    data = model_file(made, [from_bytes(v.type, content(v)) for v in made])
    found = dict(deserialize(data))  # type: ignore[no-untyped-call]
    assert found.keys() == {v.name for v in made}
    for v in made:
        entry = found[v.name]
        assert (entry["dtype"], bytes(entry["data"])) == (DTYPE_NAMES[v.type.dtype], content(v))
        assert tuple(entry["shape"]) == v.type.shape


def test_job_12__the_form_does_not_depend_on_the_order_of_the_tensors() -> None:
    kinds = [(DType.BOOL, (3,)), (DType.INT64, ()), (DType.FLOAT32, (5,)), (DType.BFLOAT16, (1,))]
    made = variables(kinds)
    arrays = [from_bytes(v.type, content(v)) for v in made]
    data = model_file(made, arrays)
    assert model_file(made[::-1], arrays[::-1]) == data
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    for v in made:
        assert header[v.name]["data_offsets"][0] % v.type.dtype.size == 0


@pytest.mark.parametrize("count", [0, 5_000])
def test_job_12__other_libraries_read_it(count: int) -> None:
    made = [Variable(f"{i:0200}", TensorType.of(DType.FLOAT32, ())) for i in range(count)]
    found = load(model_file(made, [np.array(i, np.float32) for i in range(count)]))
    assert {int(name): float(value) for name, value in found.items()} == {
        i: float(i) for i in range(count)
    }
