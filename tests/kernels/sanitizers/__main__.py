"""``make check-sanitizers``: hostile programs and every kernel under the sanitizers.

Builds the native module so that it stops at every access outside an array and at undefined
behaviour (``python -m tests.kernels.sanitizers build`` does no more), shows that it does stop at
one, and runs the tests named below with that module.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kernels.sanitizers import build

TESTS = (
    "tests/kernels/test_mutations.py",
    "tests/kernels/test_cpu.py",
    "tests/kernels/test_executor.py",
    "tests/kernels/test_layouts.py",
)
"""Tests that call native functions with programs and arrays of every kind."""

PLANTED = """
import numpy as np
import tests.kernels.sanitizers.plugin
from identic.kernels import _native
x = np.ones(1 << 12, np.float32)
longer = np.lib.stride_tricks.as_strided(x, ((1 << 12) + 1,), (4,))
_native.unary("neg", np.empty(len(longer), np.float32), longer)
"""
"""A kernel is handed an array that claims one element more than there is."""


def run(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Exit code of a Python process with the sanitizers, and what they found."""
    environment = build.environment(folder / "found")
    done = subprocess.run([sys.executable, *command], cwd=build.ROOT, env=environment, check=False)
    reports = (path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()))
    return done.returncode, "\n".join(reports)


def main(arguments: Sequence[str]) -> int:
    """Build and test; 1 when a wrong access is missed or found, or as pytest ends."""
    build.configure_and_compile()
    if arguments == ["build"]:
        return 0
    with TemporaryDirectory() as folder:
        code, found = run(["-c", PLANTED], Path(folder))
    if code != build.EXIT or "heap-buffer-overflow" not in found:
        sys.stderr.write(f"a planted read beyond an array was not caught: exit {code}\n{found}\n")
        return 1
    sys.stdout.write("a planted read beyond an array is caught\n")
    sys.stdout.flush()
    with TemporaryDirectory() as folder:
        pytest = ["-m", "pytest", "-p", "tests.kernels.sanitizers.plugin", "-m", ""]
        code, found = run([*pytest, *TESTS, *arguments], Path(folder))
    sys.stderr.write(found)
    return code or int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
