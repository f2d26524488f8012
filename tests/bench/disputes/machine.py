"""What disputes were measured on; without torch, unlike the benchmarks of operators."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np
import psutil

from identic.kernels import _native

CHANGING = ("load before",)
"""Facts that differ from run to run on one machine."""


def describe(threads: int) -> dict[str, str]:
    """The machine in words."""
    memory = psutil.virtual_memory().total / 1e9
    return {
        "processor": f"{_model()}, {os.cpu_count()} cores, {memory:.0f} GB of memory",
        "each party": f"{threads} thread{'s' if threads > 1 else ''}, {_native.path()}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "versions": f"identic {version('identic')}, numpy {np.__version__}",
        "load before": f"{os.getloadavg()[0]:.2f} processes, over the last minute",
    }


def same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two descriptions are of one machine and one software."""
    return all(one.get(name) == other.get(name) for name in other if name not in CHANGING)


def _model() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in info.read_text().partition("\n\n")[0].splitlines())
    found = {key.strip(): value.strip() for key, _, value in lines}
    name = found.get("model name", platform.machine())
    numbers = [f"{k} {found[k]}" for k in ("cpu family", "model") if k in found]
    return f"{name} ({', '.join(numbers)})" if numbers else name
