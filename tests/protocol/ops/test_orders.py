"""The orders of accumulation, each written down once more in the plainest way."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.arithmetic import f32
from identic.protocol.dtypes import DType
from identic.protocol.ops import KERNEL_SET
from identic.protocol.ops.accumulate import (
    RUN,
    column_sum,
    contraction,
    row_sum,
    running_sum,
    scatter_sum,
)
from identic.protocol.ops.evaluate import apply, element
from identic.protocol.ops.folds import (
    CHAIN_BLOCK,
    MAX_ENTRIES,
    Constant,
    Element,
    Fold,
    Nested,
    Operand,
    Step,
    chain,
    run,
    single,
)
from identic.protocol.tensors import TensorType
from tests.helpers.calls import case
from tests.helpers.effort import examples

NEAR = 0x33800000  # 2^-24: added to 1 it is a tie
ONE = 0x3F800000
NEGATIVE_ZERO = 0x80000000
INFINITY = 0x7F800000


def vector(count: int, seed: int) -> list[int]:
    """Numbers of very different sizes, so that every order of adding shows."""
    source = random.Random(seed)
    return [
        source.getrandbits(1) << 31 | source.randint(100, 150) << 23 | source.getrandbits(23)
        for _ in range(count)
    ]


def value(fold: Fold, *inputs: list[int]) -> int:
    """Value of a fold over input vectors."""

    def read(operand: Operand) -> int:
        if isinstance(operand, Constant):
            return operand.word
        assert isinstance(operand, Element)
        return inputs[operand.input][operand.index]

    return run(fold, read, apply)[-1]


def depth_first(fold: Fold, limit: int) -> int:
    """Longest fold among ``fold`` and the first and last nested ones, going down."""
    longest = fold.length
    if limit:
        for index in {0, 1, fold.length // 2, fold.length - 1}:
            if index < fold.length:
                entry = fold.entry(index)
                if isinstance(entry, Nested):
                    longest = max(longest, depth_first(entry.fold, limit - 1))
    return longest


def dot(a: list[int], b: list[int]) -> int:
    return value(contraction(len(a), lambda k: (Element(0, k), Element(1, k))), a, b)


def blocked_dot(a: list[int], b: list[int]) -> int:
    tiers: list[int] = []
    for first in range(0, len(a), 256):
        total = 0
        for x, y in zip(a[first : first + 256], b[first : first + 256], strict=True):
            total = f32.fma(x, y, total)
        tiers.append(total)
    sums = []
    for first in range(0, len(tiers), 16):
        total = tiers[first]
        for x in tiers[first + 1 : first + 16]:
            total = f32.add(total, x)
        sums.append(total)
    total = sums[0]
    for x in sums[1:]:
        total = f32.add(total, x)
    return total


@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 8700])
def test_num_10__contraction_in_three_tiers(length: int) -> None:
    a, b = vector(length, 1), vector(length, 2)
    assert dot(a, b) == blocked_dot(a, b)


def test_num_10__an_empty_contraction_is_plus_zero() -> None:
    assert dot([], []) == 0


def test_num_10__the_first_block_is_taken_as_it_is() -> None:
    # The product -2^-150 rounds to -0 in a chain's last step; +0 in front would make it +0.
    tiny, half = 0x80000001, 0x3F000000
    a, b = [0] * 255 + [tiny], [ONE] * 255 + [half]
    assert dot(a, b) == NEGATIVE_ZERO


def test_num_11__only_elements_enter_the_chain() -> None:
    # 0 * inf in a padded place would be NaN, and +0 in a padded place would make -0 into +0.
    assert dot([ONE], [INFINITY]) == INFINITY
    assert dot([0x80000001], [0x3F000000]) == NEGATIVE_ZERO


def lanes(row: list[int]) -> int:
    if len(row) > 4096:
        return lanes([lanes(row[i : i + 4096]) for i in range(0, len(row), 4096)])
    total = [0] * 64
    for i, x in enumerate(row):
        total[i % 64] = f32.add(total[i % 64], x)
    for width in (32, 16, 8, 4, 2, 1):
        total = [f32.add(total[i], total[i + width]) for i in range(width)]
    return total[0]


@pytest.mark.parametrize("length", [0, 1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 9000])
def test_num_12__row_sum_in_lanes(length: int) -> None:
    row = vector(length, length)
    fold = row_sum(length, lambda i: Element(0, i), "add.float32")
    assert value(fold, row) == lanes(row)


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 127, 130, 959, 960, 961, 1100])
def test_num_12__a_row_of_folds_is_summed_alike(length: int) -> None:
    row = vector(length, length)
    fold = row_sum(length, lambda i: single("copy", Element(0, i)), "add.float32")
    assert value(fold, row) == lanes(row)


def test_num_12__a_row_of_one_negative_zero_is_plus_zero() -> None:
    assert value(row_sum(1, lambda i: Element(0, i), "add.float32"), [NEGATIVE_ZERO]) == 0


def chunks(column: list[int], start: int | None) -> int:
    total = start
    for first in range(0, len(column), 256):
        chunk = 0
        for x in column[first : first + 256]:
            chunk = f32.add(chunk, x)
        total = chunk if total is None else f32.add(total, chunk)
    return 0 if total is None else total


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 512, 1000])
def test_num_13__column_sum_in_chunks(length: int) -> None:
    column = vector(length, length)
    fold = column_sum(length, lambda i: Element(0, i), "add.float32")
    assert value(fold, column) == chunks(column, None)


@pytest.mark.parametrize("length", [0, 1, 256, 257, 700])
def test_num_14__scatter_in_chunks_of_positions(length: int) -> None:
    source = vector(length, length)
    fold = scatter_sum(
        length, Element(1, 0), lambda t, total: Step("add.float32", (total, Element(0, t)))
    )
    assert value(fold, source, [ONE]) == chunks(source, ONE)


def test_num_14__an_initial_negative_zero_becomes_plus_zero_when_there_is_a_source() -> None:
    for count, want in ((0, NEGATIVE_ZERO), (1, 0)):
        kinds = [
            TensorType.of(DType.FLOAT32, (2,)),
            TensorType.of(DType.INT64, (count,)),
            TensorType.of(DType.FLOAT32, (count,)),
        ]
        # The only index hits row 1; row 0 gets a partial of +0.
        made = case("add_rows", kinds, [[NEGATIVE_ZERO] * 2, [1] * count, [ONE] * count])
        assert element(made.call, 0, made.read) == want


@settings(max_examples=examples(30), deadline=None)
@given(count=st.integers(1, 3 * RUN), started=st.booleans())
def test_op_7__long_running_sums_nest_and_keep_their_order(count: int, started: bool) -> None:
    items = vector(count, count)
    start = Constant(ONE) if started else None
    fold = running_sum(count, lambda i: single("copy", Element(0, i)), start)
    total = f32.add(ONE, items[0]) if started else items[0]
    for x in items[1:]:
        total = f32.add(total, x)
    assert value(fold, items) == total
    assert depth_first(fold, 3) <= MAX_ENTRIES


@pytest.mark.parametrize("count", [1, CHAIN_BLOCK, CHAIN_BLOCK + 1, 5 * CHAIN_BLOCK + 3])
def test_op_7__long_chains_nest_and_keep_their_order(count: int) -> None:
    items = vector(count, count)
    fold = chain(count, lambda i, t: Step("add.float32", (t, Element(0, i))), Constant(ONE))
    total = ONE
    for x in items:
        total = f32.add(total, x)
    assert value(fold, items) == total


@pytest.mark.parametrize(
    "made",
    [
        ("sum_last", [(DType.FLOAT32, (1, 1 << 43))]),
        ("sum_first", [(DType.FLOAT32, (1 << 43, 1))]),
        ("amax", [(DType.FLOAT32, (1 << 43,))]),
        ("argmax", [(DType.FLOAT32, (1 << 43,))]),
        ("matmul", [(DType.FLOAT32, (1, 1 << 43)), (DType.FLOAT32, (1 << 43, 1))]),
        (
            "add_rows",
            [
                (DType.FLOAT32, (1,)),
                (DType.INT64, (1 << 43,)),
                (DType.FLOAT32, (1 << 43,)),
            ],
        ),
    ],
)
def test_op_7__no_fold_of_the_largest_tensors_is_long(
    made: tuple[str, list[tuple[DType, tuple[int, ...]]]],
) -> None:
    name, kinds = made
    call = case(name, [TensorType.of(*k) for k in kinds], []).call
    assert depth_first(call.op.fold(call, 0), 6) <= MAX_ENTRIES


def test_num_20__the_kernel_set_is_number_1() -> None:
    assert KERNEL_SET == 1
