"""Reading and writing the files that a person names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from identic.protocol.errors import LocalError

PIECE_BYTES: Final = 1 << 24
"""Bytes read at once, so that the limit alone takes no memory."""


def read(path: Path, limit: int, what: str) -> bytes:
    """The bytes of a file.

    Args:
        path: where it is.
        limit: most bytes accepted.
        what: what it should be, with its article.

    Raises:
        LocalError: it cannot be read, or is too long to be that.
    """
    try:
        with path.open("rb") as file:
            pieces, left = [], limit + 1
            while left and (piece := file.read(min(left, PIECE_BYTES))):
                pieces.append(piece)
                left -= len(piece)
    except OSError as error:
        raise LocalError(
            f"cannot read {path}: {error.strerror}", remedy=f"name the file of {what}"
        ) from error
    if not left:
        raise LocalError(f"{path} is too long to be {what}", remedy="name another file")
    return b"".join(pieces)


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, with its folder.

    Raises:
        LocalError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise LocalError(
            f"cannot write {path}: {error.strerror}", remedy="choose another folder with --into"
        ) from error
