"""Blobs: bytes are kept and passed on only under the digest they have, and transfers resume."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.node import blobs
from identic.node.blobs import MAX_PIECE_BYTES, UNFINISHED_S, Blobs
from identic.node.rpc.gen.v1 import blob_service_pb2 as pb
from identic.node.rpc.gen.v1.blob_service_pb2_grpc import BlobServiceStub
from identic.node.rpc.remote import Remote
from identic.protocol.errors import Code, LocalError, ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Digest, PartyId
from tests.helpers.effort import examples
from tests.node.conftest import Site

ADA = PartyId(b"a" * 32)
BOB = PartyId(b"b" * 32)


def noise(size: int) -> bytes:
    """Bytes without structure, the same each time."""
    return hashlib.shake_256(b"%d" % size).digest(size)


@pytest.fixture
def store(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "local", 64 << 20)


@pytest.mark.parametrize("size", [0, 1, MAX_PIECE_BYTES, 3 * MAX_PIECE_BYTES + 17])
def test_bytes_come_back(store: Blobs, size: int) -> None:
    data = noise(size)
    digest = store.put(data)
    assert digest == sha256(data)
    assert store.read(digest, size) == data
    assert store.presence(digest, ADA).size == size
    assert store.put(data) == digest
    assert store.used_bytes == size
    again = Blobs(store.folder, 64 << 20)
    assert again.used_bytes == size
    again.remove(digest)
    again.remove(digest)
    assert again.used_bytes == 0
    with pytest.raises(ProtocolError) as missing:
        again.read(digest, size)
    assert (missing.value.rule, missing.value.code) == ("NET-8", Code.UNKNOWN)


def test_net_8__bytes_with_another_digest_are_thrown_away(store: Blobs) -> None:
    digest = sha256(b"right")
    upload = store.begin(digest, 5, 0, ADA)
    upload.write(b"wrong")
    with pytest.raises(ProtocolError) as refusal:
        upload.commit()
    assert (refusal.value.rule, refusal.value.code) == ("NET-8", Code.MISMATCH)
    here = store.presence(digest, ADA)
    assert (here.present, here.received, store.used_bytes) == (False, 0, 0)


def test_net_8__a_damaged_file_is_not_served(store: Blobs) -> None:
    digest = store.put(noise(5000))
    assert store.read(digest, 5000)
    path = store.path(digest)
    data = bytearray(path.read_bytes())
    data[77] ^= 1
    path.write_bytes(data)
    with pytest.raises(LocalError) as refusal:
        store.read(digest, 5000)
    assert str(path) in refusal.value.problem


def test_net_7__sizes_are_held(store: Blobs) -> None:
    digest = sha256(b"12345")
    for piece in (b"", b"123456", bytes(MAX_PIECE_BYTES + 1)):
        upload = store.begin(digest, 5, 0, ADA)
        with pytest.raises(ProtocolError) as refusal:
            upload.write(piece)
        assert refusal.value.rule == "NET-7"
    upload = store.begin(digest, 5, 0, ADA)
    upload.write(b"123")
    with pytest.raises(ProtocolError) as short:
        upload.commit()
    assert (short.value.rule, short.value.code) == ("NET-7", Code.MALFORMED)
    with pytest.raises(ProtocolError) as beyond:
        store.begin(digest, 5, 4, ADA)
    assert (beyond.value.rule, beyond.value.code) == ("NET-7", Code.OUT_OF_RANGE)
    with pytest.raises(ProtocolError) as huge:
        store.begin(digest, 1 << 63, 0, ADA)
    assert (huge.value.rule, huge.value.code) == ("NET-7", Code.TOO_LARGE)
    with pytest.raises(ProtocolError) as long:
        store.read(store.put(b"12345"), 4)
    assert (long.value.rule, long.value.code) == ("NET-7", Code.TOO_LARGE)


def test_net_9__an_upload_goes_on_for_its_party_only(store: Blobs) -> None:
    data = noise(3000)
    digest = sha256(data)
    upload = store.begin(digest, 3000, 0, ADA)
    upload.write(data[:1000])
    upload.abandon()
    assert store.presence(digest, ADA).received == 1000
    assert store.presence(digest, BOB).received == 0
    restarted = Blobs(store.folder, 64 << 20)
    assert restarted.used_bytes == 1000
    upload = restarted.begin(digest, 3000, 600, ADA)
    upload.write(data[600:])
    upload.commit()
    assert restarted.read(digest, 3000) == data
    assert restarted.used_bytes == 3000


def test_net_9__a_newer_upload_supersedes_the_older(store: Blobs) -> None:
    data = noise(2000)
    digest = sha256(data)
    older = store.begin(digest, 2000, 0, ADA)
    older.write(data[:500])
    newer = store.begin(digest, 2000, 500, ADA)
    with pytest.raises(ProtocolError) as refusal:
        older.write(data[500:])
    assert refusal.value.code is Code.UNAVAILABLE
    older.abandon()
    newer.write(data[500:])
    newer.commit()
    assert store.read(digest, 2000) == data
    assert store.used_bytes == 2000


def test_net_9__an_old_unfinished_upload_is_dropped(store: Blobs) -> None:
    digest = sha256(b"12345")
    upload = store.begin(digest, 5, 0, ADA)
    upload.write(b"123")
    upload.abandon()
    old = upload.part.stat().st_mtime - UNFINISHED_S - 60
    os.utime(upload.part, (old, old))
    again = Blobs(store.folder, 64 << 20)
    assert again.presence(digest, ADA).received == 0
    assert again.used_bytes == 0


def test_the_quota_holds_for_what_is_announced(tmp_path: Path) -> None:
    store = Blobs(tmp_path, 1000)
    store.put(bytes(400))
    open_upload = store.begin(sha256(b"a"), 500, 0, ADA)
    with pytest.raises(LocalError) as refusal:
        store.begin(sha256(b"b"), 101, 0, BOB)
    assert "limits.disk_bytes" in refusal.value.remedy
    # What is given up makes room again.
    open_upload.abandon()
    store.begin(sha256(b"b"), 101, 0, BOB)


def test_what_another_process_stores_and_removes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "COUNTED_S", -1.0)
    daemon, worker = Blobs(tmp_path, 1000), Blobs(tmp_path, 1000)
    digest = worker.put(bytes(600))
    assert daemon.used_bytes == 600
    with pytest.raises(LocalError):
        daemon.begin(sha256(b"a"), 500, 0, ADA)
    daemon.remove(digest)
    assert (daemon.used_bytes, worker.used_bytes) == (0, 0)
    worker.put(bytes(900))


@settings(max_examples=examples(30), deadline=None)
@given(
    size=st.integers(0, 5000),
    cuts=st.lists(st.integers(0, 5000), max_size=5),
    back=st.integers(0, 300),
)
def test_net_9__any_way_of_breaking_off_gives_the_same_blob(
    tmp_path_factory: pytest.TempPathFactory, size: int, cuts: list[int], back: int
) -> None:
    store = Blobs(tmp_path_factory.mktemp("blobs"), 1 << 20)
    data = noise(size)
    digest = sha256(data)
    for cut in [*sorted(c for c in cuts if c < size), size]:
        start = max(0, store.presence(digest, ADA).received - back)
        upload = store.begin(digest, size, start, ADA)
        if cut > start:
            upload.write(data[start:cut])
        if cut < size:
            upload.abandon()
        else:
            upload.commit()
    assert store.read(digest, size) == data
    assert store.used_bytes == size


# ---- over the wire --------------------------------------------------------------------------


async def test_upload_and_download(
    site: Site, remote: Remote, store: Blobs, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    for size in (0, 1, 5 * MAX_PIECE_BYTES + 3):
        digest = store.put(noise(size))
        await remote.blobs.upload(store, digest, lambda done, total: told.append((done, total)))
        assert site.blobs.read(digest, size) == noise(size)
        assert size == 0 or told[-1] == (size, size)
        await remote.blobs.upload(store, digest)
        other = Blobs(tmp_path / f"other{size}", 64 << 20)
        assert await remote.blobs.download(other, digest, size) == size
        assert other.read(digest, size) == noise(size)
    (present, absent) = await remote.blobs.has([sha256(noise(1)), Digest(bytes(32))])
    assert (present.present, absent.present) == (True, False)


async def test_net_9__transfers_resume(
    site: Site, remote: Remote, store: Blobs, tmp_path: Path
) -> None:
    size = 4 * MAX_PIECE_BYTES
    data = noise(size)
    digest = store.put(data)
    half = site.blobs.begin(digest, size, 0, remote.connection.identity.party)
    half.write(data[:MAX_PIECE_BYTES])
    half.abandon()
    told: list[int] = []
    await remote.blobs.upload(store, digest, lambda done, _: told.append(done))
    assert told[0] > MAX_PIECE_BYTES
    other = Blobs(tmp_path / "other", 64 << 20)
    half = other.begin(digest, size, 0, remote.connection.peer.party)
    half.write(data[:MAX_PIECE_BYTES])
    half.abandon()
    told.clear()
    await remote.blobs.download(other, digest, size, lambda done, _: told.append(done))
    assert told[0] > MAX_PIECE_BYTES
    assert other.read(digest, size) == data


async def test_net_7__a_download_that_is_too_long_is_refused(
    site: Site, remote: Remote, store: Blobs
) -> None:
    digest = site.blobs.put(noise(2000))
    with pytest.raises(ProtocolError) as refusal:
        await remote.blobs.download(store, digest, 1999)
    assert (refusal.value.rule, refusal.value.code) == ("NET-7", Code.TOO_LARGE)
    with pytest.raises(ProtocolError) as missing:
        await remote.blobs.download(store, Digest(bytes(32)), 1999)
    assert (missing.value.rule, missing.value.code) == ("NET-8", Code.UNKNOWN)


async def test_net_8__a_server_that_sends_other_bytes_is_caught(
    site: Site, remote: Remote, store: Blobs
) -> None:
    data = noise(3000)
    digest = site.blobs.put(data)
    path = site.blobs.path(digest)
    site.blobs.read(digest, 3000)
    stat = path.stat()
    path.write_bytes(noise(3001)[:3000])
    # The server believes that it has checked these bytes.
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ProtocolError) as refusal:
        await remote.blobs.download(store, digest, 3000)
    assert (refusal.value.rule, refusal.value.code) == ("NET-8", Code.MISMATCH)
    assert not store.presence(digest, remote.connection.peer.party).present


def put(
    remote: Remote, parts: list[pb.PutRequest]
) -> grpc.aio.StreamUnaryCall[pb.PutRequest, pb.PutResponse]:
    """Upload any messages, past the client's own checks."""

    async def requests() -> AsyncIterator[pb.PutRequest]:
        for part in parts:
            yield part

    stub = BlobServiceStub(remote.connection.channel)
    return stub.Put(requests(), timeout=20)


async def test_net_7__malformed_uploads_are_refused(site: Site, remote: Remote) -> None:
    digest = bytes(sha256(b"12345"))
    start = pb.PutRequest(start=pb.PutStart(digest=digest, size=5))
    cases: list[tuple[list[pb.PutRequest], Code]] = [
        ([], Code.MALFORMED),
        ([pb.PutRequest()], Code.MALFORMED),
        ([pb.PutRequest(data=b"12345")], Code.MALFORMED),
        ([start, start], Code.MALFORMED),
        ([start, pb.PutRequest(data=b"1234")], Code.MALFORMED),
        ([start, pb.PutRequest(data=b"123456")], Code.TOO_LARGE),
        ([start, pb.PutRequest(data=b"54321")], Code.MISMATCH),
        ([pb.PutRequest(start=pb.PutStart(digest=b"1", size=5))], Code.MALFORMED),
        ([pb.PutRequest(start=pb.PutStart(digest=digest, size=5, offset=9))], Code.OUT_OF_RANGE),
    ]
    for parts, code in cases:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await put(remote, parts)
        with pytest.raises(ProtocolError) as explained:
            await remote.connection.explain(refusal.value)
        assert explained.value.code is code
    assert not site.blobs.presence(Digest(digest), ADA).present


async def test_a_broken_upload_leaves_the_server_well(site: Site, remote: Remote) -> None:
    digest = bytes(sha256(b"12345"))

    async def requests() -> AsyncIterator[pb.PutRequest]:
        yield pb.PutRequest(start=pb.PutStart(digest=digest, size=5))
        yield pb.PutRequest(data=b"12")
        await asyncio.Event().wait()

    call = BlobServiceStub(remote.connection.channel).Put(requests())
    while True:
        (here,) = await remote.blobs.has([Digest(digest)])
        if site.blobs._uploads:
            break
    assert not here.present
    call.cancel()
    while site.blobs._uploads:
        await remote.blobs.has([Digest(digest)])
    await remote.blobs.upload(site.blobs, site.blobs.put(b"other"))
