"""What is known about the CUDA devices of a machine before anything is computed on them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """A device.

    Attributes:
        name: ``cuda:0`` and the like.
        model: in the driver's words.
        compute_capability: 90 for sm_90.
        memory_bytes: all of its memory.
        free_bytes: what nobody uses.
    """

    name: str
    model: str
    compute_capability: int
    memory_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class Survey:
    """What CuPy finds.

    Attributes:
        cupy: its version.
        runtime: version of CUDA that it brings, such as 12.9.
        driver: the latest version of CUDA that the driver serves.
        devices: in the order of their numbers.
    """

    cupy: str
    runtime: str
    driver: str
    devices: tuple[Found, ...]
