"""Operators with known results, on the vector path or the device that is chosen.

The CPU computes a few, at each start. Their operands are made from integers, so that they are the
same everywhere; ``GOLDEN`` is the SHA-256 over the results of the reference kernels. The project's
tests recompute it. A device computes the golden vectors of every operator, and a small program.

Spec: docs/spec/execution.md (EXE-20, EXE-22, EXE-23).
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

from identic.kernels.arrays import Array
from identic.kernels.backend import Backend
from identic.kernels.cuda.device import DeviceFault
from identic.node.execution import sample, vectors
from identic.node.execution.vectors import Runs
from identic.protocol.dtypes import DType
from identic.protocol.errors import Unsound
from identic.protocol.ops import TABLE
from identic.protocol.ops.base import Call
from identic.protocol.program.types import CONTEXT_TYPE, Attribute
from identic.protocol.tensors import TensorType

GOLDEN: Final = "09b116d0f9db1f4c72ec907da87f46661d71157d69204779de39228a3fe27817"


def cases() -> list[tuple[Call, list[Array]]]:
    """The operators of the self-test with their operands."""
    return [
        _case("matmul", [_numbers(0, (3, 700)), _numbers(1, (700, 5))]),
        *(_case(name, [_numbers(2, (257,))]) for name in ("exp", "tanh", "erf", "rsqrt")),
        _case("log", [np.abs(_numbers(3, (257,)))]),
        _case("div", [_numbers(4, (129,)), _numbers(5, (129,))]),
        _case("sum_last", [_numbers(6, (2, 300))]),
        _case("sum_first", [_numbers(7, (300, 3))]),
        _case("amax", [_numbers(8, (5, 33))]),
        _random(),
    ]


def _numbers(stream: int, shape: tuple[int, ...]) -> Array:
    """Float32 numbers of many magnitudes, positive and negative, made of exact integers."""
    count = int(np.prod(shape))
    state = (np.arange(count, dtype=np.uint64) + np.uint64(stream * 1_000_003 + 1)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    mixed = (state ^ (state >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    top = (mixed >> np.uint64(32)).astype(np.uint32)
    # Any sign and mantissa; exponents between 2**-12 and 2**3.
    exponent = np.uint32(115) + (top >> np.uint32(23)) % np.uint32(16)
    words = (top & np.uint32(0x807FFFFF)) | (exponent << np.uint32(23))
    return words.view(np.float32).reshape(shape)


def _case(name: str, inputs: list[Array]) -> tuple[Call, list[Array]]:
    types = tuple(TensorType.of(DType.FLOAT32, x.shape) for x in inputs)
    return TABLE[name].call(types, ()), inputs


def _random() -> tuple[Call, list[Array]]:
    attributes = (Attribute("shape", (301,)), Attribute("stream", (7,)))
    context = np.array([1, 2, 3, 4, 5, 6], dtype=np.int64)
    return TABLE["random_uniform"].call((CONTEXT_TYPE,), attributes), [context]


def digest(backend: Runs) -> str:
    """SHA-256 over the bytes of every result."""
    total = hashlib.sha256()
    for call, inputs in cases():
        total.update(np.ascontiguousarray(backend.run(call, inputs)).tobytes())
    return total.hexdigest()


def check_bits(backend: Runs) -> None:
    """Refuse to compute with kernels that do not give the known bits.

    Raises:
        Unsound: they give others.
    """
    # EXE-20: a machine that does not give the known bits computes for nobody.
    if digest(backend) != GOLDEN:
        raise Unsound(
            "this machine does not give the known bits of the self-test",
            remedy="run `identic doctor`; report processor and compiler",
        )


def check_device(device: Backend, cpu: Backend, name: str) -> None:
    """Refuse a device that does not give the known bits.

    Args:
        device: its operators.
        cpu: what runs the small program for comparison; sound itself.
        name: of the device.

    Raises:
        DeviceFault: an operator or the program gives other bits, or the device fails.
    """
    # EXE-22: every operator gives its golden vectors on the device.
    wrong = list(vectors.differing(device))
    if wrong:
        raise _fault(name, f"gives wrong bits for {', '.join(wrong)}")
    # EXE-22: a small program comes to the same root on the device and on the CPU.
    if sample.root(device) != sample.root(cpu):
        raise _fault(name, "comes to another state than the CPU in a small program")


def check_device_again(device: Backend, name: str) -> None:
    """Refuse to go on with a device that gave the known bits once and does not now.

    Raises:
        DeviceFault: it gives others, or fails.
    """
    # EXE-23: a device that begins to give other bits computes for nobody.
    if digest(device) != GOLDEN:
        raise _fault(name, "gives other bits than it did before")


def _fault(name: str, what: str) -> DeviceFault:
    return DeviceFault(
        f"{name} {what}",
        remedy="run `identic doctor`, look for errors of its memory, or set device to cpu",
    )
