"""Running sums, sorted positions and writes at indexed places: orders, ties and refusals."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels.reference_backend import REFERENCE
from identic.protocol.arithmetic import f32
from identic.protocol.dtypes import DType
from identic.protocol.errors import ProtocolError
from identic.protocol.ops.evaluate import element
from identic.protocol.ops.folds import MAX_ENTRIES, Fold, Nested
from identic.protocol.ops.primitives import order_key
from identic.protocol.tensors import MAX_BYTES, TensorType
from tests.helpers.calls import SPECIAL, Maker, case
from tests.helpers.effort import examples

F, I64, I32, B, U8 = DType.FLOAT32, DType.INT64, DType.INT32, DType.BOOL, DType.UINT8
Kind = tuple[DType, tuple[int, ...]]

NUMBERS = st.sampled_from([F, I64, I32])
LONG = 3000
"""More elements than one level of a fold takes."""


@pytest.mark.parametrize(
    ("rule", "name", "kinds", "attributes"),
    [
        ("OP-1", "cumsum", [(U8, (2,))], {}),
        ("OP-1", "argsort", [(B, (2,))], {"descending": 0}),
        ("OP-1", "argtopk", [(U8, (2,))], {"k": 1, "largest": 1}),
        ("OP-1", "set_rows", [(F, (2,)), (I64, (2,)), (I64, (2,))], {}),
        ("OP-1", "set_rows", [(F, (2,)), (U8, (2,)), (F, (2,))], {}),
        ("OP-1", "scatter", [(F, (2,)), (I64, (2,)), (I32, (2,))], {"axis": 0}),
        ("OP-1", "scatter", [(F, (2,)), (F, (2,)), (F, (2,))], {"axis": 0}),
        ("OP-1", "scatter_add", [(I64, (2,)), (I64, (2,)), (I64, (2,))], {"axis": 0}),
        ("OP-3", "cumsum", [(F, ())], {}),
        ("OP-3", "argsort", [(F, ())], {"descending": 0}),
        ("OP-3", "argtopk", [(F, ())], {"k": 0, "largest": 0}),
        ("OP-3", "set_rows", [(F, ()), (I64, (2,)), (F, (2,))], {}),
        ("OP-3", "set_rows", [(F, (2,)), (I64, (2, 1)), (F, (2, 1))], {}),
        ("OP-3", "set_rows", [(F, (2, 3)), (I64, (4,)), (F, (4, 2))], {}),
        ("OP-3", "scatter", [(F, ()), (I64, (1,)), (F, (1,))], {"axis": 0}),
        ("OP-3", "scatter", [(F, (2, 2)), (I64, (2, 2)), (F, (2, 1))], {"axis": 0}),
        ("OP-3", "scatter_add", [(F, (2, 2)), (I64, (2, 3)), (F, (2, 3))], {"axis": 0}),
        ("OP-5", "argsort", [(F, (2,))], {"descending": 2}),
        ("OP-5", "argsort", [(F, (2,))], {"descending": -1}),
        ("OP-5", "argtopk", [(F, (2,))], {"k": 3, "largest": 1}),
        ("OP-5", "argtopk", [(F, (2,))], {"k": -1, "largest": 1}),
        ("OP-5", "argtopk", [(F, (2,))], {"k": 1, "largest": 2}),
        ("OP-5", "scatter", [(F, ()), (I64, ()), (F, ())], {"axis": 0}),
        ("OP-5", "scatter", [(F, (2,)), (I64, (2,)), (F, (2,))], {"axis": 1}),
        ("OP-5", "scatter_add", [(F, (2,)), (I64, (2,)), (F, (2,))], {"axis": -1}),
    ],
)
def test_op_1__op_3__op_5__other_operands_are_refused(
    rule: str, name: str, kinds: list[Kind], attributes: dict[str, object]
) -> None:
    with pytest.raises(ProtocolError) as caught:
        case(name, [TensorType.of(*k) for k in kinds], [], **attributes)
    assert caught.value.rule == rule


@pytest.mark.parametrize("length", [1, 255, 256, 257, 700])
def test_op_30__a_running_sum_adds_the_blocks_before_it(length: int) -> None:
    make = Maker(length, finite=True)
    kind = TensorType.of(F, (length,))
    made = case("cumsum", [kind], [make.words(kind)])
    for i in {0, length // 2, length - 1}:
        totals = []
        for first in range(0, i + 1, 256):
            total = 0
            for x in made.inputs[0][first : min(first + 256, i + 1)]:
                total = f32.add(total, x)
            totals.append(total)
        want = totals[0]
        for total in totals[1:]:
            want = f32.add(want, total)
        assert element(made.call, i, made.read) == want


def _value(dtype: DType, word: int) -> tuple[int, int]:
    """What a word counts for in sorting: a pair that Python compares."""
    if dtype is not F:
        return 0, dtype.signed(word)
    if f32.is_nan(word):
        return 1, 0
    significand, exponent = f32.unpack(word) if f32.is_finite(word) else (1, 200)
    sign = -1 if word >> 31 and significand > 0 else 1
    return 0, sign * significand << exponent + 149


@pytest.mark.parametrize("dtype", [F, I64, I32])
def test_op_31__keys_grow_with_the_value(dtype: DType) -> None:
    words = [*SPECIAL[dtype], *(Maker(1).word(dtype) for _ in range(40))]
    for a, b in itertools.product(words, words):
        x, y = _value(dtype, a), _value(dtype, b)
        up, down = ([order_key(dtype, w, descending=way) for w in (a, b)] for way in (False, True))
        assert all(0 <= key < 1 << 8 * dtype.size for key in (*up, *down))
        assert (up[0] < up[1], up[0] == up[1]) == (x < y, x == y)
        assert (down[0] > down[1], down[0] == down[1]) == (x < y, x == y)


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data(), dtype=NUMBERS, descending=st.booleans())
def test_op_31__equal_elements_keep_their_order(
    data: st.DataObject, dtype: DType, descending: bool
) -> None:
    few = st.sampled_from(SPECIAL[dtype])
    words = data.draw(st.lists(few, min_size=1, max_size=12))
    kind = TensorType.of(dtype, (len(words),))
    made = case("argsort", [kind], [words], descending=int(descending))
    order = [element(made.call, i, made.read) for i in range(len(words))]
    assert sorted(order) == list(range(len(words)))
    for before, after in itertools.pairwise(order):
        a, b = _value(dtype, words[before]), _value(dtype, words[after])
        assert (a > b if descending else a < b) or (a == b and before < after)
    k = data.draw(st.integers(0, len(words)))
    top = case("argtopk", [kind], [words], k=k, largest=int(descending))
    assert [element(top.call, i, top.read) for i in range(k)] == order[:k]


def depths(fold: Fold) -> tuple[int, int]:
    """Most entries of a level along the last and the first entries, and the number of levels."""
    entries = [fold.entry(0), fold.entry(max(0, fold.length - 2))]
    inner = [depths(e.fold) for e in entries if isinstance(e, Nested)]
    return (
        max([fold.length, *(n for n, _ in inner)]),
        1 + max((level for _, level in inner), default=0),
    )


@pytest.mark.parametrize("dtype", [F, I64])
def test_op_7__folds_of_the_longest_rows_are_short(dtype: DType) -> None:
    length = MAX_BYTES // dtype.size // 2
    for name, attributes in (("argsort", {"descending": 1}), ("cumsum", {})):
        call = case(name, [TensorType.of(dtype, (length,))], [], **attributes).call
        entries, levels = depths(call.op.fold(call, length - 1))
        assert entries <= MAX_ENTRIES
        assert levels <= 6
    index = TensorType.of(I32, (length // 4,))
    kinds = [TensorType.of(dtype, (5,)), index, TensorType.of(dtype, index.shape)]
    for name, given_ in (("set_rows", {}), ("scatter", {"axis": 0})):
        call = case(name, kinds, [], **given_).call
        assert depths(call.op.fold(call, 4))[0] <= MAX_ENTRIES


@pytest.mark.parametrize("rank", [0, 1, LONG // 2, LONG - 1])
def test_op_31__an_element_of_a_long_row_is_found(rank: int) -> None:
    make = Maker(7)
    kind = TensorType.of(F, (LONG,))
    words = [make.random.choice(SPECIAL[F]) if i % 3 else make.word(F) for i in range(LONG)]
    made = case("argsort", [kind], [words], descending=0)
    want = REFERENCE["argsort"](made.call, made.inputs)
    assert element(made.call, rank, made.read) == want[rank]


@pytest.mark.parametrize("name", ["set_rows", "scatter"])
@pytest.mark.parametrize("dtype", [F, U8, I64])
def test_op_32__the_last_write_stays(name: str, dtype: DType) -> None:
    index = [2, 0, 2, 5, I64.pattern(-1), 0]
    kinds = [TensorType.of(dtype, (4,)), TensorType.of(I64, (6,)), TensorType.of(dtype, (6,))]
    attributes = {"axis": 0} if name == "scatter" else {}
    made = case(name, kinds, [[10, 11, 12, 13], index, [1, 2, 3, 4, 5, 6]], **attributes)
    assert [element(made.call, i, made.read) for i in range(4)] == [6, 11, 3, 13]


def test_op_4__scatter_writes_nothing_outside_and_beside_its_index() -> None:
    kinds = [TensorType.of(F, (2, 3)), TensorType.of(I32, (1, 2)), TensorType.of(F, (1, 2))]
    inputs = [[1, 2, 3, 4, 5, 6], [3, 1], [7, 8]]
    made = case("scatter", kinds, inputs, axis=1)
    assert [element(made.call, i, made.read) for i in range(6)] == [1, 8, 3, 4, 5, 6]


def test_num_14__scatter_add_keeps_what_no_index_is_in_line_with() -> None:
    nan, minus_zero, one = 0xFFC12345, 0x80000000, 0x3F800000
    kinds = [TensorType.of(F, (2, 2)), TensorType.of(I64, (2, 1)), TensorType.of(F, (2, 1))]
    inputs = [[minus_zero, nan, minus_zero, nan], [0, 7], [one, one]]
    made = case("scatter_add", kinds, inputs, axis=0)
    # Column 0 has indices in line with it, so each of its elements is added to; column 1 none.
    assert [element(made.call, i, made.read) for i in range(4)] == [one, nan, 0, nan]
