"""Every kernel there is: the files, and the variants their launchers name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from identic.kernels.cuda import source
from identic.kernels.cuda.device import Kernel

KERNELS = Path(__file__).parents[2] / "kernels"


def files() -> list[str]:
    """The CUDA files below ``kernels/``."""
    return sorted(p.relative_to(KERNELS).as_posix() for p in KERNELS.glob("*/*.cu"))


@cache
def texts() -> dict[str, str]:
    """By a name for tests, every text that is compiled: a file, and each set of its macros."""
    found = {file: source.file_text(file) for file in files()}
    for kernel in launched():
        text = source.text(kernel)
        if text not in found.values():
            macros = ",".join(f"{name}={value}" for name, value in kernel.defines)
            found[f"{kernel.file}[{macros}]"] = text
    return found


def launched() -> list[Kernel]:
    """Kernels that the launchers' modules hold, in constants and tables of constants."""
    found: dict[Kernel, None] = {}
    for path in sorted(KERNELS.glob("*/cuda*.py")):
        module = importlib.import_module(f"identic.kernels.{path.parent.name}.{path.stem}")
        for value in vars(module).values():
            found.update(dict.fromkeys(_kernels(value)))
    return list(found)


def _kernels(value: Any) -> Iterator[Kernel]:
    if isinstance(value, Kernel):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _kernels(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _kernels(inner)
