"""A program run by torch itself, in float32 or in float64, for comparison with autograd.

In float64 the interpreter shows that a program computes the right mathematics: with the
constants of the program replaced by the numbers they were rounded from, nothing but the
order of operations differs from autograd's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from identic.node.capture.philox import uniform_block
from identic.protocol.arithmetic.permutation import permute
from identic.protocol.arithmetic.philox import bounded, philox4x32
from identic.protocol.dtypes import DType
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.program.context import context
from identic.protocol.program.plan import Source, StepPlan
from identic.protocol.program.unroll import unroll
from tests.capture import windowed

Tensor = torch.Tensor
Array = NDArray[Any]

_INTEGERS = {
    DType.INT64: torch.int64,
    DType.INT32: torch.int32,
    DType.UINT8: torch.uint8,
    DType.BOOL: torch.bool,
}


class TorchBackend:
    """Operators computed by torch, float32 ones in the element type ``real``."""

    name = "torch"

    def __init__(
        self, real: torch.dtype = torch.float32, exact: Mapping[int, float] | None = None
    ) -> None:
        self.real = real
        self.exact = exact or {}

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """One operator, as the executor asks for it."""
        given = [torch.from_numpy(np.array(x)) for x in inputs]
        return np.array(self.compute(call, given).numpy(), order="C")

    def dtype(self, kind: DType) -> torch.dtype:
        """How elements of a type are held."""
        return self.real if kind is DType.FLOAT32 else _INTEGERS[kind]

    def compute(self, call: Call, x: Sequence[Tensor]) -> Tensor:
        """One operator on tensors."""
        name = call.op.name
        result = _RULES[name](call, x) if name in _RULES else self._own(name, call, x)
        wanted = self.dtype(call.output.dtype)
        assert tuple(result.shape) == tuple(call.output.shape), (name, result.shape, call.output)
        assert result.dtype == wanted, (name, result.dtype, call.output)
        return result.contiguous()

    def _number(self, call: Call, attribute: str) -> float:
        """The number that an attribute is the pattern of."""
        word, kind = call.integer(attribute), call.output.dtype
        if kind is DType.FLOAT32:
            return self.exact.get(word, float(np.array([word], np.uint32).view(np.float32)[0]))
        return kind.signed(kind.pattern(word))

    def _own(self, name: str, call: Call, x: Sequence[Tensor]) -> Tensor:
        shape = tuple(int(n) for n in call.output.shape)
        dtype = self.dtype(call.output.dtype)
        if name == "full":
            return torch.full(shape, self._number(call, "word"), dtype=dtype)
        if name == "pad":
            sides = zip(call.integers("before"), call.integers("after"), strict=True)
            amounts = [n for pair in reversed(list(sides)) for n in pair]
            fill = self._number(call, "value")
            return torch.nn.functional.pad(x[0], amounts, value=fill)
        if name == "cast":
            return x[0].to(dtype)
        if name == "iota":
            start, step = call.integer("start"), call.integer("step")
            return (torch.arange(call.integer("count")) * step + start).to(dtype)
        assert name == "random_uniform", name
        c = x[0].tolist()
        values = uniform_block((c[2], c[3]), call.integer("stream"), c[5], int(np.prod(shape)))
        return torch.from_numpy(values).reshape(shape).to(dtype)


def _slice(call: Call, x: Sequence[Tensor]) -> Tensor:
    bounds = zip(*(call.integers(n) for n in ("start", "stop", "step")), strict=True)
    return x[0][tuple(slice(*b) for b in bounds)]


def _random_index(call: Call, x: Sequence[Tensor]) -> Tensor:
    c, out = x[0].tolist(), []
    for i in range(call.integer("count")):
        block = philox4x32((c[2], c[3]), (i // 2, 0, call.integer("stream"), c[5]))
        out.append(bounded(block[2 * (i % 2)], block[2 * (i % 2) + 1], call.integer("bound")))
    return torch.tensor(out)


def _shuffled_index(call: Call, x: Sequence[Tensor]) -> Tensor:
    c, count, bound = x[0].tolist(), call.integer("count"), call.integer("bound")
    first = (c[4] * call.integer("shards") + c[5]) * count
    rows = [
        permute((c[0], c[1]), p // bound, bound, p % bound) for p in range(first, first + count)
    ]
    return torch.tensor(rows)


def _windows(call: Call, x: Sequence[Tensor]) -> Tensor:
    length = call.integer("length")
    return torch.stack([x[0][s : s + length] for s in x[1].tolist()])


def _sorted(call: Call, x: Sequence[Tensor]) -> Tensor:
    descending = call.integer("descending" if call.op.name == "argsort" else "largest") == 1
    order = torch.sort(x[0], dim=-1, descending=descending, stable=True).indices
    return order[..., : int(call.output.shape[-1])]


def _set_rows(_: Call, x: Sequence[Tensor]) -> Tensor:
    result = x[0].clone()
    for row, source in zip(x[1].tolist(), x[2], strict=True):
        result[row] = source
    return result


def _scatter(call: Call, x: Sequence[Tensor]) -> Tensor:
    axis, result = call.integer("axis"), x[0].clone()
    for j in range(x[1].shape[axis]):
        result.scatter_(axis, x[1].narrow(axis, j, 1), x[2].narrow(axis, j, 1))
    return result


_RULES: dict[str, Callable[[Call, Sequence[Tensor]], Tensor]] = {
    **windowed.RULES,
    **{
        name: (lambda call, x: getattr(torch, call.op.name)(*x))
        for name in (
            *("abs", "exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "sqrt", "rsqrt", "neg"),
            *("add", "sub", "mul", "div", "maximum", "minimum", "matmul"),
            *("eq", "ne", "lt", "le", "gt", "ge", "where"),
        )
    },
    "and": lambda _, x: x[0] & x[1],
    "or": lambda _, x: x[0] | x[1],
    "not": lambda _, x: ~x[0],
    "sum_last": lambda _, x: x[0].sum(-1, dtype=x[0].dtype),
    "sum_first": lambda _, x: x[0].sum(0, dtype=x[0].dtype),
    "amax": lambda _, x: x[0].amax(-1),
    "argmax": lambda _, x: x[0].argmax(-1),
    "cumsum": lambda _, x: x[0].cumsum(-1, dtype=x[0].dtype),
    "argsort": _sorted,
    "argtopk": _sorted,
    "take_rows": lambda _, x: x[0][x[1].long()],
    "gather": lambda call, x: x[0].gather(call.integer("axis"), x[1]),
    "take_windows": _windows,
    "add_rows": lambda _, x: x[0].index_add(0, x[1], x[2]),
    "set_rows": _set_rows,
    "scatter": _scatter,
    "scatter_add": lambda call, x: x[0].scatter_add(call.integer("axis"), x[1], x[2]),
    "reshape": lambda call, x: x[0].reshape(tuple(call.integers("shape"))),
    "permute": lambda call, x: x[0].permute(tuple(call.integers("axes"))),
    "expand": lambda call, x: x[0].expand(tuple(call.integers("shape"))),
    "slice": _slice,
    "concat": lambda call, x: torch.cat(list(x), call.integer("axis")),
    "random_index": _random_index,
    "shuffled_index": _shuffled_index,
}


def run_plan(
    plan: StepPlan,
    backend: TorchBackend,
    state: Sequence[Array],
    data: Sequence[Array],
    seed: int,
    step: int,
) -> list[Tensor]:
    """Every value of one step, in the order of the plan."""
    values = []
    for load in plan.loads:
        if load.source is Source.CONTEXT:
            array: Array = np.array(context(seed, step, load.index))
        else:
            array = (state if load.source is Source.STATE else data)[load.index]
        values.append(torch.from_numpy(np.array(array)).to(backend.dtype(load.type.dtype)))
    for planned in plan.calls:
        values.append(backend.compute(planned.call, [values[i] for i in planned.inputs]))
    return values


__all__ = ["TABLE", "TorchBackend", "run_plan", "unroll"]
