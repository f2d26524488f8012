"""Every operand of every rounded function, on every vector path and a device: ``make exhaustive``.

Rule NUM-7. Builds ``exhaustive.cpp`` with the kernels and runs it over all 2^32 operands of each
function, in pieces that several processes share. The path ``device`` is the text of a CUDA device,
compiled for the CPU. What was checked stands in ``out/exhaustive.json``, for each function on each
path: an interrupted run goes on where it was, and a path whose kernels or compiler have changed
begins again. Two to seven minutes of one core for a function on a path; ``--only`` and ``--path``
choose. Needs a C++ compiler with libquadmath (GCC on x86-64).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from identic.kernels import _native

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
FUNCTIONS = ("exp", "log", "tanh", "erf", "sigmoid", "sin", "cos")
ONE_TEXT = ("sin", "cos")
"""Functions whose text is compiled once for all paths of the CPU: one of them stands for all."""

BLOCKS = 1 << 20
"""Blocks of 4,096 operands."""

PIECES = 256
"""Pieces that the operands of a function are checked in."""

DEVICE = "device"
OPTIONS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-pthread"]
FOLDERS = (ROOT / "kernels", ROOT)
"""Where headers are."""

_FMA = ["-mfma"] if platform.machine() == "x86_64" else []
VECTORS = {
    "_avx512.cpp": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mavx2"],
    "_avx2.cpp": ["-mavx2", "-mfma"],
    "_neon.cpp": [],
    "_device.cpp": [*_FMA, "-w"],
}
OTHER_MACHINE = "_neon.cpp" if platform.machine() == "x86_64" else ("_avx512.cpp", "_avx2.cpp")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def paths_of(function: str) -> tuple[str, ...]:
    """The paths that a function is checked on: the device's first, then this machine's."""
    paths = _native.paths()
    return (DEVICE, *(paths[:1] if function in ONE_TEXT else paths))


# ---- the program ------------------------------------------------------------------------------


def sources(path: str) -> list[Path]:
    """The checker, and what computes a path's results."""
    checker = [HERE / "exhaustive.cpp", HERE / "exhaustive_device.h"]
    if path == DEVICE:
        return [*checker, HERE / "exhaustive_device.cpp"]
    return [
        *checker,
        ROOT / "kernels/native/pool.cpp",
        ROOT / "kernels/elementwise/cpu.cpp",
        ROOT / "kernels/functions/cpu_circular.cpp",
        *(
            p
            for p in sorted((ROOT / "kernels/native").glob("path*.cpp"))
            if not p.name.endswith(OTHER_MACHINE)
        ),
    ]


def with_headers(files: Sequence[Path]) -> list[Path]:
    """Files and all headers of this repository that they include, and these, and so on."""
    known: set[Path] = set()
    left = list(files)
    while left:
        path = left.pop()
        if path in known:
            continue
        known.add(path)
        for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            left += [folder / name for folder in FOLDERS if (folder / name).exists()][:1]
    return sorted(known)


def identity(path: str) -> str:
    """A digest of everything that a path's results depend on: sources, compiler and machine."""
    told = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    total = hashlib.sha256(f"{told}{platform.machine()}{OPTIONS}{VECTORS}".encode())
    for file in with_headers(sources(path)):
        total.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return total.hexdigest()


def build(folder: Path) -> Path:
    """Compile into ``folder``; returns the program."""
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for source in sorted({*sources(DEVICE), *sources(_native.paths()[0])}):
        if source.suffix != ".cpp":
            continue
        extra = next((o for end, o in VECTORS.items() if source.name.endswith(end)), [])
        target = folder / f"{source.parent.name}_{source.stem}.o"
        standard = "-std=c++17" if source.is_relative_to(FOLDERS[0]) else "-std=gnu++17"
        options = [standard, *OPTIONS, *extra, *(f"-I{folder}" for folder in FOLDERS)]
        subprocess.run(["g++", *options, "-c", str(source), "-o", str(target)], check=True)
        objects.append(str(target))
    program = folder / "exhaustive"
    subprocess.run(["g++", *objects, "-lquadmath", "-pthread", "-o", str(program)], check=True)
    return program


# ---- what was checked -------------------------------------------------------------------------


@dataclass
class Swept:
    """What was checked of a function on a path.

    Attributes:
        identity: of the path that was checked.
        pieces: those that are done.
        hard: operands that were settled in 113 bits.
        usual: operands that a device's pairs of binary32 are made for.
        in_binary64: those of them that binary64 decided.
        wrong: lines about results that were wrong.
    """

    identity: str
    pieces: list[int] = field(default_factory=list)
    hard: int = 0
    usual: int = 0
    in_binary64: int = 0
    wrong: list[str] = field(default_factory=list)


Piece = tuple[str, int, tuple[str, ...]]
"""A function, the number of a piece, and the paths that it is to be checked on."""


class Record:
    """What was checked so far, kept in a file.

    Args:
        path: the file; what it says of paths with another identity is forgotten.
        identities: of each path.
    """

    def __init__(self, path: Path, identities: Mapping[str, str]) -> None:
        self._path = path
        self._swept: dict[str, Swept] = {}
        self._identities = identities
        with suppress(FileNotFoundError, ValueError, TypeError, AttributeError):
            stored = json.loads(path.read_text(encoding="utf-8"))
            self._swept = {name: Swept(**told) for name, told in stored.items()}

    def of(self, function: str, path: str) -> Swept:
        """What was checked of a function on a path."""
        name = f"{function} on {path}"
        found = self._swept.get(name)
        if found is None or found.identity != self._identities[path]:
            found = self._swept[name] = Swept(self._identities[path])
        return found

    def add(self, piece: Piece, output: str) -> None:
        """Take over what the program said about a piece, and replace the file as a whole."""
        *lines, last = output.splitlines()
        told = json.loads(last)
        function, number, paths = piece
        for path in paths:
            swept = self.of(function, path)
            swept.pieces = sorted({*swept.pieces, number})
            swept.hard += told["hard"]
            if path == DEVICE:
                swept.usual += told["usual"]
                swept.in_binary64 += told["in_binary64"]
            if told["wrong"][path]:
                swept.wrong += [line for line in lines if f" on {path}: " in line]
        part = self._path.with_suffix(".part")
        stored = {name: asdict(swept) for name, swept in self._swept.items()}
        part.write_text(json.dumps(stored), encoding="utf-8")
        part.replace(self._path)

    def left(self, function: str, paths: Sequence[str]) -> Iterator[Piece]:
        """Pieces that are still to be checked."""
        known = {path: set(self.of(function, path).pieces) for path in paths}
        for number in range(PIECES):
            missing = tuple(path for path in paths if number not in known[path])
            if missing:
                yield function, number, missing


Check = Callable[[Piece], str]
"""What the program says about a piece."""


def checker(program: Path) -> Check:
    """Run the program on a piece."""
    size = BLOCKS // PIECES

    def check(piece: Piece) -> str:
        function, number, paths = piece
        command = [str(program), function, str(number * size), str(size), *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    return check


def sweep(record: Record, left: Sequence[Piece], check: Check, jobs: int) -> None:
    """Check what is left, and write the record after each piece."""
    start = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(check, piece): piece for piece in left}
        try:
            # In the order they were begun, so that what is known at an interruption is kept.
            for number, (future, piece) in enumerate(running.items(), start=1):
                record.add(piece, future.result())
                rest = (time.monotonic() - start) / number * (len(left) - number)
                _say(
                    f"{piece[0]}: piece {piece[1] + 1} of {PIECES} on {', '.join(piece[2])}; "
                    f"{number} of {len(left)} pieces done, {rest / 60:.0f} min left"
                )
        finally:
            for future in running:
                future.cancel()


def summary(function: str, path: str, swept: Swept) -> str:
    """A line about a function on a path."""
    text = f"{function} on {path}: 2^32 operands, {swept.hard:,} settled in 113 bits"
    if swept.in_binary64:
        share = swept.usual // swept.in_binary64
        text += f"; binary64 decides one in {share:,} of {swept.usual:,} usual ones"
    return text


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
    known = (DEVICE, *_native.paths())
    parser.add_argument("--only", action="append", choices=FUNCTIONS, metavar="FUNCTION")
    parser.add_argument("--path", action="append", choices=known, metavar="PATH")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--out", type=Path, default=ROOT / "out", metavar="DIR")
    options = parser.parse_args(arguments)
    path = options.out / "exhaustive.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = Record(path, {name: identity(name) for name in known})
    chosen = {
        function: tuple(options.path or paths_of(function))
        for function in options.only or FUNCTIONS
    }
    left = [piece for function, paths in chosen.items() for piece in record.left(function, paths)]
    if left:
        found = check or checker(build(options.out / "exhaustive"))
        sweep(record, left, found, options.jobs)
    swept = [(f, p, record.of(f, p)) for f, paths in chosen.items() for p in paths]
    for function, name, one in swept:
        _say(summary(function, name, one))
    wrong = [line for _, _, one in swept for line in one.wrong]
    _say("\n".join([*wrong, f"{len(wrong)} wrong results"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
