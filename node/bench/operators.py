"""Matrix products and other operators of training, at the sizes of a small GPT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

import identic
from identic.kernels import _native
from identic.kernels.arrays import Array
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.kernels.operators import element_strides
from identic.node.bench.rows import Benchmark, Case, Timed
from identic.node.capture.data import dtype_of
from identic.node.capture.optimizers import Inputs, Update
from identic.node.capture.settings import groups
from identic.node.capture.tracing import trace
from identic.protocol.dtypes import DType
from identic.protocol.ids import Count, Unsigned
from identic.protocol.lowering import Builder, lower
from identic.protocol.program.types import CONTEXT_TYPE, Program, Section, Variable
from identic.protocol.program.unroll import unroll
from identic.protocol.tensors import TensorType

ROWS, WIDTH, WIDE, CLASSES = 2048, 128, 512, 256
"""Tokens of a step, width of the network, width between two layers, scores."""

HEADS = 64
"""Heads of all examples of a step."""

Function = Callable[..., Sequence[Tensor]]


# ---- matrix products ------------------------------------------------------------------------


def product(m: int, k: int, n: int, form: str, *, count: int = 1) -> Case:
    """Products of m x k and k x n; ``T`` in ``form``: that operand is stored transposed."""
    rng = np.random.default_rng(1)
    stored = [
        rng.standard_normal((count, *shape[:: -1 if letter == "T" else 1]), dtype=np.float32)
        for letter, shape in zip(form, ((m, k), (k, n)), strict=True)
    ]
    a, b = (
        x.transpose(0, 2, 1) if letter == "T" else x for x, letter in zip(stored, form, strict=True)
    )
    outs = [np.empty((count, m, n), np.float32) for _ in range(3)]
    left, right, result = (torch.from_numpy(x) for x in (a, b, outs[1]))
    steps = [element_strides(x) for x in (a, b)]

    def ours() -> Array:
        _native.matmul(outs[0], a, b, count, m, n, k, *steps)
        return outs[0]

    def theirs() -> Tensor:
        if count > 1:
            return torch.bmm(left, right, out=result)
        return torch.mm(left[0], right[0], out=result[0])

    return Case(
        ours,
        {"torch": theirs, "numpy": lambda: np.matmul(a, b, out=outs[2])},
        fmas=count * m * n * k,
    )


def _products() -> Iterator[Benchmark]:
    """Square products, and those of a small GPT: a layer, its two gradients, one of attention."""
    for size in (256, 512, 1024, 2048):
        for form in ("NN", "NT", "TN"):
            yield Benchmark(f"matmul {size} {form}", partial(product, size, size, size, form))
    for m, k, n, form in (
        (ROWS, WIDTH, WIDE, "NT"),
        (ROWS, WIDE, WIDTH, "NN"),
        (WIDTH, ROWS, WIDE, "TN"),
    ):
        yield Benchmark(f"matmul {m} x {k} x {n} {form}", partial(product, m, k, n, form))
    head = 32
    for m, k, n, form in (
        (WIDTH, head, WIDTH, "NT"),
        (WIDTH, WIDTH, head, "NN"),
        (WIDTH, WIDTH, head, "TN"),
    ):
        yield Benchmark(
            f"matmul {HEADS} of {m} x {k} x {n} {form}",
            partial(product, m, k, n, form, count=HEADS),
        )


# ---- captured functions ---------------------------------------------------------------------


Runnable = tuple[Program, list[Array], list[Array]]
"""A program with a state to start from and its data."""


def captured(function: Function, inputs: Sequence[Tensor]) -> Timed:
    """A function as a prepared step."""
    return _step(*as_program(function, inputs))


def as_program(function: Function, inputs: Sequence[Tensor]) -> Runnable:
    """A function as a step: its inputs are the step's data, its results buffers."""
    traced = trace(lambda _, *x: function(*x), [torch.zeros(6, dtype=torch.int64), *inputs])
    data = [*(x.numpy() for x in inputs), *traced.constants]
    types = [_type(array) for array in data]
    results = [traced.graph.type(o) for o in traced.graph.outputs]
    count = len(results)
    builder = Builder([*results, *types, CONTEXT_TYPE])
    context, first = len(results) + len(types), list(range(count, count + len(types)))
    split = len(inputs)
    outputs = lower(traced.graph, builder, [context, *first[:split], *first[split:]])
    gradient, _ = builder.finish([builder.full(DType.FLOAT32, 0.0), *outputs])
    program = Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=(),
        trainable=(),
        buffers=_variables("result", results),
        optimizer=(),
        data=_variables("operand", types),
        gradient=gradient,
        update=Section((*types, CONTEXT_TYPE), (), ()),
    )
    return program, [np.zeros(v.type.shape, np.float32) for v in program.state], data


def _step(program: Program, state: list[Array], data: Sequence[Array]) -> Timed:
    """One step of a program from the same state each time."""
    executor = Executor(unroll(program), CpuBackend())
    return lambda: executor.step(state, data, 1, 0)


def _type(array: Array) -> TensorType:
    return TensorType.of(dtype_of(array), array.shape)


def _variables(word: str, types: Sequence[TensorType]) -> tuple[Variable, ...]:
    return tuple(Variable(f"{word}.{i}", kind) for i, kind in enumerate(types))


def _function(function: Function, *inputs: Tensor) -> Case:
    return Case(captured(function, inputs), {"torch": lambda: function(*inputs)})


def softmax(x: Tensor) -> Sequence[Tensor]:
    """Softmax over rows."""
    return [F.softmax(x, -1)]


def softmax_both(x: Tensor, g: Tensor) -> Sequence[Tensor]:
    """Softmax over rows and its gradient."""
    x = x.detach().requires_grad_()
    y = F.softmax(x, -1)
    return [y.detach(), *torch.autograd.grad(y, [x], g)]


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Sequence[Tensor]:
    """Layer norm over rows."""
    return [F.layer_norm(x, weight.shape, weight, bias)]


def layer_norm_both(x: Tensor, weight: Tensor, bias: Tensor, g: Tensor) -> Sequence[Tensor]:
    """Layer norm over rows and its gradients."""
    inputs = [t.detach().requires_grad_() for t in (x, weight, bias)]
    y = F.layer_norm(inputs[0], weight.shape, inputs[1], inputs[2])
    return [y.detach(), *torch.autograd.grad(y, inputs, g)]


def gelu(x: Tensor) -> Sequence[Tensor]:
    """The exact gelu."""
    return [F.gelu(x)]


def gelu_both(x: Tensor, g: Tensor) -> Sequence[Tensor]:
    """The exact gelu and its gradient."""
    x = x.detach().requires_grad_()
    y = F.gelu(x)
    return [y.detach(), *torch.autograd.grad(y, [x], g)]


def cross_entropy_both(x: Tensor, y: Tensor) -> Sequence[Tensor]:
    """Mean cross entropy and its gradient."""
    x = x.detach().requires_grad_()
    loss = F.cross_entropy(x, y)
    return [loss.detach(), *torch.autograd.grad(loss, [x])]


def embedding_both(weight: Tensor, y: Tensor, g: Tensor) -> Sequence[Tensor]:
    """Rows of a table, and the table's gradient."""
    weight = weight.detach().requires_grad_()
    rows = F.embedding(y, weight)
    return [rows.detach(), *torch.autograd.grad(rows, [weight], g)]


def _numbers(*shape: int) -> Tensor:
    """Numbers around 0, not the same for two shapes."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def _classes() -> Tensor:
    return torch.randint(CLASSES, (ROWS,), generator=torch.Generator().manual_seed(1))


# ---- the optimizer --------------------------------------------------------------------------


def _adamw(side: int = 1024) -> Case:
    """AdamW on one square parameter."""
    program, state, data = adamw_program(side)
    start = _numbers(side, side)
    names = {"torch": False, "torch, fused": True}
    return Case(
        _step(program, state, data),
        {n: _torch_adamw(start, data[0], fused=f) for n, f in names.items()},
    )


def adamw_program(side: int) -> Runnable:
    """AdamW on one square parameter as a step; the gradient is the first of its data."""
    job = identic.TrainingJob(
        model=None,
        loss=print,
        optimizer=identic.AdamW(lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1),
        data=identic.Windows(np.zeros(2, np.uint8), length=1, batch=1),
        steps=1,
    )
    kind = TensorType.of(DType.FLOAT32, (side, side))
    trained = (Variable("p", kind),)
    rule = Update(job, groups(job, {"p": torch.empty(0)}))
    gradient, schedule = _numbers(side, side).numpy(), rule.table
    data = (Variable("gradient", kind), Variable("schedule", _type(schedule)))
    types = [v.type for v in data]
    optimizer = rule.variables(trained)
    forward = Builder([kind, *types, CONTEXT_TYPE])
    first, _ = forward.finish([forward.full(DType.FLOAT32, 0.0), 1])
    update = Builder([kind, kind, *(v.type for v in optimizer), *types, CONTEXT_TYPE])
    kept = {v.name: 2 + i for i, v in enumerate(optimizer)}
    updated = rule.build(update, Inputs({"p": 0}, {"p": 1}, kept, schedule=5, context=6))
    second, _ = update.finish([updated.parameters["p"], *updated.optimizer.values()])
    program = Program(
        version=Count(1),
        shards=Count(1),
        examples=Count(1),
        parameters=trained,
        trainable=(Unsigned(0),),
        buffers=(),
        optimizer=optimizer,
        data=data,
        gradient=first,
        update=second,
    )
    zeros = [np.zeros(v.type.shape, np.float32) for v in program.state[1:]]
    return program, [_numbers(side, side).numpy().copy(), *zeros], [gradient, schedule]


def _torch_adamw(start: Tensor, gradient: Array, *, fused: bool) -> Timed:
    parameter = start.clone().requires_grad_()
    parameter.grad = torch.from_numpy(gradient)
    optimizer = torch.optim.AdamW(
        [parameter], lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=fused
    )
    return optimizer.step


# ---- all of them ----------------------------------------------------------------------------


def benchmarks() -> Iterator[Benchmark]:
    """Products first, then operators from the heaviest down."""
    yield from _products()
    scores, gradient = (16, 4, WIDTH, WIDTH), _numbers(ROWS, WIDE)
    both = (_numbers(*scores), _numbers(*scores).flip(0))
    rows, vector = _numbers(ROWS, WIDTH), _numbers(WIDTH)
    for name, function, inputs in (
        ("gelu", gelu, [_numbers(ROWS, WIDE)]),
        ("gelu and gradient", gelu_both, [_numbers(ROWS, WIDE), gradient]),
        ("softmax", softmax, both[:1]),
        ("softmax and gradient", softmax_both, both),
        ("layer norm", layer_norm, [rows, vector, vector]),
        ("layer norm and gradient", layer_norm_both, [rows, vector, vector, rows.flip(0)]),
        ("cross entropy and gradient", cross_entropy_both, [_numbers(ROWS, CLASSES), _classes()]),
        ("embedding and gradient", embedding_both, [_numbers(CLASSES, WIDTH), _classes(), rows]),
    ):
        yield Benchmark(name, partial(_function, function, *inputs))
    yield Benchmark("adamw, 1 M numbers", _adamw)
