"""The primitive steps a referee can compute, by name.

A primitive maps the words of a bounded number of operands to one word. It is total: any
words of the right widths have a value, since the words may come from a hostile tensor.

* ``fma``, ``add.float32``, ``exp``-like functions, comparisons and casts are those of
  ``protocol/arithmetic``.
* ``copy`` and ``select`` move a word of any type unchanged.
* A truth value counts as true when its word is not 0; results are 0 or 1.

Spec: docs/spec/operators.md (OP-6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from identic.protocol.arithmetic import bounded, f32, functions, integers, permute, philox4x32
from identic.protocol.arithmetic import uniform24 as uniform
from identic.protocol.arithmetic.integers import Integer
from identic.protocol.dtypes import DType

Words = tuple[int, ...]

F32, I64, I32 = DType.FLOAT32, DType.INT64, DType.INT32
U8, BOOL, BF16 = DType.UINT8, DType.BOOL, DType.BFLOAT16

INTEGERS: dict[DType, Integer] = {
    I64: integers.INT64,
    I32: integers.INT32,
    U8: integers.UINT8,
}
"""Arithmetic of the integer element types."""

INDEX_DTYPES = (I64, I32)
"""Integer types that operators compute with and that index rows."""

LOWEST: dict[DType, int] = {F32: f32.NEGATIVE_INFINITY, I64: 1 << 63, I32: 1 << 31}
"""Word below or equal to every other one; the start of a running maximum."""

_WORD32 = 0xFFFFFFFF
_WORD64 = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True)
class Primitive:
    """One row of the table of primitive steps."""

    name: str
    operands: tuple[DType | None, ...]
    """Element type of each operand; ``None`` for any."""
    result: DType | None
    """Element type of the result; ``None`` for that of the operator's result."""
    apply: Callable[[Words], int]
    """Value of the step on operand words."""


PRIMITIVES: dict[str, Primitive] = {}
"""Every primitive step, by name."""


def _row(
    name: str,
    operands: tuple[DType | None, ...],
    result: DType | None,
    apply: Callable[[Words], int],
) -> None:
    PRIMITIVES[name] = Primitive(name, operands, result, apply)


def _unary(function: Callable[[int], int]) -> Callable[[Words], int]:
    return lambda w: function(w[0])


def _binary(function: Callable[[int, int], int]) -> Callable[[Words], int]:
    return lambda w: function(w[0], w[1])


def _wrapped(kind: Integer, function: Callable[[int, int], int]) -> Callable[[Words], int]:
    return lambda w: kind.word(function(kind.value(w[0]), kind.value(w[1])))


# ---- moving words ---------------------------------------------------------------------------

_row("copy", (None,), None, lambda w: w[0])
_row("select", (BOOL, None, None), None, lambda w: w[1] if w[0] else w[2])

# ---- float32 --------------------------------------------------------------------------------

FLOAT_UNARY: dict[str, Callable[[int], int]] = {
    "neg": f32.neg,
    "abs": f32.absolute,
    "exp": functions.exp,
    "log": functions.log,
    "tanh": functions.tanh,
    "erf": functions.erf,
    "sigmoid": functions.sigmoid,
    "sin": functions.sin,
    "cos": functions.cos,
    "sqrt": f32.sqrt,
    "rsqrt": f32.rsqrt,
}
FLOAT_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": f32.add,
    "sub": f32.sub,
    "mul": f32.mul,
    "div": f32.div,
    "maximum": f32.maximum,
    "minimum": f32.minimum,
}
FLOAT_COMPARE: dict[str, Callable[[int, int], int]] = {
    "eq": f32.eq,
    "ne": f32.ne,
    "lt": f32.lt,
    "le": f32.le,
    "gt": f32.gt,
    "ge": f32.ge,
}

_row("fma", (F32, F32, F32), F32, lambda w: f32.fma(w[0], w[1], w[2]))
for _name, _function in FLOAT_UNARY.items():
    _row(f"{_name}.float32", (F32,), F32, _unary(_function))
for _name, _operation in FLOAT_BINARY.items():
    _row(f"{_name}.float32", (F32, F32), F32, _binary(_operation))
for _name, _operation in FLOAT_COMPARE.items():
    _row(f"{_name}.float32", (F32, F32), BOOL, _binary(_operation))

# ---- integers and truth values --------------------------------------------------------------

INTEGER_COMPARE: dict[str, Callable[[int, int], int]] = {
    "eq": integers.eq,
    "ne": integers.ne,
    "lt": integers.lt,
    "le": integers.le,
    "gt": integers.gt,
    "ge": integers.ge,
}

for _dtype in INDEX_DTYPES:
    _kind = INTEGERS[_dtype]
    for _name, _operation in (
        ("add", _kind.add),
        ("sub", _kind.sub),
        ("mul", _kind.mul),
        ("maximum", max),
        ("minimum", min),
    ):
        _row(f"{_name}.{_dtype.label}", (_dtype, _dtype), _dtype, _wrapped(_kind, _operation))
    for _name, _operation in INTEGER_COMPARE.items():
        _row(f"{_name}.{_dtype.label}", (_dtype, _dtype), BOOL, _wrapped(_kind, _operation))

_row("not.bool", (BOOL,), BOOL, lambda w: int(not w[0]))
_row("and.bool", (BOOL, BOOL), BOOL, lambda w: int(bool(w[0]) and bool(w[1])))
_row("or.bool", (BOOL, BOOL), BOOL, lambda w: int(bool(w[0]) or bool(w[1])))
_row("eq.bool", (BOOL, BOOL), BOOL, lambda w: int(bool(w[0]) == bool(w[1])))
_row("ne.bool", (BOOL, BOOL), BOOL, lambda w: int(bool(w[0]) != bool(w[1])))

# ---- casts ----------------------------------------------------------------------------------

_FROM_FLOAT: dict[DType, Callable[[int], int]] = {
    F32: lambda x: x,
    I64: lambda x: integers.INT64.word(f32.to_int64(x)),
    I32: lambda x: integers.INT32.word(f32.to_int32(x)),
    U8: f32.to_uint8,
    BOOL: f32.to_bool,
    BF16: f32.to_bf16,
}


def cast(source: DType, target: DType, word: int) -> int:
    """Word of type ``target`` for ``word`` of type ``source`` (NUM-5)."""
    # NUM-2: a conversion of a type to itself keeps the bits.
    if source is target:
        return word
    if source is BF16:
        return _FROM_FLOAT[target](f32.from_bf16(word))
    if source is F32:
        return _FROM_FLOAT[target](word)
    value = int(word != 0) if source is BOOL else INTEGERS[source].value(word)
    if target is BOOL:
        return int(value != 0)
    if target in INTEGERS:
        return INTEGERS[target].word(value)
    return _FROM_FLOAT[target](f32.from_int(value))


def _caster(source: DType, target: DType) -> Callable[[Words], int]:
    return lambda w: cast(source, target, w[0])


for _source in DType:
    for _target in DType:
        _row(
            f"cast.{_source.label}.{_target.label}",
            (_source,),
            _target,
            _caster(_source, _target),
        )

# ---- argmax, sorting and scatters -----------------------------------------------------------


def exceeds(dtype: DType, a: int, b: int) -> bool:
    """Whether word ``a`` lies above word ``b`` in the order of amax: NaN top, +0 above -0."""
    if dtype is F32:
        if f32.is_nan(b):
            return False
        return f32.is_nan(a) or (a != b and f32.maximum(a, b) == a)
    return INTEGERS[dtype].value(a) > INTEGERS[dtype].value(b)


def _argmax_step(dtype: DType) -> Callable[[Words], int]:
    def apply(w: Words) -> int:
        best, candidate, best_index, index = w
        return index if exceeds(dtype, candidate, best) else best_index

    return apply


def _add_if_equal(dtype: DType) -> Callable[[Words], int]:
    def apply(w: Words) -> int:
        total, index, row, addend = w
        return f32.add(total, addend) if dtype.signed(index) == I64.signed(row) else total

    return apply


def _set_if_equal(dtype: DType) -> Callable[[Words], int]:
    def apply(w: Words) -> int:
        word, index, row, source = w
        return source if dtype.signed(index) == I64.signed(row) else word

    return apply


def order_key(dtype: DType, word: int, *, descending: bool) -> int:
    """An unsigned number, as wide as the element, that grows in sorting order (OP-31).

    Numbers grow with their value; -0 has the key of +0, and every NaN the largest key. In
    descending order all bits are the opposite.
    """
    top = (1 << 8 * dtype.size) - 1
    half = top // 2 + 1
    if dtype is F32 and f32.is_nan(word):
        key = top
    elif dtype is F32 and word & half:
        # OP-31: -0 is equal to +0.
        key = half if word == half else top - word
    else:
        key = word ^ half
    return top - key if descending else key


def _count_key(dtype: DType) -> Callable[[Words], int]:
    def apply(w: Words) -> int:
        total, x, least, shift, descending = w
        key = order_key(dtype, x, descending=bool(descending))
        return (total + (key >> shift == least >> shift)) & _WORD64

    return apply


def _seek_key(dtype: DType) -> Callable[[Words], int]:
    """What remains to be skipped, or, once it was found, -1 less the place."""

    def apply(w: Words) -> int:
        state, x, key, descending, place = w
        if I64.signed(state) < 0 or order_key(dtype, x, descending=bool(descending)) != key:
            return state
        return I64.pattern(state - 1 if state else -1 - place)

    return apply


for _dtype in (F32, *INDEX_DTYPES):
    _row(f"argmax.{_dtype.label}", (_dtype, _dtype, I64, I64), I64, _argmax_step(_dtype))
    _row(f"count_key.{_dtype.label}", (I64, _dtype, I64, I64, BOOL), I64, _count_key(_dtype))
    _row(f"seek_key.{_dtype.label}", (I64, _dtype, I64, BOOL, I64), I64, _seek_key(_dtype))
for _dtype in INDEX_DTYPES:
    _row(f"add_if_equal.{_dtype.label}", (F32, _dtype, I64, F32), F32, _add_if_equal(_dtype))
    _row(f"set_if_equal.{_dtype.label}", (None, _dtype, I64, None), None, _set_if_equal(_dtype))

# ---- random numbers -------------------------------------------------------------------------


def random_words(key: Words, shard: int, stream: int, block: int) -> Words:
    """Four words of block ``block`` of a stream, under a context's step key (OP-20)."""
    counter = (block & _WORD32, block >> 32 & _WORD32, stream & _WORD32, shard & _WORD32)
    return philox4x32((key[0] & _WORD32, key[1] & _WORD32), counter)


def _uniform(w: Words) -> int:
    k0, k1, shard, stream, element = w
    return uniform(random_words((k0, k1), shard, stream, element // 4)[element % 4])


def _random_index(w: Words) -> int:
    k0, k1, shard, stream, bound, element = w
    words = random_words((k0, k1), shard, stream, element // 2)
    return bounded(words[2 * (element % 2)], words[2 * (element % 2) + 1], bound)


def _shuffled_index(w: Words) -> int:
    k0, k1, step, shard, bound, count, shards, element = w
    position = ((step * shards + shard) * count + element) & _WORD64
    epoch, place = divmod(position, bound)
    return permute((k0 & _WORD32, k1 & _WORD32), epoch, bound, place)


_row("random_uniform", (I64,) * 5, F32, _uniform)
_row("random_index", (I64,) * 6, I64, _random_index)
_row("shuffled_index", (I64,) * 8, I64, _shuffled_index)
