"""Launchers of the elementwise operators, one launch each. Rules: NUM-1 to NUM-9, OP-2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from identic.kernels.cuda.device import Device, Kernel, blocks_over
from identic.kernels.cuda.places import Places
from identic.protocol.tensors import strides

BLOCK = 256
"""Threads of a block; tunes speed only."""

_FILE = "elementwise/cuda.cu"

SUFFIX: dict[np.dtype[Any], str] = {
    np.dtype("<f4"): "f32",
    np.dtype("<i8"): "i64",
    np.dtype("<i4"): "i32",
    np.dtype("u1"): "u8",
    np.dtype("?"): "bool",
    np.dtype("<u2"): "bf16",
}
"""Element types by the names of the entry points."""

_UNARY = (
    "neg",
    "abs",
    "exp",
    "log",
    "tanh",
    "erf",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "not",
)
_NUMBER = ("add", "sub", "mul", "maximum", "minimum", "div")
_COMPARISON = ("eq", "ne", "lt", "le", "gt", "ge")
_LOGIC = ("eq", "ne", "and", "or")

KERNELS = (
    *(Kernel(_FILE, f"unary_{name}") for name in _UNARY),
    *(Kernel(_FILE, f"{k}_{t}") for k in ("number", "comparison") for t in ("f32", "i64", "i32")),
    Kernel(_FILE, "logic_bool"),
    *(Kernel(_FILE, f"where_{size}") for size in (1, 2, 4, 8)),
    *(Kernel(_FILE, f"cast_{x}_{y}") for x in SUFFIX.values() for y in SUFFIX.values()),
)
"""Every entry point."""

_BY_NAME = {kernel.entry: kernel for kernel in KERNELS}


def unary(device: Device, op: str, out: Any, x: Any) -> None:
    """out = op(x) on contiguous arrays.

    Raises:
        ValueError: the operator is not defined on the type.
    """
    if op not in _UNARY or SUFFIX[x.dtype] != ("bool" if op == "not" else "f32"):
        raise ValueError(f"{op} is not defined on {x.dtype}")
    _flat(device, f"unary_{op}", out, x)


def cast(device: Device, out: Any, x: Any) -> None:
    """out = x in the type of out; uint16 arrays hold bfloat16. Both contiguous."""
    _flat(device, f"cast_{SUFFIX[x.dtype]}_{SUFFIX[out.dtype]}", out, x)


def binary(
    device: Device,
    op: str,
    out: Any,
    a: Any,
    b: Any,
    shape: Sequence[int] | None = None,
    a_strides: Sequence[int] | None = None,
    b_strides: Sequence[int] | None = None,
) -> None:
    """out = op(a, b) over ``shape``, that of out by default; an operand without strides is dense.

    Raises:
        ValueError: the operator is not defined on the types.
    """
    entry, number = _binary_entry(op, SUFFIX[a.dtype])
    if a.dtype != b.dtype:
        raise ValueError(f"{op} of {a.dtype} and {b.dtype}")
    places = _places(out, shape, a_strides, b_strides)
    if out.size:
        grid = blocks_over(device, out.size, BLOCK)
        arguments = (number, out.size, *places.arguments)
        device.launch(_BY_NAME[entry], (grid,), (BLOCK,), out, a, b, *arguments)


def where(
    device: Device,
    out: Any,
    c: Any,
    a: Any,
    b: Any,
    shape: Sequence[int] | None = None,
    c_strides: Sequence[int] | None = None,
    a_strides: Sequence[int] | None = None,
    b_strides: Sequence[int] | None = None,
) -> None:
    """out = a where c, else b; shape and strides as for ``binary``, any type of element.

    Raises:
        ValueError: the condition is not bool, or the others have several types.
    """
    if SUFFIX[c.dtype] != "bool" or not out.dtype == a.dtype == b.dtype:
        raise ValueError(f"where {c.dtype}: {a.dtype}, else {b.dtype}")
    places = _places(out, shape, c_strides, a_strides, b_strides)
    if out.size:
        grid = blocks_over(device, out.size, BLOCK)
        kernel = _BY_NAME[f"where_{out.dtype.itemsize}"]
        device.launch(kernel, (grid,), (BLOCK,), out, c, a, b, out.size, *places.arguments)


def _binary_entry(op: str, suffix: str) -> tuple[str, int]:
    """Entry point of an operator on a type, and the operator's number there."""
    if suffix == "bool" and op in _LOGIC:
        return "logic_bool", _LOGIC.index(op)
    if suffix in {"f32", "i64", "i32"}:
        if op in _NUMBER and (op != "div" or suffix == "f32"):
            return f"number_{suffix}", _NUMBER.index(op)
        if op in _COMPARISON:
            return f"comparison_{suffix}", _COMPARISON.index(op)
    raise ValueError(f"{op} is not defined on {suffix}")


def _places(out: Any, shape: Sequence[int] | None, *steps: Sequence[int] | None) -> Places:
    whole = tuple(out.shape if shape is None else shape)
    if math.prod(whole) != out.size:
        raise ValueError(f"a result of {out.size} elements for the shape {whole}")
    return Places.of(whole, *(strides(whole) if s is None else s for s in steps))


def _flat(device: Device, entry: str, out: Any, x: Any) -> None:
    if out.size != x.size:
        raise ValueError(f"{entry}: {x.size} elements into {out.size}")
    if out.size:
        grid = blocks_over(device, out.size, BLOCK)
        device.launch(_BY_NAME[entry], (grid,), (BLOCK,), out, x, out.size)
