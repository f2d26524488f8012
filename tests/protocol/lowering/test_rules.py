"""Rules of lowering on hand-made graphs: what is refused, and how."""

from __future__ import annotations

import pytest

from identic.protocol.dtypes import DType
from identic.protocol.graph import Argument, Graph, Node, Place, Ref
from identic.protocol.ids import Count
from identic.protocol.lowering import RULES, Builder, CaptureError, lower
from identic.protocol.tensors import TensorType

F32 = TensorType.of(DType.FLOAT32, (4, 6))
PLACE = Place("train.py", Count(31), "y = f(x)", "blocks.2")


def lowered(
    target: str,
    arguments: tuple[Argument, ...],
    result: TensorType = F32,
    inputs: tuple[TensorType, ...] = (F32,),
    keywords: tuple[tuple[str, Argument], ...] = (),
) -> list[str]:
    """Operators that one node becomes."""
    graph = Graph(inputs, (Node(target, arguments, keywords, result, PLACE),), (len(inputs),))
    builder = Builder(inputs)
    section, places = builder.finish(lower(graph, builder, range(len(inputs))))
    assert set(places) <= {PLACE}
    return [i.op for i in section.instructions]


def refused(*given: object, **more: object) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        lowered(*given, **more)  # type: ignore[arg-type]
    assert (caught.value.file, caught.value.line, caught.value.module) == (
        "train.py",
        31,
        "blocks.2",
    )
    return caught.value


def test_cap_4__an_unknown_operator_is_refused_by_name_and_place() -> None:
    error = refused("aten.sort.default", (Ref(0),))
    assert (error.rule, error.operator, error.text) == ("CAP-4", "aten.sort.default", "y = f(x)")


INT = TensorType.of(DType.INT64, (4, 6))
BYTES = TensorType.of(DType.UINT8, (4, 6))


@pytest.mark.parametrize(
    ("target", "arguments", "keywords", "kind"),
    [
        ("aten.div.Tensor_mode", (Ref(0), Ref(0)), (("rounding_mode", "floor"),), F32),
        ("aten.add.Tensor", (Ref(0), Ref(0)), (), BYTES),
        ("aten.exp.default", (Ref(0),), (), INT),
        ("aten.bitwise_and.Tensor", (Ref(0), Ref(0)), (), INT),
        ("aten.index.Tensor", (Ref(0), (Ref(0),)), (), BYTES),
        ("aten.index.Tensor", (Ref(0), (None,)), (), F32),
        ("aten.scatter.reduce", (Ref(0), 0, Ref(0), Ref(0)), (("reduce", "add"),), INT),
        ("aten.scatter_reduce.two", (Ref(0), 0, Ref(0), Ref(0), "amax"), (), INT),
        ("aten.scatter_add.default", (Ref(0), 0, Ref(0), Ref(0)), (), INT),
        ("aten.index_put.default", (Ref(0), (Ref(0),), Ref(0), True), (), INT),
        ("aten.put.default", (Ref(0), Ref(0), Ref(0), True), (), INT),
        ("aten.add.Tensor", (Ref(0), "x"), (), F32),
        ("aten.cat.default", (Ref(0), 0), (), F32),
        ("aten.permute.default", (Ref(0), ("x",)), (), F32),
    ],
)
def test_cap_4__an_operator_is_refused_outside_its_rule(
    target: str,
    arguments: tuple[Argument, ...],
    keywords: tuple[tuple[str, Argument], ...],
    kind: TensorType,
) -> None:
    assert refused(target, arguments, kind, (kind,), keywords).rule == "CAP-4"


def test_cap_5__a_lowered_value_has_the_type_of_the_graph() -> None:
    error = refused("aten.exp.default", (Ref(0),), TensorType.of(DType.FLOAT32, (4, 7)))
    assert error.operator == "aten.exp.default"


def test_scalars_take_the_type_of_the_result() -> None:
    assert lowered("aten.add.Tensor", (Ref(0), 2, 3)) == ["full", "add"]
    assert lowered("aten.add.Tensor", (Ref(0), 2)) == ["full", "add"]
    bools = TensorType.of(DType.BOOL, (4, 6))
    assert lowered("aten.gt.Scalar", (Ref(0), 0), bools) == ["full", "gt"]
    assert lowered("aten.gt.Scalar", (Ref(0), 0.5), bools, (INT,)) == ["cast", "full", "gt"]
    assert lowered("aten.mul.Tensor", (Ref(0), Ref(1)), F32, (F32, bools)) == ["cast", "mul"]
    assert lowered("aten.mul.Tensor", (Ref(0), Ref(0)), bools, (bools,)) == ["and"]


def test_cap_7__the_smallest_is_the_largest_in_the_reversed_order() -> None:
    row, ints = TensorType.of(DType.FLOAT32, (4,)), TensorType.of(DType.INT64, (4,))
    assert lowered("aten.amin.default", (Ref(0), (1,)), row) == ["neg", "amax", "neg"]
    reverse = ["full", "sub", "amax", "sub"]
    assert lowered("aten.amin.default", (Ref(0), (1,)), ints, (INT,)) == reverse
    small = TensorType.of(DType.UINT8, (4,))
    widened = ["cast", *reverse, "cast"]
    assert lowered("aten.amin.default", (Ref(0), (1,)), small, (BYTES,)) == widened
    assert lowered("aten.argmin.default", (Ref(0), 1), ints, (INT,)) == [*reverse[:2], "argmax"]


def test_writes_keep_the_last_and_single_ones_are_compared() -> None:
    one = TensorType.of(DType.INT64, (4, 1))
    source = TensorType.of(DType.FLOAT32, (4, 1))
    kinds = (F32, one, source)
    compared = ["iota", "reshape", "eq", "where"]
    assert lowered("aten.scatter.src", (Ref(0), 1, Ref(1), Ref(2)), F32, kinds) == compared
    assert lowered("aten.scatter.src", (Ref(0), 0, Ref(1), Ref(2)), F32, kinds) == ["scatter"]
    added = lowered("aten.scatter_add.default", (Ref(0), 0, Ref(1), Ref(2)), F32, kinds)
    assert added == ["scatter_add"]
    steps = (Ref(0), Ref(1), 1, 0, 6, 2)
    half = TensorType.of(DType.FLOAT32, (4, 3))
    strided = lowered("aten.slice_scatter.default", steps, F32, (F32, half))
    assert strided == ["iota", "permute", "permute", "set_rows", "permute"]


def test_every_rule_says_what_it_does() -> None:
    assert all(rule.__doc__ for rule in RULES.values())
