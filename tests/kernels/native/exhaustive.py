"""Every operand of every rounded function on every vector path (NUM-7): ``make exhaustive``.

Builds ``exhaustive.cpp`` with the kernels and runs it over all 2^32 operands of each function, in
pieces that several processes share. What was checked stands in ``out/exhaustive.json``: an
interrupted run goes on where it was, and one whose kernels, compiler or paths have changed
begins again. Takes an hour or two of one core, most of it for the path that emulates AVX-512.
Needs a C++ compiler with libquadmath (GCC on x86-64).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
FUNCTIONS = ("exp", "log", "tanh", "erf", "sigmoid", "sin", "cos")
BLOCKS = 1 << 20
"""Blocks of 4,096 operands."""

PIECES = 256
"""Pieces that the operands of a function are checked in."""

OPTIONS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-pthread", f"-I{ROOT / 'kernels'}"]
VECTORS = {
    "_avx512.cpp": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mavx2"],
    "_avx2.cpp": ["-mavx2", "-mfma"],
    "_neon.cpp": [],
}
OTHER_MACHINE = "_neon.cpp" if platform.machine() == "x86_64" else ("_avx512.cpp", "_avx2.cpp")


# ---- the program ------------------------------------------------------------------------------


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


def identity() -> str:
    """A digest of everything that the results depend on: every source, compiler and machine."""
    told = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    total = hashlib.sha256(f"{told}{platform.machine()}{OPTIONS[:-1]}{VECTORS}".encode())
    headers = (ROOT / "kernels").rglob("*.h")
    for path in sorted({*sources(), *headers}):
        total.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return total.hexdigest()


def build(folder: Path) -> Path:
    """Compile into ``folder``; returns the program."""
    folder.mkdir(parents=True, exist_ok=True)
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


# ---- what was checked -------------------------------------------------------------------------


@dataclass
class Record:
    """What was checked so far, kept in a file.

    Attributes:
        identity: of the kernels that were checked.
        done: pieces of each function.
        hard: operands of each function that were settled in 113 bits.
        wrong: lines about results that were wrong.
    """

    identity: str
    done: dict[str, list[int]] = field(default_factory=dict)
    hard: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path, wanted: str) -> Record:
        """The record of these kernels, or a new one."""
        with suppress(FileNotFoundError, ValueError, TypeError):
            found = cls(**json.loads(path.read_text(encoding="utf-8")))
            if found.identity == wanted:
                return found
        return cls(wanted)

    def write(self, path: Path) -> None:
        """Replace the file as a whole."""
        part = path.with_suffix(".part")
        part.write_text(json.dumps(vars(self)), encoding="utf-8")
        part.replace(path)

    def add(self, function: str, piece: int, output: str) -> None:
        """Take over what the program said about a piece."""
        *lines, last = output.splitlines()
        _, hard, *wrong = (int(n) for n in last.split())
        self.done[function] = sorted({*self.done.get(function, []), piece})
        self.hard[function] = self.hard.get(function, 0) + hard
        self.wrong += lines if any(wrong) else []

    def left(self, functions: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Pieces that are still to be checked."""
        for function in functions:
            known = set(self.done.get(function, []))
            yield from ((function, piece) for piece in range(PIECES) if piece not in known)


Check = Callable[[str, int], str]
"""What the program says about a piece of a function."""


def checker(program: Path) -> Check:
    """Run the program on a piece."""
    size = BLOCKS // PIECES

    def check(function: str, piece: int) -> str:
        command = [str(program), function, str(piece * size), str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    return check


def sweep(record: Record, path: Path, functions: Sequence[str], check: Check, jobs: int) -> None:
    """Check what is left, and write the record after each piece."""
    left = list(record.left(functions))
    whole, start = len(functions) * PIECES, time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(check, *piece): piece for piece in left}
        try:
            # In the order they were begun, so that what is known at an interruption is kept.
            for number, (future, (function, piece)) in enumerate(running.items(), start=1):
                record.add(function, piece, future.result())
                record.write(path)
                rest = (time.monotonic() - start) / number * (len(left) - number)
                done = whole - len(left) + number
                _say(
                    f"{function}: piece {piece + 1} of {PIECES}; in all {done} of {whole}, "
                    f"{len(record.wrong)} wrong, {rest / 60:.0f} min left"
                )
        finally:
            for future in running:
                future.cancel()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str], check: Check | None = None) -> int:
    """Check what is left; 1 when a result was wrong.

    Args:
        arguments: of the command line.
        check: what checks a piece; the program that is built, if there is none.
    """
    parser = argparse.ArgumentParser(prog="make exhaustive", description=__doc__)
    parser.add_argument("--only", action="append", choices=FUNCTIONS, metavar="FUNCTION")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--out", type=Path, default=ROOT / "out", metavar="DIR")
    options = parser.parse_args(arguments)
    functions = options.only or FUNCTIONS
    path = options.out / "exhaustive.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = Record.read(path, identity())
    if any(record.left(functions)):
        found = check or checker(build(options.out / "exhaustive"))
        sweep(record, path, functions, found, options.jobs)
    for function in functions:
        _say(f"{function}: 2^32 operands, {record.hard.get(function, 0):,} settled in 113 bits")
    _say("\n".join([*record.wrong, f"{len(record.wrong)} wrong results"]))
    return int(bool(record.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
