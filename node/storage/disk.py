"""Faults of the disk in words, and the lock that keeps a second process out of a folder."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Self

from identic.protocol.errors import LocalError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def free_bytes(path: Path) -> int:
    """Return how much of the file system of ``path`` is free, in bytes; 0 where unknown."""
    try:
        return shutil.disk_usage(path if path.is_dir() else path.parent).free
    except OSError:
        return 0


def disk_full(path: Path) -> LocalError:
    """The error for a disk, or a quota, without room for ``path``."""
    return LocalError(
        f"no room left to write {path} ({free_bytes(path)} bytes free on its disk)",
        remedy="free some space or move data_dir to a larger disk, then start again",
    )


def disk_error(path: Path, error: OSError) -> LocalError:
    """The error for whatever the operating system said about ``path``."""
    if error.errno in _FULL:
        return disk_full(path)
    return LocalError(
        f"cannot use {path}: {error.strerror or error}",
        remedy="check that the disk is healthy and that this user may write there",
    )


class FolderLock:
    """An exclusive claim of one process on a folder; ends with the process at the latest."""

    def __init__(self, folder: Path, handle: int) -> None:
        self.folder = folder
        self._handle: int | None = handle

    @classmethod
    def take(cls, folder: Path) -> Self:
        """Claim ``folder``, made if missing.

        Raises:
            LocalError: another process has it, or the folder cannot be written.
        """
        path = folder / "lock"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise disk_error(path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(handle, 20, 0).decode("ascii", errors="replace").strip()
            os.close(handle)
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise disk_error(path, error) from error
            raise LocalError(
                f"{folder} is in use by process {holder or 'unknown'}",
                remedy="stop that process first, or give this node a data_dir of its own",
            ) from error
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(handle)
            raise disk_error(path, error) from error
        return cls(folder, handle)

    def release(self) -> None:
        """Give the folder back; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
