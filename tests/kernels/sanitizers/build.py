"""The build with sanitizers: where it is, how it is made, and the environment that loads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "build" / "sanitizers"
EXIT = 99
"""Exit code of a process that was stopped."""


def configure_and_compile() -> None:
    """Compile what has changed.

    Raises:
        subprocess.CalledProcessError: CMake or the compiler failed.
    """
    tools = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    options = ["-DIDENTIC_SANITIZERS=ON", "-DCMAKE_BUILD_TYPE=None"]
    options.append(f"-DPython_EXECUTABLE={sys.executable}")
    configure = ["cmake", "-S", str(ROOT), "-B", str(FOLDER), "-G", "Ninja", *options]
    subprocess.run(configure, env=environment, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(FOLDER)], env=environment, check=True)


def module() -> Path:
    """The extension module.

    Raises:
        FileNotFoundError: it has not been built.
    """
    found = sorted(FOLDER.glob("_native.*.so"))
    if not found:
        raise FileNotFoundError(f"no module in {FOLDER}: run `make check-sanitizers`")
    return found[0]


def environment(reports: Path) -> dict[str, str]:
    """What a Python process needs that is to load the module.

    The runtime of the sanitizers comes before Python's own allocations, and that of C++ with
    it, for exceptions; what Python and NumPy keep until the end is no leak.

    Args:
        reports: where files of what is found begin; each process adds its number.
    """
    found = (Path(_library(name)).resolve() for name in ("libasan.so", "libstdc++.so"))
    common = f"log_path={reports}:exitcode={EXIT}"
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(map(str, found)),
        "ASAN_OPTIONS": f"{common}:detect_leaks=0",
        "UBSAN_OPTIONS": f"{common}:print_stacktrace=1",
    }


def _library(name: str) -> str:
    """Where the compiler has a library."""
    command = [os.environ.get("CXX", "g++"), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
