"""Compiled kernels on the disk, beside CuPy's own: they save a start some minutes."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

SEAL = hashlib.sha256().digest_size
"""Bytes of the digest that stands before the code."""


def folder() -> Path:
    """Where CuPy keeps what it compiles: ``CUPY_CACHE_DIR``, or below the home folder."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache").expanduser()


def name(*words: str) -> str:
    """The name of what is made from a text, by options, by a version of the compiler."""
    lengths = "".join(f"{len(word)},{word}" for word in words)
    return f"identic-{hashlib.sha256(lengths.encode()).hexdigest()}"


def read(entry: str) -> bytes | None:
    """The code, if it is there and whole."""
    with suppress(OSError, RuntimeError):  # no file, no home: it is compiled again
        whole = (folder() / entry).read_bytes()
        seal, code = whole[:SEAL], whole[SEAL:]
        if seal == hashlib.sha256(code).digest():
            return code
    return None


def write(entry: str, code: bytes) -> None:
    """Keep the code, at once and whole; where nothing can be written it is not kept."""
    with suppress(OSError, RuntimeError):
        folder().mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder(), prefix="identic-", delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(file.name).replace(folder() / entry)
