"""Floats that arithmetic finds hard, and comparisons of bits."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import Array
from tests.cuda.shim.device import ShimDevice

HARD = (0.0, -0.0, 1e-45, -1e-45, 3e-39, -2e-38, 1e-20, -1e-25, 3e38)
"""Zeros, subnormals, products that vanish, and a sum's overflow."""

ENDLESS = (np.inf, -np.inf, np.nan)

SPECIAL_NANS = (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF)
"""Patterns of NaNs: the rules' own, the other sign, signalling, full."""


def floats(rng: np.random.Generator, shape: Sequence[int], *, endless: int = 0) -> Array:
    """Random numbers of many sizes, some of ``HARD``, and ``endless`` places not finite."""
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 7, shape))).astype(np.float32)
    flat = x.reshape(-1)
    if flat.size:
        for value in HARD:
            flat[rng.random(flat.size) < 0.03] = value
        for at in rng.integers(0, flat.size, endless):
            flat[at] = rng.choice(ENDLESS)
        for at in rng.integers(0, flat.size, endless):
            flat.view(np.uint32)[at] = rng.choice(SPECIAL_NANS)
    return x


def same_bits(found: Any, want: Array) -> bool:
    """Whether two arrays hold the same bytes in order."""
    return np.asarray(found).tobytes() == want.tobytes()


def same_as_cpu(
    twin: ModuleType, device: ShimDevice, name: str, out: Array, *arguments: Any
) -> None:
    """Call a launcher and its CPU twin; the bytes of both results are equal."""
    want = out.copy()
    getattr(_native, name)(want, *arguments)
    made = device.empty(out.shape, out.dtype)
    moved = [device.upload(a) if isinstance(a, np.ndarray) else a for a in arguments]
    getattr(twin, name)(device, made, *moved)
    assert same_bits(device.download(made), want)
