"""Chains give the bits of their operators called one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.kernels import _native
from identic.kernels.arrays import Array
from tests.helpers.effort import examples
from tests.kernels.native.machine import everywhere, floats

UNARY = ["neg", "abs", "exp", "log", "tanh", "erf", "sigmoid", "sqrt", "rsqrt", "sin", "cos"]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
KINDS = {"float32": np.float32, "int64": np.int64, "int32": np.int32, "bool": np.bool_}


@dataclass
class Program:
    """A random chain, and the value of each slot computed by single operators."""

    rng: np.random.Generator
    shape: tuple[int, ...]
    inputs: list[tuple[str, bool]] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    strides: list[list[int]] = field(default_factory=list)
    code: list[tuple[str, list[int]]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    rows: list[bool] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)

    def slot(self, kind: str, value: Array, *, of_rows: bool) -> None:
        self.kinds.append(kind)
        self.rows.append(of_rows)
        self.values.append(np.ascontiguousarray(value))

    def add_input(self, kind: str, *, of_rows: bool) -> None:
        kept = [1 if self.rng.random() < 0.3 else n for n in self.shape]
        if of_rows:
            kept[-1] = 1
        order = self.rng.permutation(len(kept))
        sizes = tuple(int(kept[i]) for i in order)
        if kind == "float32":
            stored = floats(self.rng, sizes, special=0.05)
        elif kind == "bool":
            stored = self.rng.random(sizes) < 0.5
        else:
            stored = self.rng.integers(-9, 9, sizes).astype(KINDS[kind])
        array = stored.transpose(np.argsort(order))
        self.inputs.append((kind, of_rows))
        self.arrays.append(array)
        steps = zip(array.shape, array.strides, strict=True)
        self.strides.append([0 if n == 1 else s // array.itemsize for n, s in steps])
        self.slot(kind, np.broadcast_to(array, self.shape), of_rows=of_rows)

    def choose(self, kind: str) -> int:
        return int(self.rng.choice([i for i, k in enumerate(self.kinds) if k == kind]))

    def apply(self, name: str, operands: list[int], kind: str) -> None:
        self.code.append((name, operands))
        values = [self.values[i] for i in operands]
        of_rows = all(self.rows[i] for i in operands)
        out: Array = np.empty(self.shape, KINDS[kind])
        if name == "where":
            _native.where(out, values[0], values[1], values[2])
        elif name in KINDS:
            if self.kinds[operands[0]] == kind:
                out[...] = values[0]
            else:
                _native.cast(out, values[0])
        elif name in {"sum_last", "amax"}:
            result: Array = np.empty(self.shape[:-1], np.float32)
            getattr(_native, name)(result, values[0], math.prod(self.shape[:-1]), self.shape[-1])
            out[...] = result[..., None]
            of_rows = True
        elif len(values) == 2:
            _native.binary(name, out, values[0], values[1])
        else:
            _native.unary(name, out, values[0])
        self.slot(kind, out, of_rows=of_rows)

    def step(self) -> None:
        choice = self.rng.random()
        whole = [i for i, k in enumerate(self.kinds) if k == "float32" and not self.rows[i]]
        if choice < 0.12 and whole:
            name = str(self.rng.choice(["sum_last", "amax"]))
            self.apply(name, [int(self.rng.choice(whole))], "float32")
        elif choice < 0.35:
            self.apply(str(self.rng.choice(UNARY)), [self.choose("float32")], "float32")
        elif choice < 0.65:
            name = str(self.rng.choice(BINARY))
            self.apply(name, [self.choose("float32"), self.choose("float32")], "float32")
        elif choice < 0.75:
            kind = str(self.rng.choice(["float32", "int64", "int32"]))
            operands = [self.choose(kind), self.choose(kind)]
            self.apply(str(self.rng.choice(COMPARISONS)), operands, "bool")
        elif choice < 0.85:
            kind = str(self.rng.choice(list(KINDS)))
            operands = [self.choose("bool"), self.choose(kind), self.choose(kind)]
            self.apply("where", operands, kind)
        elif choice < 0.9:
            name = str(self.rng.choice(["and", "or"]))
            self.apply(name, [self.choose("bool"), self.choose("bool")], "bool")
        elif choice < 0.95:
            kind = str(self.rng.choice(list(KINDS)))
            self.apply(kind, [int(self.rng.integers(len(self.kinds)))], kind)
        else:
            kind = str(self.rng.choice(["int64", "int32"]))
            name = str(self.rng.choice(["add", "mul", "maximum"]))
            self.apply(name, [self.choose(kind), self.choose(kind)], kind)


def made(seed: int, shape: tuple[int, ...], steps: int) -> Program:
    """A random program over ``shape``."""
    program = Program(np.random.default_rng(seed), shape)
    for kind in KINDS:
        program.add_input(kind, of_rows=False)
        program.add_input(kind, of_rows=bool(program.rng.random() < 0.5))
    for _ in range(steps):
        program.step()
    return program


SHAPES = st.one_of(
    st.lists(st.sampled_from([1, 2, 3, 7, 33]), min_size=1, max_size=4).map(tuple),
    st.sampled_from([(5000,), (3, 1500), (40, 100), (2, 3, 1024), (1, 4097), (700, 1), (0, 4)]),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32), SHAPES, st.integers(1, 25))
def test_op_8__a_chain_has_the_bits_of_its_operators(
    seed: int, shape: tuple[int, ...], steps: int
) -> None:
    program = made(seed, shape, steps)
    first = len(program.inputs)
    made_slots = np.arange(first, len(program.kinds))
    count = int(program.rng.integers(1, len(made_slots) + 1))
    outputs = sorted(int(i) for i in program.rng.choice(made_slots, count, replace=False))
    chain = _native.Chain(program.inputs, program.code, outputs)

    def run() -> Array:
        results: list[Array] = [
            np.empty(shape[:-1] if program.rows[i] else shape, KINDS[program.kinds[i]])
            for i in outputs
        ]
        chain.run(results, program.arrays, shape, program.strides)
        for i, result in zip(outputs, results, strict=True):
            value = program.values[i][..., 0] if program.rows[i] else program.values[i]
            assert result.tobytes() == value.tobytes(), program.code[i - first]
        return np.frombuffer(b"".join(r.tobytes() for r in results), "u1")

    everywhere(run)


DIVIDENDS = np.array([0.0, 2.0**-60, 2.0**60, 1.0, 3.0], np.float32)
"""Numbers that lie at the borders of those that a chain divides by multiplications."""

BEYOND = np.array([-0.0, -1.0, 2.0**-61, 2.0**61, 1e-44, math.inf, -math.inf, math.nan], np.float32)
"""Numbers that it does not."""


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([64, 100, 128, 300]), st.booleans())
def test_num_1__a_row_over_one_number_is_rounded_once(seed: int, width: int, some: bool) -> None:
    """Every mantissa of dividend and divisor, at every distance; with ``some`` beyond the usual."""
    rng = np.random.default_rng(seed)
    rows = 12

    def numbers(shape: tuple[int, ...]) -> Array:
        words = rng.integers(0x21800000, 0x5D800001, shape, dtype=np.uint32)
        return words.view(np.float32)

    x, y = numbers((rows, width)), numbers((rows,))
    x = np.where(rng.random(x.shape) < 0.1, rng.choice(DIVIDENDS, x.shape), x)
    y[:4] = [2.0**-60, 2.0**60, 1.0, 1.9999999]
    if some:
        x = np.where(rng.random(x.shape) < 0.01, rng.choice(BEYOND, x.shape), x)
        y[4:6] = rng.choice(BEYOND, 2)
    chain = _native.Chain([("float32", False), ("float32", True)], [("div", [0, 1])], [2])
    with np.errstate(all="ignore"):
        want = x / y[:, None]
    want[np.isnan(want)] = np.float32(np.nan)

    def run() -> Array:
        out = np.empty_like(x)
        chain.run([out], [x, y], x.shape, [[width, 1], [1, 0]])
        assert out.tobytes() == want.tobytes()
        return out

    everywhere(run)


def test_what_is_no_chain_is_refused() -> None:
    whole, of_rows, flag = ("float32", False), ("float32", True), ("bool", False)
    for inputs, code, outputs in (
        ([whole], [("nonsense", [0])], [1]),
        ([whole], [("exp", [1])], [1]),
        ([whole], [("exp", [-1])], [1]),
        ([whole], [("exp", [0, 0])], [1]),
        ([flag], [("exp", [0])], [1]),
        ([whole, flag], [("add", [0, 1])], [2]),
        ([flag], [("add", [0, 0])], [1]),
        ([of_rows], [("sum_last", [0])], [1]),
        ([whole], [("exp", [0])], [0]),
        ([whole], [("exp", [0])], [2]),
        ([whole], [("exp", [0])], [1, 1]),
        ([("uint8", False)], [], []),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            _native.Chain(inputs, code, outputs)
    chain = _native.Chain([whole, of_rows], [("add", [0, 1])], [2])
    x, rows = np.zeros((3, 4), np.float32), np.zeros(3, np.float32)
    good = [[4, 1], [1, 0]]
    chain.run([np.empty_like(x)], [x, rows], (3, 4), good)
    for results, arrays, shape, strides in (
        ([], [x, rows], (3, 4), good),
        ([np.empty(11, np.float32)], [x, rows], (3, 4), good),
        ([np.empty_like(x)], [x, rows], (3, 4), [[4, 2], [1, 0]]),
        ([np.empty_like(x)], [x, rows], (3, 4), [[4, 1], [0, 1]]),
        ([np.empty_like(x)], [x], (3, 4), good[:1]),
        ([np.empty(1, np.float32)], [x, rows], (), [[], []]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            chain.run(results, arrays, shape, strides)
