"""Runs a kernel on every vector path with several thread counts and compares bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import Array

SPECIAL = np.array(
    [
        0x00000000,
        0x80000000,
        0x00000001,
        0x807FFFFF,
        0x00800000,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0xFFC12345,
        0x7F800001,
        0x3F800000,
        0xBF800000,
    ],
    dtype="<u4",
).view("<f4")
"""Zeros, subnormals, the largest numbers, infinities, NaNs of several payloads, ones."""

THREADS = (1, 2, 5)


def floats(rng: np.random.Generator, shape: tuple[int, ...], *, special: float = 0.02) -> Array:
    """Numbers of many magnitudes; a share ``special`` of them from ``SPECIAL``."""
    values = rng.standard_normal(shape, dtype=np.float32)
    scale = np.exp2(rng.integers(-12, 12, shape)).astype(np.float32)
    return np.where(rng.random(shape) < special, rng.choice(SPECIAL, shape), values * scale)


def everywhere(run: Callable[[], Array]) -> Array:
    """The result of ``run``, which must be the same on every path with every thread count."""
    try:
        _native.set_path("scalar")
        _native.set_threads(1)
        want = run()
        for path in _native.paths():
            _native.set_path(path)
            for threads in THREADS:
                _native.set_threads(threads)
                got = run()
                assert got.tobytes() == want.tobytes(), f"{path} with {threads} threads"
        return want
    finally:
        _native.set_path("auto")
        _native.set_threads(1)
