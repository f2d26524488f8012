"""``make test-arm``: the vector suite on AArch64 code, under an emulator.

Compiles the kernels and their binding code with Debian's cross compiler into a program that
answers calls (``server.cpp``, ``serve.cpp``), and runs the tests named below with that program,
under qemu, in the place of the native module. ``python -m tests.kernels.arm build`` only compiles,
for which no package of Python's is needed; ``... vectors`` only runs the golden vectors.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
PACKAGES = {COMPILER: "g++-aarch64-linux-gnu", EMULATOR: "qemu-user"}
OPTIONS = (
    *("-std=c++17", "-O2", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno"),
    *("-pthread", "-Wall", "-Wextra", f"-I{ROOT / 'kernels'}", f"-I{HERE}"),
)
FOLDER = ROOT / "build" / "arm"
SERVER = FOLDER / "server"

TESTS = (
    "tests/kernels/test_vectors.py",
    *(
        f"tests/kernels/native/test_{name}.py"
        for name in ("elementwise", "functions", "matmul", "reduce", "movement", "sorting")
    ),
    *(f"tests/kernels/native/test_{name}.py" for name in ("conv", "windows", "chain", "hashing")),
)
"""Tests that call native functions; those of a name that is not there are left out."""

LONG = (
    "tests/kernels/test_vectors.py::test_num_7__functions_over_the_sample",
    "tests/kernels/native/test_reduce.py::test_num_12__blocks_of_blocks",
)
"""Tests that take minutes under an emulator; each has a shorter one beside it."""


VECTORS = (
    "tests/kernels/test_vectors.py::test_op_8__both_backends_give_the_vectors",
    "tests/kernels/native/test_functions.py",
)
"""The golden vectors of every operator, and the operands of functions that are hard to round."""


def sources() -> list[Path]:
    """Everything that is not for another architecture."""
    kernels = [*ROOT.glob("kernels/native/*.cpp"), *ROOT.glob("kernels/*/cpu*.cpp")]
    kept = {path for path in kernels if "_avx" not in path.name}
    return [*sorted(kept), HERE / "server.cpp", HERE / "serve.cpp"]


def build(compiler: str = COMPILER, extra: Sequence[str] = ("-static",)) -> Path:
    """Compile what has changed; returns the program."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    headers = [*ROOT.glob("kernels/**/*.h"), *HERE.glob("**/*.h")]
    newest = max(path.stat().st_mtime for path in headers)

    def compile_one(source: Path) -> str:
        target = FOLDER / f"{source.parent.name}_{source.stem}.o"
        changed = max(newest, source.stat().st_mtime)
        if not target.exists() or target.stat().st_mtime < changed:
            command = [compiler, *OPTIONS, "-c", str(source), "-o", str(target)]
            subprocess.run(command, check=True)
        return str(target)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        objects = list(pool.map(compile_one, sources()))
    subprocess.run([compiler, *extra, *objects, "-pthread", "-o", str(SERVER)], check=True)
    return SERVER


def missing() -> list[str]:
    """Debian packages that are not installed."""
    return [package for tool, package in PACKAGES.items() if shutil.which(tool) is None]


def main(arguments: Sequence[str]) -> int:
    """Build and test; 1 when a test fails or a tool is missing."""
    packages = missing()
    if packages:
        sys.stderr.write(
            f"the tests for ARM need {' and '.join(packages)}; on Debian:\n"
            f"  apt-get install {' '.join(packages)}\n"
        )
        return 1
    server = build()
    if arguments == ["build"]:
        return 0
    tests = [name for name in TESTS if (ROOT / name).exists()]
    if arguments[:1] == ["vectors"]:
        tests, arguments = list(VECTORS), arguments[1:]
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "tests.kernels.arm.plugin"]
    command += [f"--deselect={name}" for name in LONG]
    environment = {**os.environ, "IDENTIC_REMOTE": f"{EMULATOR} {server}"}
    return subprocess.run(
        [*command, *tests, *arguments], cwd=ROOT, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
