"""NVRTC by its own C interface: CUDA text to PTX or machine code, without a driver or a GPU."""

from __future__ import annotations

import ctypes
import site
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any


class CompileError(Exception):
    """The compiler refused a text; its log is the message."""


def to_ptx(text: str, architecture: int, options: Sequence[str]) -> str:
    """PTX for a virtual architecture.

    Raises:
        CompileError: the text does not compile.
    """
    found = _compile(text, f"compute_{architecture}", options, "PTX")
    return found.rstrip(b"\0").decode()


def to_machine_code(text: str, architecture: int, options: Sequence[str]) -> bytes:
    """A cubin for an architecture.

    Raises:
        CompileError: the text does not compile.
    """
    return _compile(text, f"sm_{architecture}", options, "CUBIN")


def to_report(text: str, architecture: int, options: Sequence[str]) -> str:
    """What the compiler says about registers and spills, entry by entry.

    Raises:
        CompileError: the text does not compile.
    """
    found = _compile(text, f"sm_{architecture}", (*options, "--ptxas-options=-v"), "ProgramLog")
    return found.rstrip(b"\0").decode()


def _compile(text: str, target: str, options: Sequence[str], kind: str) -> bytes:
    nvrtc = _library()
    program = ctypes.c_void_p()
    source = ctypes.c_char_p(text.encode())
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None))
    try:
        words = [
            o.encode() for o in (*options, "--disable-warnings", f"--gpu-architecture={target}")
        ]
        array = (ctypes.c_char_p * len(words))(*words)
        if nvrtc.nvrtcCompileProgram(program, len(words), array):
            raise CompileError(_text(nvrtc, "ProgramLog", program).decode(errors="replace"))
        return _text(nvrtc, kind, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: Any, kind: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(nvrtc, f"nvrtcGet{kind}")(program, buffer))
    return buffer.raw


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"NVRTC answers with status {status}")


@cache
def _library() -> Any:
    for folder in site.getsitepackages():
        found = sorted(Path(folder, "nvidia").glob("*/lib/libnvrtc.so.*"))
        if found:
            return ctypes.CDLL(str(found[0]))
    raise RuntimeError("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
