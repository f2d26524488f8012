"""Bytes kept under their SHA-256: programs, states, data, models, transcripts, receipts.

A blob is written to a temporary file, flushed to the disk, and given its name only when all its
bytes are there and have the digest; so a name always holds the bytes it says, also after a crash.
The digest is checked again at the first reading in each process and whenever the file changed.

* An upload that broke off stays for a day and can be continued by the same party.
* Stored and announced bytes together stay within the quota.

Spec: docs/spec/network.md (NET-7..NET-9).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

from identic.node.storage.disk import disk_error, free_bytes
from identic.protocol.errors import Code, LocalError, ProtocolError
from identic.protocol.ids import Digest, PartyId

PIECE_BYTES: Final = 1 << 19
"""Bytes in one message of a transfer, in bytes."""

MAX_PIECE_BYTES: Final = 1 << 20
"""Most bytes accepted in one message of a transfer (NET-7)."""

UNFINISHED_S: Final = 86_400
"""How long an upload that broke off is kept, in seconds."""

COUNTED_S: Final = 1.0
"""Longest age of a count of what is stored, in seconds: worker processes store and remove, too."""

MAX_BLOB_BYTES: Final = 1 << 40

OURSELVES: Final = PartyId(bytes(32))
"""Whose upload it is when bytes at hand are stored."""


@dataclass(frozen=True)
class Presence:
    """What a store has of one blob.

    Attributes:
        present: whether all of it is there.
        size: its length in bytes where present.
        received: bytes of an unfinished upload by the party that asks.
    """

    present: bool
    size: int
    received: int


class Blobs:
    """A store of blobs in a folder; safe to use from several threads.

    Attributes:
        folder: where the files lie.
        quota_bytes: most bytes held, unfinished uploads included.
    """

    def __init__(self, folder: Path, quota_bytes: int) -> None:
        """Open the store, made if missing, and drop uploads that broke off long ago.

        Raises:
            LocalError: the folder cannot be written.
        """
        self.folder = folder
        self.quota_bytes = quota_bytes
        self._incoming = folder / "incoming"
        self._lock = threading.Lock()
        self._verified: dict[Digest, tuple[int, int, int]] = {}
        self._uploads: dict[Path, Upload] = {}
        self._reserved: dict[Path, int] = {}
        try:
            self._incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._drop_old_uploads()
            self._stored, self._counted_at = 0, 0.0
            self._counted()
        except OSError as error:
            raise disk_error(folder, error) from error

    def _counted(self) -> int:
        """Bytes of all blobs, counted anew."""
        sizes = []
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        self._stored, self._counted_at = sum(sizes), time.monotonic()
        return self._stored

    @property
    def room_bytes(self) -> int:
        """Bytes that can still be stored, by the quota and by the disk; counted anew."""
        with self._lock:
            left = self.quota_bytes - self._counted() - sum(self._reserved.values())
        return max(0, min(left, free_bytes(self.folder)))

    @property
    def used_bytes(self) -> int:
        """Bytes held, unfinished uploads included; counted anew."""
        with self._lock:
            return self._counted() + sum(self._reserved.values())

    def path(self, digest: Digest) -> Path:
        """Return where a blob lies, or would."""
        name = digest.hex()
        return self.folder / name[:2] / name

    def presence(self, digest: Digest, party: PartyId) -> Presence:
        """Tell what is here of a blob."""
        try:
            return Presence(present=True, size=self.path(digest).stat().st_size, received=0)
        except FileNotFoundError:
            pass
        try:
            received = self._part(digest, party).stat().st_size
        except FileNotFoundError:
            received = 0
        return Presence(present=False, size=0, received=received)

    # ---- writing ----------------------------------------------------------------------------

    def put(self, data: bytes, party: PartyId = OURSELVES) -> Digest:
        """Store bytes at hand; return their digest.

        Raises:
            LocalError: quota or disk are full.
        """
        digest = Digest(hashlib.sha256(data).digest())
        if not self.sound(digest):
            self._part(digest, party).unlink(missing_ok=True)
            upload = self.begin(digest, len(data), 0, party)
            for at in range(0, len(data), MAX_PIECE_BYTES):
                upload.write(data[at : at + MAX_PIECE_BYTES])
            upload.commit()
        return digest

    def begin(self, digest: Digest, size: int, offset: int, party: PartyId) -> Upload:
        """Start an upload, or continue one of the same party at ``offset``.

        An upload of the same blob by the same party that is still open is superseded: its
        connection broke without this side noticing yet.

        Raises:
            ProtocolError: NET-7, the size or the offset is out of range.
            LocalError: quota or disk are full.
        """
        # NET-7: a blob has at most 2**40 bytes and an upload starts within what was received.
        if size > MAX_BLOB_BYTES:
            raise ProtocolError(
                "NET-7", Code.TOO_LARGE, got=f"{size} bytes", want=f"at most {MAX_BLOB_BYTES}"
            )
        part = self._part(digest, party)
        with self._lock:
            self._drop_old_uploads()
            older = self._uploads.pop(part, None)
            if older is not None:
                older.close()
            received = part.stat().st_size if part.exists() else 0
            if offset > min(received, size):
                raise ProtocolError(
                    "NET-7",
                    Code.OUT_OF_RANGE,
                    got=f"offset {offset}",
                    want=f"at most {min(received, size)}",
                )
            reserved = sum(n for p, n in self._reserved.items() if p != part)
            others = self._stored + reserved
            old = time.monotonic() - self._counted_at > COUNTED_S
            if old or others + size > self.quota_bytes:
                # Another process on the same folder may have stored or removed something.
                others = self._counted() + reserved
            if others + size > self.quota_bytes:
                raise LocalError(
                    f"the blob store is full: {others} of {self.quota_bytes} bytes are used, "
                    f"{size} more are asked for",
                    remedy="raise limits.disk_bytes, or lower limits.states_bytes",
                )
            upload = Upload(self, part, digest, size, offset)
            self._uploads[part] = upload
            self._reserved[part] = size
        upload.catch_up()
        return upload

    def _part(self, digest: Digest, party: PartyId) -> Path:
        return self._incoming / f"{digest.hex()}.{party.hex()[:16]}.part"

    def _drop_old_uploads(self) -> None:
        for path in self._incoming.glob("*.part"):
            if path in self._uploads:
                continue
            try:
                stat = path.stat()
            except FileNotFoundError:
                # A worker process on the same folder has just finished it.
                self._reserved.pop(path, None)
                continue
            if time.time() - stat.st_mtime > UNFINISHED_S:
                path.unlink(missing_ok=True)
                self._reserved.pop(path, None)
            else:
                self._reserved[path] = stat.st_size

    def _ended(self, upload: Upload, *, stored: int, unfinished: int) -> None:
        """Count the bytes that an upload leaves behind, unless a newer one took its place."""
        with self._lock:
            if self._uploads.get(upload.part) is upload:
                del self._uploads[upload.part]
                self._reserved[upload.part] = unfinished
                self._stored += stored

    def sound(self, digest: Digest) -> bool:
        """Tell whether a blob is here with the bytes it must have; a damaged file is removed."""
        if not self.path(digest).exists():
            return False
        try:
            self.open(digest).close()
        except ProtocolError:
            # Somebody removed it just now.
            return False
        except LocalError:
            self.remove(digest)
            return False
        return True

    def remove(self, digest: Digest) -> None:
        """Remove a blob if it is here."""
        path = self.path(digest)
        with self._lock:
            try:
                size = path.stat().st_size
                path.unlink()
            except FileNotFoundError:
                return
            except OSError as error:
                raise disk_error(path, error) from error
            self._stored -= size
            self._verified.pop(digest, None)

    # ---- reading ----------------------------------------------------------------------------

    def open(self, digest: Digest) -> BufferedReader:
        """Open a blob whose bytes are known to have its digest.

        Raises:
            ProtocolError: NET-8, the blob is not here.
            LocalError: the file is damaged or cannot be read.
        """
        path = self.path(digest)
        try:
            file = path.open("rb")
        except FileNotFoundError as error:
            raise ProtocolError(
                "NET-8", Code.UNKNOWN, got=f"blob {digest}", want="a blob that is stored here"
            ) from error
        except OSError as error:
            raise disk_error(path, error) from error
        try:
            self._verify(digest, file)
        except BaseException:
            file.close()
            raise
        return file

    def _verify(self, digest: Digest, file: BufferedReader) -> None:
        stat = os.fstat(file.fileno())
        signature = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if self._verified.get(digest) == signature:
            return
        path = self.path(digest)
        try:
            found = hashlib.file_digest(file, "sha256").digest()
            file.seek(0)
        except OSError as error:
            raise disk_error(path, error) from error
        # NET-8: bytes are served only under the digest they have.
        if found != digest:
            raise LocalError(
                f"{path} is damaged: its bytes have SHA-256 {found.hex()}",
                remedy="remove the file; it is fetched again when it is needed",
            )
        self._verified[digest] = signature

    def read(self, digest: Digest, limit: int) -> bytes:
        """Return a whole blob of at most ``limit`` bytes.

        Raises:
            ProtocolError: NET-8, the blob is not here, or NET-7, it is longer.
            LocalError: the file is damaged or cannot be read.
        """
        with self.open(digest) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise ProtocolError(
                    "NET-7",
                    Code.TOO_LARGE,
                    got=f"a blob of {size} bytes",
                    want=f"at most {limit} bytes",
                )
            return file.read()

    def open_at(self, digest: Digest, offset: int) -> tuple[BufferedReader, int]:
        """Open a blob at a position; return the file and the length of the whole blob.

        Raises:
            ProtocolError: NET-8, the blob is not here, or NET-7, the offset is beyond its end.
            LocalError: the file is damaged or cannot be read.
        """
        file = self.open(digest)
        size = os.fstat(file.fileno()).st_size
        if offset > size:
            file.close()
            raise ProtocolError(
                "NET-7", Code.OUT_OF_RANGE, got=f"offset {offset}", want=f"at most {size}"
            )
        file.seek(offset)
        return file, size


class Upload:
    """One blob on its way in. Used by one thread at a time."""

    def __init__(self, store: Blobs, part: Path, digest: Digest, size: int, offset: int) -> None:
        self.part = part
        self.digest = digest
        self.size = size
        self.received = offset
        self._store = store
        self._hasher = hashlib.sha256()
        self._open = True
        try:
            self._file = part.open("r+b" if part.exists() else "w+b")
            self._file.truncate(offset)
        except OSError as error:
            raise disk_error(part, error) from error

    def catch_up(self) -> None:
        """Count what was received before into the digest."""
        try:
            while piece := self._file.read(MAX_PIECE_BYTES):
                self._hasher.update(piece)
        except OSError as error:
            raise disk_error(self.part, error) from error

    def write(self, piece: bytes) -> None:
        """Add the next bytes.

        Raises:
            ProtocolError: NET-7, a piece is empty, too large, or beyond the announced size; or
                the same party has started the same upload anew.
            LocalError: the disk is full.
        """
        self._check_open()
        # NET-7: a piece has 1 byte to 1 MiB and stays within the announced size.
        if not 1 <= len(piece) <= MAX_PIECE_BYTES or self.received + len(piece) > self.size:
            self.discard()
            raise ProtocolError(
                "NET-7",
                Code.TOO_LARGE,
                got=f"{len(piece)} bytes at {self.received}",
                want=f"1 to {MAX_PIECE_BYTES} bytes, up to byte {self.size}",
            )
        try:
            self._file.write(piece)
        except OSError as error:
            raise disk_error(self.part, error) from error
        self._hasher.update(piece)
        self.received += len(piece)

    def commit(self) -> None:
        """Check the digest and give the blob its name.

        Raises:
            ProtocolError: NET-7, bytes are missing, or NET-8, they have another digest; bytes
                with another digest are thrown away.
            LocalError: the disk is full.
        """
        self._check_open()
        if self.received != self.size:
            self.abandon()
            raise ProtocolError(
                "NET-7",
                Code.MALFORMED,
                got=f"{self.received} bytes",
                want=f"the {self.size} bytes announced",
            )
        # NET-8: received bytes are stored only under the digest they have.
        found = self._hasher.hexdigest()
        if found != self.digest.hex():
            self.discard()
            raise ProtocolError("NET-8", Code.MISMATCH, got=found, want=self.digest)
        target = self._store.path(self.digest)
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._open = False
            self._file.close()
            target.parent.mkdir(exist_ok=True, mode=0o700)
            known = target.exists()
            self.part.replace(target)
            for folder in (target.parent, self._store.folder):
                _sync_folder(folder)
        except OSError as error:
            raise disk_error(target, error) from error
        stored = 0 if known else self.size
        self._store._ended(self, stored=stored, unfinished=0)  # noqa: SLF001 - its other half

    def _check_open(self) -> None:
        # NET-7: one party has one open upload of a blob, the newest.
        if not self._open:
            raise ProtocolError(
                "NET-7", Code.UNAVAILABLE, got="an older upload", want="the newest of the party"
            )

    def close(self) -> None:
        """Let go of the file; what was received stays."""
        self._open = False
        try:
            self._file.close()
        except OSError as error:
            raise disk_error(self.part, error) from error

    def abandon(self) -> None:
        """Stop here; what was received can be continued. A second call does nothing."""
        if self._open:
            self.close()
            self._store._ended(self, stored=0, unfinished=self.received)  # noqa: SLF001 - as above

    def discard(self) -> None:
        """Stop here and throw away what was received."""
        self.close()
        self.part.unlink(missing_ok=True)
        self._store._ended(self, stored=0, unfinished=0)  # noqa: SLF001 - as above


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
