"""The text of a kernel for the compiler: macros, the file with its includes, generated code."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from identic.kernels.cuda.device import Kernel

OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--device-int128",
)
"""Options of every compilation, and besides the architecture all there are. Kernels spell their
arithmetic by intrinsics that round to nearest: of these options only ``--ftz`` reaches them, and
the others guard what a slip of the pen would write."""

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"[^\n]*$', re.MULTILINE)


def text(kernel: Kernel) -> str:
    """One text without quoted includes; equal texts are equal modules."""
    macros = "".join(f"#define {name} {value}\n" for name, value in kernel.defines)
    return macros + file_text(kernel.file) + kernel.body


@cache
def file_text(file: str) -> str:
    """A file below ``kernels/`` with each quoted include put in its place, once."""
    return _expanded(file, set())


def _expanded(file: str, seen: set[str]) -> str:
    seen.add(file)
    path = resources.files("identic.kernels").joinpath(*file.split("/"))

    def put(found: re.Match[str]) -> str:
        name = found.group(1)
        return "" if name in seen else _expanded(name, seen)

    return _INCLUDE.sub(put, path.read_text(encoding="utf-8"))
