"""What the figures were measured on: processor, versions, and the peak rate of multiply-adds."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from identic.kernels import _native

_FLAGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "avx512": (64, ("-mavx512f", "-mfma", "-mprefer-vector-width=512")),
    "avx2": (32, ("-mavx2", "-mfma")),
    "neon": (16, ()),
}
"""Vector length in bytes and compiler options of each path."""

ROUNDS = 2_000_000
"""Rounds of a timing of the peak: some 10 ms."""


def describe() -> dict[str, str]:
    """The machine in words."""
    return {
        "processor": f"{_model()}, {os.cpu_count()} cores",
        "vector path": f"{_native.path()} (of {', '.join(_native.paths())})",
        "SHA instructions": "yes" if _native.has_sha_instructions() else "no",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "versions": f"identic {version('identic')}, torch {torch.__version__}, "
        f"numpy {np.__version__}",
        "torch's vectors": torch.backends.cpu.get_cpu_capability(),
        "load before": f"{os.getloadavg()[0]:.2f} processes, over the last minute",
    }


def _model() -> str:
    """Name and numbers of the processor."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in info.read_text().partition("\n\n")[0].splitlines())
    found = {key.strip(): value.strip() for key, _, value in lines}
    name = found.get("model name", platform.machine())
    numbers = [f"{k} {found[k]}" for k in ("cpu family", "model", "stepping") if k in found]
    return f"{name} ({', '.join(numbers)})" if numbers else name


class Peak:
    """The rate at which this machine's vector units multiply and add, on a vector path.

    Args:
        path: the vector path of the kernels that are compared with it.
        threads: threads that work at once.
    """

    def __init__(self, path: str, threads: int) -> None:
        self._threads = threads
        self._library = _build(path)

    def rate(self) -> float | None:
        """Multiply-adds a second, the best of several looks; ``None`` without a compiler."""
        library = self._library
        if library is None:
            return None
        rounds = library.fma_rounds
        rounds.restype = ctypes.c_double
        rounds.argtypes = (ctypes.c_long, ctypes.POINTER(ctypes.c_float))

        def look(_: int) -> float:
            # The thread's own time: what else runs here does not lower the peak.
            start = time.thread_time()
            done = float(rounds(ROUNDS, ctypes.byref(ctypes.c_float())))
            return done / (time.thread_time() - start)

        with ThreadPoolExecutor(self._threads) as pool:
            looks = [sum(pool.map(look, range(self._threads))) for _ in range(7)]
        return max(looks)


def _build(path: str) -> ctypes.CDLL | None:
    """The compiled loop, or ``None`` where there is no compiler or nothing to compare with."""
    compiler = shutil.which("cc")
    if compiler is None or path not in _FLAGS:
        return None
    width, flags = _FLAGS[path]
    source = Path(__file__).with_name("fma_peak.c")
    options = ["-O2", "-ffp-contract=fast", "-shared", "-fPIC", *flags, f"-DWIDTH={width}"]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "fma_peak.so"
        done = subprocess.run(
            [compiler, *options, str(source), "-o", str(target)], check=False, capture_output=True
        )
        if done.returncode:
            sys.stderr.write(done.stderr.decode(errors="replace"))
            return None
        return ctypes.CDLL(str(target))
