"""What computes the operators, by name: ``auto``, ``cpu``, ``cuda``, ``cuda:1``."""

from __future__ import annotations

import re
from typing import Final

from identic.protocol.errors import LocalError

AUTO: Final = "auto"
"""The first CUDA device if it is sound and has room, else the CPU."""
CPU: Final = "cpu"
CUDA: Final = "cuda"
"""The first CUDA device, the same as ``cuda:0``."""

_NAME: Final = re.compile(r"auto|cpu|cuda(?::(\d{1,2}))?")


def checked(name: str) -> str:
    """The name itself.

    Raises:
        LocalError: it is no name of a device.
    """
    if _NAME.fullmatch(name) is None:
        raise LocalError(
            f"there is no device {name!r}", remedy="take auto, cpu, cuda, or cuda:1 and the like"
        )
    return name


def number(name: str) -> int | None:
    """Number of the CUDA device that a name asks for, ``auto`` too; nothing for the CPU.

    Raises:
        LocalError: it is no name of a device.
    """
    if checked(name) == CPU:
        return None
    return int(name.partition(":")[2] or 0)
