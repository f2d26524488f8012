"""Convolutions and pools: what they accept, what they count, and the order of their folds."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.node.debug.windows import windows
from identic.protocol.arithmetic import f32
from identic.protocol.dtypes import DType
from identic.protocol.errors import ProtocolError
from identic.protocol.ops.evaluate import element
from identic.protocol.ops.folds import MAX_ENTRIES, Constant, Element, Fold, Nested, Step
from identic.protocol.ops.windows import Axis, axes
from identic.protocol.tensors import TensorType
from tests.helpers.calls import Case, case
from tests.helpers.effort import examples

F, I64, I32 = DType.FLOAT32, DType.INT64, DType.INT32
Kind = tuple[DType, tuple[int, ...]]

ONE, TWO, INFINITY, NAN, MINUS_ZERO = 0x3F800000, 0x40000000, 0x7F800000, 0x7FC00000, 0x80000000
LOWEST = 0xFF800000

X, W, Y = (F, (2, 4, 5, 6)), (F, (6, 2, 3, 3)), (F, (2, 6, 5, 6))
CONV: dict[str, Any] = {
    "after": (1, 1),
    "before": (1, 1),
    "dilation": (1, 1),
    "groups": 2,
    "stride": (1, 1),
}
POOL: dict[str, Any] = {
    "after": (0,),
    "before": (0,),
    "dilation": (1,),
    "stride": (1,),
    "window": (2,),
}
SUM = {k: v for k, v in POOL.items() if k != "dilation"}


def made(name: str, *kinds: Kind, **attributes: object) -> Case:
    return case(name, [TensorType.of(*k) for k in kinds], [], **attributes)


def refused(rule: str, name: str, *kinds: Kind, **attributes: object) -> None:
    with pytest.raises(ProtocolError) as caught:
        made(name, *kinds, **attributes)
    assert caught.value.rule == rule


def test_shapes_of_convolutions() -> None:
    assert made("conv", X, W, **CONV).call.output.shape == (2, 6, 5, 6)
    assert made("conv_dx", Y, W, **CONV, size=(5, 6)).call.output.shape == X[1]
    assert made("conv_dw", Y, X, **CONV, window=(3, 3)).call.output.shape == W[1]
    flat = {"after": (0,), "before": (0,), "dilation": (2,), "groups": 1, "stride": (3,)}
    assert made("conv", (F, (1, 2, 9)), (F, (4, 2, 3)), **flat).call.output.shape == (1, 4, 2)


@pytest.mark.parametrize(
    ("name", "kinds", "attributes"),
    [
        ("conv", [(I64, X[1]), W], CONV),
        ("conv_dx", [Y, (I32, W[1])], {**CONV, "size": (5, 6)}),
        ("max_pool", [(I64, (3,))], POOL),
        ("max_pool_dx", [(F, (2,)), (I32, (2,))], {**POOL, "size": (3,)}),
        ("max_pool_dx", [(I64, (2,)), (I64, (2,))], {**POOL, "size": (3,)}),
        ("sum_pool_dx", [(I64, (2,))], {**SUM, "size": (3,)}),
    ],
)
def test_op_1__other_element_types_are_refused(
    name: str, kinds: list[Kind], attributes: dict[str, Any]
) -> None:
    refused("OP-1", name, *kinds, **attributes)


@pytest.mark.parametrize(
    ("name", "kinds", "attributes"),
    [
        ("conv", [(F, (2, 4)), (F, (6, 2))], CONV),
        ("conv", [(F, (2, 4, 5, 6, 7)), (F, (6, 2, 3, 3, 3))], CONV),
        ("conv", [X, (F, (6, 2, 3))], CONV),
        ("conv", [X, (F, (6, 3, 3, 3))], CONV),
        ("conv", [X, (F, (6, 2, 9, 3))], CONV),
        ("conv", [(F, (2, 4, 0, 6)), W], CONV),
        ("conv_dx", [(F, (2, 4, 5, 6)), W], {**CONV, "size": (5, 6)}),
        ("conv_dx", [Y, W], {**CONV, "size": (6, 6)}),
        ("conv_dw", [Y, (F, (3, 4, 5, 6))], {**CONV, "window": (3, 3)}),
        ("conv_dw", [Y, X], {**CONV, "window": (2, 3)}),
        ("max_pool", [(F, ())], POOL),
        ("max_pool", [(F, (3, 1))], POOL),
        ("max_pool_dx", [(F, (2,)), (I64, (3,))], {**POOL, "size": (3,)}),
        ("max_pool_dx", [(F, (2,)), (I64, (2,))], {**POOL, "size": (4,)}),
        ("sum_pool_dx", [(F, (2, 2))], {**SUM, "size": (2,)}),
    ],
)
def test_op_3__op_40__other_shapes_are_refused(
    name: str, kinds: list[Kind], attributes: dict[str, Any]
) -> None:
    refused("OP-3", name, *kinds, **attributes)


LARGE = 1 << 46


@pytest.mark.parametrize(
    "changed",
    [
        *({name: (0, 1)} for name in ("dilation", "stride")),
        *({name: (1, -1)} for name in ("after", "before", "dilation", "stride")),
        *({name: (1,)} for name in ("after", "before", "dilation", "stride")),
        *({name: (1, 1, 1)} for name in ("after", "before", "dilation", "stride")),
        *({name: (LARGE, 1)} for name in ("after", "before", "dilation", "stride")),
        *({"groups": n} for n in (0, -1, 4, 5, 1 << 62)),
    ],
)
def test_op_5__op_40__attributes_of_convolutions_outside_their_range_are_refused(
    changed: dict[str, Any],
) -> None:
    refused("OP-5", "conv", X, W, **{**CONV, **changed})
    refused("OP-5", "conv_dx", Y, W, **{**CONV, "size": (5, 6), **changed})
    refused("OP-5", "conv_dw", Y, X, **{**CONV, "window": (3, 3), **changed})


def test_op_5__groups_of_no_channels_are_refused_too_where_they_are_too_many() -> None:
    none = {**CONV, "groups": 1 << 62, "size": (5, 6)}
    refused("OP-5", "conv_dx", (F, (2, 0, 5, 6)), (F, (0, 0, 3, 3)), **none)


@pytest.mark.parametrize(
    ("name", "kinds", "attributes"),
    [
        ("conv_dx", [Y, W], {**CONV, "size": (5,)}),
        ("conv_dx", [Y, W], {**CONV, "size": (-1, 6)}),
        ("conv_dx", [Y, W], {**CONV, "size": (LARGE, 6)}),
        ("conv_dw", [Y, X], {**CONV, "window": (0, 3)}),
        ("conv_dw", [Y, X], {**CONV, "window": (3,)}),
        ("max_pool", [(F, (3,))], {**POOL, "window": (0,)}),
        ("max_pool", [(F, (3,))], {**POOL, "window": ()}),
        ("max_pool", [(F, (3, 3, 3))], {**POOL, "window": (1, 1, 1)}),
        ("max_pool", [(F, (3,))], {**POOL, "window": (LARGE,), "after": (LARGE - 1,)}),
        ("sum_pool_dx", [(F, (2,))], {**SUM, "size": (-3,)}),
    ],
)
def test_op_5__op_40__other_attributes_outside_their_range_are_refused(
    name: str, kinds: list[Kind], attributes: dict[str, Any]
) -> None:
    refused("OP-5", name, *kinds, **attributes)


def test_prg_3__a_result_that_padding_makes_too_large_is_refused() -> None:
    far = {**POOL, "after": (LARGE - 1,), "before": (LARGE - 1,)}
    refused("PRG-3", "max_pool", (F, (3,)), **far)
    near = {**CONV, "after": (1 << 23, 1 << 23)}
    refused("PRG-3", "conv", X, W, **near)


@settings(max_examples=examples(200), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_op_40__windows_are_those_that_begin_in_steps_and_end_inside(seed: int) -> None:
    w = windows(random.Random(seed))
    attributes = {n: getattr(w, n) for n in ("after", "before", "dilation", "stride")}
    for axis, after in zip(axes("conv", w.size, w.window, attributes), w.after, strict=True):
        starts = range(0, axis.before + axis.size + after - axis.span + 1, axis.stride)
        assert axis.count == len(starts)
        inside: dict[int, list[int]] = {}
        for number in range(axis.count):
            places = [
                number * axis.stride - axis.before + i * axis.dilation for i in range(axis.window)
            ]
            kept = [p for p in places if 0 <= p < axis.size]
            assert list(axis.places(number)) == kept
            found = [axis.place(number, i) for i in range(axis.window)]
            assert [p for p in found if p is not None] == kept
            for tap, place in enumerate(places):
                if place in kept:
                    assert axis.meeting(place, tap) == number
            inside[number] = list(range(places[0], places[-1] + 1))
        for place in range(axis.size):
            covering = [n for n, span in inside.items() if place in span]
            assert list(axis.covering(place)) == covering
            assert len(covering) <= axis.most_covering


def test_op_40__numbers_of_any_size_make_short_work() -> None:
    far = Axis(3, 1 << 40, 1 << 30, 1, 1 << 45, 1 << 15)
    assert far.places(0) == range(0)
    assert len(far.places(1 << 15)) == 3
    assert len(far.covering(1)) <= far.most_covering <= 1 << 10


# ---- values -------------------------------------------------------------------------------------


def values(
    name: str, kinds: Sequence[Kind], inputs: list[list[int]], **attributes: Any
) -> list[int]:
    found = case(name, [TensorType.of(*k) for k in kinds], inputs, **attributes)
    return [element(found.call, i, found.read) for i in range(found.call.output.elements)]


FLAT: dict[str, Any] = {
    "after": (1,),
    "before": (1,),
    "dilation": (1,),
    "groups": 1,
    "stride": (1,),
}


def test_op_41__padding_is_a_product_with_plus_zero() -> None:
    kinds = [(F, (1, 1, 1)), (F, (1, 1, 3))]
    assert values("conv", kinds, [[TWO], [ONE, ONE, ONE]], **FLAT) == [TWO]
    assert values("conv", kinds, [[TWO], [INFINITY, ONE, ONE]], **FLAT) == [NAN]
    # The underflow is -0, and the product of the padding after it, -0 or +0, decides its sign.
    tiny, half = 0x80000001, 0x3F000000
    assert values("conv", kinds, [[tiny], [ONE, half, f32.neg(ONE)]], **FLAT) == [MINUS_ZERO]
    assert values("conv", kinds, [[tiny], [ONE, half, ONE]], **FLAT) == [0]


def test_op_41__what_falls_between_windows_is_a_product_with_plus_zero() -> None:
    kinds = [(F, (1, 1, 2)), (F, (1, 1, 2))]
    moved = {**FLAT, "after": (0,), "before": (0,), "stride": (3,), "size": (5,)}
    grad, kernel = [ONE, TWO], [TWO, ONE]
    assert values("conv_dx", kinds, [grad, kernel], **moved) == [
        TWO,
        ONE,
        0,
        f32.mul(TWO, TWO),
        TWO,
    ]
    infinite = values("conv_dx", kinds, [grad, [TWO, INFINITY]], **moved)
    assert infinite == [NAN, INFINITY, NAN, NAN, INFINITY]


def test_op_42__the_first_of_the_largest_is_found_and_padding_never() -> None:
    wide = {**POOL, "after": (2,), "before": (2,)}
    other = 0xFFC00001
    x = [ONE, ONE, MINUS_ZERO, 0, LOWEST, LOWEST, other, NAN]
    kinds = [(F, (8,))]
    assert values("max_pool", kinds, [x], **wide) == [
        *(LOWEST, ONE, ONE, ONE, 0, 0, LOWEST, NAN, NAN, NAN, LOWEST),
    ]
    minus_one = I64.pattern(-1)
    assert values("max_pool_indices", kinds, [x], **wide) == [
        *(minus_one, 0, 0, 1, 3, 3, 4, 6, 6, 7, minus_one),
    ]


def test_op_42__a_window_of_the_lowest_has_its_first_place() -> None:
    x = [LOWEST] * 6
    moved = {**POOL, "window": (3,), "stride": (3,)}
    assert values("max_pool_indices", [(F, (6,))], [x], **moved) == [0, 3]


def test_op_43__sums_begin_at_plus_zero_and_add_in_order() -> None:
    big, small = 0x4B800000, 0x3F800000  # 2^24 and 1
    moved = {**SUM, "window": (3,), "after": (1,)}
    x = [MINUS_ZERO, MINUS_ZERO, MINUS_ZERO, big, small, small]
    got = values("sum_pool", [(F, (6,))], [x], **moved)
    # Left to right 2^24 + 1 + 1 loses both ones; -0 alone gives +0.
    assert got == [0, big, big, big, TWO]


def test_op_43__a_gradient_goes_to_the_place_of_its_index_if_the_window_covers_it() -> None:
    kinds = [(F, (3,)), (I64, (3,))]
    moved = {**POOL, "stride": (2,), "window": (3,), "size": (7,)}
    grad = [ONE, TWO, ONE]
    indices = [2, 2, 0]
    assert values("max_pool_dx", kinds, [grad, indices], **moved) == [
        *(0, 0, f32.add(ONE, TWO), 0, 0, 0, 0),
    ]
    far = [I64.pattern(-1), 7, 1 << 62]
    assert values("max_pool_dx", kinds, [grad, far], **moved) == [0] * 7


# ---- sizes ---------------------------------------------------------------------------------------


def longest(fold: Fold, depth: int) -> int:
    """Longest fold among the first and last nested ones, going down."""
    found = fold.length
    for index in {0, 1, fold.length // 2, fold.length - 1} if depth else set():
        if index < fold.length:
            entry = fold.entry(index)
            if isinstance(entry, Nested):
                found = max(found, longest(entry.fold, depth - 1))
    return found


FAR, HALF = 1 << 43, 1 << 42


@pytest.mark.parametrize(
    ("name", "kinds", "attributes"),
    [
        ("conv", [(F, (1, FAR, 1)), (F, (1, FAR, 1))], {**FLAT, "after": (0,), "before": (0,)}),
        ("conv", [(F, (1, 1, FAR)), (F, (1, 1, FAR))], {**FLAT, "after": (0,), "before": (0,)}),
        (
            "conv_dx",
            [(F, (1, FAR, 1)), (F, (FAR, 1, 1))],
            {**FLAT, "after": (0,), "before": (0,), "size": (1,)},
        ),
        (
            "conv_dw",
            [(F, (1, 1, FAR)), (F, (1, 1, FAR))],
            {**FLAT, "after": (0,), "before": (0,), "window": (1,)},
        ),
        ("max_pool", [(F, (FAR,))], {**POOL, "window": (FAR,)}),
        ("max_pool_indices", [(F, (FAR,))], {**POOL, "window": (FAR,)}),
        ("sum_pool", [(F, (FAR,))], {**SUM, "window": (FAR,)}),
        (
            "max_pool_dx",
            [(F, (HALF,)), (I64, (HALF,))],
            {**POOL, "window": (HALF,), "size": (1,), "after": (HALF - 1,), "before": (HALF - 1,)},
        ),
        (
            "sum_pool_dx",
            [(F, (FAR,))],
            {**SUM, "window": (FAR,), "size": (1,), "after": (FAR - 1,), "before": (FAR - 1,)},
        ),
    ],
)
def test_op_7__no_fold_of_the_largest_tensors_is_long(
    name: str, kinds: list[Kind], attributes: dict[str, Any]
) -> None:
    call = made(name, *kinds, **attributes).call
    assert longest(call.op.fold(call, call.output.elements - 1), 6) <= MAX_ENTRIES


def steps(fold: Fold) -> list[Step]:
    """All primitive steps."""
    out = []
    for index in range(fold.length):
        entry = fold.entry(index)
        out += steps(entry.fold) if isinstance(entry, Nested) else [entry]
    return out


def test_op_41__a_convolution_costs_two_steps_a_product_padding_included() -> None:
    for name, kinds, extra in (
        ("conv", (X, W), {}),
        ("conv_dx", (Y, W), {"size": (5, 6)}),
        ("conv_dw", (Y, X), {"window": (3, 3)}),
    ):
        call = made(name, *kinds, **CONV, **extra).call
        every = [steps(call.op.fold(call, i)) for i in range(call.output.elements)]
        products = [s for each in every for s in each if s.primitive == "fma"]
        assert call.op.cost(call).flops == 2 * len(products)
        assert call.op.cost(call).bytes == 4 * (
            sum(math.prod(k[1]) for k in kinds) + call.output.elements
        )
        padding = [s for s in products if Constant(0) in s.operands[:2]]
        read = [s for s in products if all(isinstance(o, Element) for o in s.operands[:2])]
        assert padding
        assert len(read) + len(padding) == len(products)


def test_costs_of_pools_bound_the_steps_of_their_folds() -> None:
    cases = [
        made("max_pool", (F, (2, 7)), **{**POOL, "window": (3,), "before": (2,)}),
        made("max_pool_indices", (F, (2, 7)), **{**POOL, "window": (3,), "dilation": (2,)}),
        made("sum_pool", (F, (2, 7)), **{**SUM, "window": (4,), "stride": (2,)}),
        made("sum_pool_dx", (F, (2, 3)), **{**SUM, "window": (4,), "size": (6,)}),
        made("max_pool_dx", (F, (3,)), (I64, (3,)), **{**POOL, "window": (4,), "size": (6,)}),
    ]
    for found in cases:
        call = found.call
        count = sum(len(steps(call.op.fold(call, i))) for i in range(call.output.elements))
        assert count <= call.op.cost(call).flops <= 4 * count, call.op.name
