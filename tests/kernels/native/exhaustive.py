"""Builds and runs ``exhaustive.cpp``: every operand of every rounded function (NUM-7).

``python -m tests.kernels.native.exhaustive [function [step]]``. All functions take about an
hour of one core; with a step, every step-th block of operands. Needs a C++ compiler with
libquadmath (GCC on x86-64).
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
OPTIONS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-pthread", f"-I{ROOT / 'kernels'}"]
VECTORS = {
    "_avx512.cpp": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mavx2"],
    "_avx2.cpp": ["-mavx2", "-mfma"],
    "_neon.cpp": [],
}
OTHER_MACHINE = "_neon.cpp" if platform.machine() == "x86_64" else ("_avx512.cpp", "_avx2.cpp")


def sources() -> list[Path]:
    """The checker and the kernels it calls."""
    paths = sorted((ROOT / "kernels/native").glob("path*.cpp"))
    return [
        ROOT / "tests/kernels/native/exhaustive.cpp",
        ROOT / "kernels/native/pool.cpp",
        ROOT / "kernels/elementwise/cpu.cpp",
        ROOT / "kernels/functions/cpu_circular.cpp",
        *(p for p in paths if not p.name.endswith(OTHER_MACHINE)),
    ]


def build(folder: Path) -> Path:
    """Compile into ``folder``; returns the program."""
    objects = []
    for source in sources():
        extra = next((o for end, o in VECTORS.items() if source.name.endswith(end)), [])
        target = folder / f"{source.parent.name}_{source.stem}.o"
        standard = "-std=gnu++17" if source.stem == "exhaustive" else "-std=c++17"
        command = ["g++", standard, *OPTIONS, *extra, "-c", str(source), "-o", str(target)]
        subprocess.run(command, check=True)
        objects.append(str(target))
    program = folder / "exhaustive"
    subprocess.run(["g++", *objects, "-lquadmath", "-pthread", "-o", str(program)], check=True)
    return program


def main(words: Sequence[str]) -> int:
    """Build, run with ``words``, and return the program's status."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([str(build(Path(folder))), *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
