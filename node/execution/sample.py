"""A small program of many operators, to hold a whole step of one backend against another's.

An embedding with dropout, a layer, cross entropy, their gradients, and moments with a square root:
steps of it run prepared, in chains, as those of a job do.

Spec: docs/spec/execution.md (EXE-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import NUMPY, Array
from identic.kernels.backend import Backend
from identic.kernels.executor import Executor
from identic.node.execution.states import commit_state
from identic.node.execution.vectors import KEY
from identic.protocol.commitments import StateHeader
from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, Digest, StepIndex, Unsigned
from identic.protocol.lowering import Builder
from identic.protocol.program.codec import program_digest
from identic.protocol.program.types import CONTEXT_TYPE, Program, Section, Variable
from identic.protocol.program.unroll import unroll
from identic.protocol.tensors import TensorType

STEPS: Final = 2
SEED: Final = 5
ROWS, BATCH, WORDS, WIDTH, CLASSES = 12, 6, 7, 19, 21
KEPT: Final = 0.75
"""Share of the elements that dropout keeps."""

F32, I64 = DType.FLOAT32, DType.INT64


def root(backend: Backend) -> Digest:
    """Root of the state after the last step on a backend."""
    made = program()
    executor = Executor(unroll(made), backend)
    state = [*_filled(made.parameters), *(_zeros(v) for v in made.state[len(made.parameters) :])]
    data = [_numbers(v, WORDS if v.name == "words" else CLASSES) for v in made.data]
    for step in range(STEPS):
        state = executor.consume(state, data, SEED, step)
    header = StateHeader(
        program_digest(made), Unsigned(SEED), StepIndex(STEPS), Count(STEPS * BATCH)
    )
    return commit_state(header, made.state, state, executor.chunk_roots).root


@cache
def program() -> Program:
    """The program."""
    shapes = {"table": (WORDS, WIDTH), "weight": (WIDTH, CLASSES), "bias": (CLASSES,)}
    parameters = tuple(Variable(name, TensorType.of(F32, n)) for name, n in shapes.items())
    moments = tuple(
        Variable(f"{power}.{v.name}", v.type) for power in ("first", "second") for v in parameters
    )
    data = tuple(Variable(name, TensorType.of(I64, (ROWS,))) for name in ("words", "labels"))
    return Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(BATCH),
        parameters=parameters,
        trainable=tuple(Unsigned(i) for i in range(len(parameters))),
        buffers=(),
        optimizer=moments,
        data=data,
        gradient=_gradient([v.type for v in (*parameters, *data)]),
        update=_update([v.type for v in parameters], [v.type for v in data]),
    )


def _gradient(types: Sequence[TensorType]) -> Section:
    b = Builder([*types, CONTEXT_TYPE])
    table, weight, bias, words, labels, context = range(6)
    index = b.emit("shuffled_index", context, bound=ROWS, count=BATCH, shards=1)
    chosen, label = (b.emit("take_rows", x, index) for x in (words, labels))
    uniform = b.emit("random_uniform", context, shape=(BATCH, WIDTH), stream=1)
    kept = b.emit("lt", uniform, b.full(F32, KEPT))
    zero, one, grown = (b.full(F32, x) for x in (0.0, 1.0, 1 / KEPT))

    def dropped(x: int) -> int:
        return b.emit("where", kept, b.emit("mul", x, grown), zero)

    x = dropped(b.emit("take_rows", table, chosen))
    z = b.emit("tanh", b.emit("add", b.emit("matmul", x, weight), bias))
    shifted = b.emit("sub", z, b.reshape(b.emit("amax", z), (BATCH, 1)))
    powers = b.emit("exp", shifted)
    total = b.reshape(b.emit("sum_last", powers), (BATCH, 1))
    logs = b.emit("sub", shifted, b.emit("log", total))
    column = b.reshape(label, (BATCH, 1))
    picked = b.reshape(b.emit("gather", logs, column, axis=1), (BATCH,))
    share = b.full(F32, 1 / BATCH)
    loss = b.emit("mul", b.emit("neg", b.emit("sum_last", picked)), share)

    hot = b.cast(b.emit("eq", column, b.iota(CLASSES)), F32)
    error = b.emit("mul", b.emit("sub", b.emit("div", powers, total), hot), share)
    error = b.emit("mul", error, b.emit("sub", one, b.emit("mul", z, z)))
    of_weight = b.emit("matmul", b.permute(x, (1, 0)), error)
    of_x = dropped(b.emit("matmul", error, b.permute(weight, (1, 0))))
    of_table = b.emit("add_rows", b.full(F32, 0.0, (WORDS, WIDTH)), chosen, of_x)
    section, _ = b.finish([loss, of_table, of_weight, b.emit("sum_first", error)])
    return section


def _update(parameters: Sequence[TensorType], data: Sequence[TensorType]) -> Section:
    count = len(parameters)
    b = Builder([*(4 * list(parameters)), *data, CONTEXT_TYPE])
    rate, tiny = b.full(F32, 0.01), b.full(F32, 1e-8)

    def mixed(old: int, new: int, share: float) -> int:
        kept = b.emit("mul", old, b.full(F32, 1 - share))
        return b.emit("add", kept, b.emit("mul", new, b.full(F32, share)))

    moved, firsts, seconds = [], [], []
    for i in range(count):
        parameter, gradient, first, second = (n * count + i for n in range(4))
        firsts.append(mixed(first, gradient, 0.1))
        seconds.append(mixed(second, b.emit("mul", gradient, gradient), 0.001))
        size = b.emit("add", b.emit("sqrt", seconds[-1]), tiny)
        step = b.emit("mul", b.emit("div", firsts[-1], size), rate)
        moved.append(b.emit("sub", parameter, step))
    section, _ = b.finish([*moved, *firsts, *seconds])
    return section


def _filled(variables: Sequence[Variable]) -> list[Array]:
    """Uniform numbers, a stream for each tensor."""
    arrays = [_zeros(v) for v in variables]
    for stream, array in enumerate(arrays):
        _native.philox_uniform(array.reshape(-1), *KEY, stream, 0)
    return arrays


def _numbers(variable: Variable, bound: int) -> Array:
    """Indices below a bound."""
    array = _zeros(variable)
    _native.philox_index(array, *KEY, bound, 0, 0)
    return array


def _zeros(variable: Variable) -> Array:
    return np.zeros(variable.type.shape, NUMPY[variable.type.dtype])
