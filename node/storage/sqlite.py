"""The storage in one SQLite file, for a node of its own.

Write-ahead log with ``synchronous = FULL``: a transaction that was committed survives a killed
process and a power cut. Each entry is kept with its SHA-256 and checked when read, so that a
damaged file is noticed instead of replayed. One process has the folder at a time.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from identic.node.storage.base import Appended
from identic.node.storage.disk import FolderLock, disk_full
from identic.protocol.errors import LocalError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Digest

FILE: Final = "state.sqlite"
SCHEMA_VERSION: Final = 1

_SCHEMA: Final = """
CREATE TABLE entry (
    position INTEGER PRIMARY KEY,
    key      BLOB NOT NULL UNIQUE,
    digest   BLOB NOT NULL,
    body     BLOB NOT NULL
);
CREATE TABLE setting (
    space TEXT NOT NULL,
    name  BLOB NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (space, name)
) WITHOUT ROWID;
"""


class SqliteStorage:
    """A ``Storage`` under one folder. See ``Storage`` for its methods."""

    def __init__(self, folder: Path) -> None:
        """Open the storage, made if missing.

        Raises:
            LocalError: another process has the folder, or the file cannot be used.
        """
        self.path = folder / FILE
        self._folder_lock = FolderLock.take(folder)
        self._lock = threading.Lock()
        try:
            with self._faults():
                self._db = sqlite3.connect(
                    self.path, isolation_level=None, check_same_thread=False, timeout=5
                )
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._prepare()
        except LocalError:
            self._folder_lock.release()
            raise

    def _prepare(self) -> None:
        """Make the tables in a new file, or check the version of an old one."""
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._db.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;")
        elif version != SCHEMA_VERSION:
            raise LocalError(
                f"{self.path} has version {version}, this software writes {SCHEMA_VERSION}",
                remedy="use the software that wrote it, or start with an empty data_dir",
            )

    def append(self, entry: bytes, key: Digest) -> Appended:
        """Append an entry, unless one with this key is there."""
        with self._lock, self._faults(), self._transaction():
            # MSG-3: a message has one place in the log, however often it is sent.
            known = self._db.execute(
                "SELECT position FROM entry WHERE key = ?", (bytes(key),)
            ).fetchone()
            if known is not None:
                return Appended(int(known[0]), new=False)
            index = self._size()
            self._db.execute(
                "INSERT INTO entry VALUES (?, ?, ?, ?)",
                (index, bytes(key), bytes(sha256(entry)), entry),
            )
        return Appended(index, new=True)

    def find(self, key: Digest) -> int | None:
        """Return the index of the entry with a key."""
        with self._lock, self._faults():
            row = self._db.execute(
                "SELECT position FROM entry WHERE key = ?", (bytes(key),)
            ).fetchone()
        return None if row is None else int(row[0])

    def read(self, start: int, limit: int) -> Sequence[bytes]:
        """Return up to ``limit`` entries from index ``start`` on, in order."""
        with self._lock, self._faults():
            rows = self._db.execute(
                "SELECT position, digest, body FROM entry WHERE position >= ? "
                "ORDER BY position LIMIT ?",
                (start, limit),
            ).fetchall()
        for wanted, (position, digest, body) in enumerate(rows, start):
            if position != wanted or sha256(body) != digest:
                raise LocalError(
                    f"{self.path} is damaged at entry {wanted}",
                    remedy="restore data_dir from a backup; a new log cannot continue this one",
                )
        return [row[2] for row in rows]

    def size(self) -> int:
        """Return the number of entries."""
        with self._lock, self._faults():
            return self._size()

    def _size(self) -> int:
        row = self._db.execute("SELECT MAX(position) FROM entry").fetchone()
        return 0 if row[0] is None else int(row[0]) + 1

    def get(self, space: str, name: bytes) -> bytes | None:
        """Return the value of a name in a space."""
        with self._lock, self._faults():
            row = self._db.execute(
                "SELECT value FROM setting WHERE space = ? AND name = ?", (space, name)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, space: str, name: bytes, value: bytes | None) -> None:
        """Set a value, or with None remove it."""
        with self._lock, self._faults(), self._transaction():
            if value is None:
                self._db.execute("DELETE FROM setting WHERE space = ? AND name = ?", (space, name))
            else:
                self._db.execute(
                    "INSERT OR REPLACE INTO setting VALUES (?, ?, ?)", (space, name, value)
                )

    def items(self, space: str) -> Sequence[tuple[bytes, bytes]]:
        """Return the names and values of a space, ordered by name."""
        with self._lock, self._faults():
            rows = self._db.execute(
                "SELECT name, value FROM setting WHERE space = ? ORDER BY name", (space,)
            ).fetchall()
        return [(bytes(name), bytes(value)) for name, value in rows]

    def close(self) -> None:
        """Let go of the files; a second call does nothing."""
        with self._lock, self._faults():
            self._db.close()
        self._folder_lock.release()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Do the statements inside as one."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # SQLite has rolled back by itself after some faults, a full disk among them.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn what SQLite says into words."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise disk_full(self.path) from error
            raise LocalError(
                f"cannot use {self.path}: {error}",
                remedy="check the disk; if the file is damaged, restore data_dir from a backup",
            ) from error
