"""The coordinator, and any node, as seen from elsewhere: the services with our own values.

``Remote`` bundles what a role or a command needs. Calls raise what ``Connection.call`` raises.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from identic.node.blobs import PIECE_BYTES, Blobs, Presence
from identic.node.rpc.client import ATTEMPTS, Connection, Unreachable, pause_s, stub
from identic.node.rpc.convert import fixed, from_wire, to_wire
from identic.node.rpc.gen.v1 import (
    blob_service_pb2 as blob_pb,
)
from identic.node.rpc.gen.v1 import (
    blob_service_pb2_grpc as blob_grpc,
)
from identic.node.rpc.gen.v1 import (
    dispute_service_pb2 as dispute_pb,
)
from identic.node.rpc.gen.v1 import (
    dispute_service_pb2_grpc as dispute_grpc,
)
from identic.node.rpc.gen.v1 import (
    job_service_pb2 as job_pb,
)
from identic.node.rpc.gen.v1 import (
    job_service_pb2_grpc as job_grpc,
)
from identic.node.rpc.gen.v1 import (
    log_service_pb2 as log_pb,
)
from identic.node.rpc.gen.v1 import (
    log_service_pb2_grpc as log_grpc,
)
from identic.node.rpc.gen.v1 import (
    node_service_pb2 as node_pb,
)
from identic.node.rpc.gen.v1 import (
    node_service_pb2_grpc as node_grpc,
)
from identic.node.views import (
    Consistency,
    DisputeDetail,
    DisputeSummary,
    Inclusion,
    JobDetail,
    JobSummary,
    NodeStatus,
    Progress,
    SignedHead,
)
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Digest

SLOWEST_BYTES_S: Final = 128 << 10
"""Rate below which a transfer of a blob is given up, in bytes a second."""

CHECKING_S: Final = 600.0
"""Deadline of a posting: the coordinator first reads and hashes the whole state, in seconds."""

OnProgress = Callable[[int, int], None]
"""Told of a transfer: bytes done, bytes in all."""


def _quiet(done: int, total: int) -> None:
    """Tell nobody."""


def _deadline_s(size: int) -> float:
    return 60.0 + size / SLOWEST_BYTES_S


class Jobs:
    """The job board."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub: job_grpc.JobServiceAsyncStub = stub(job_grpc.JobServiceStub, connection)

    async def submit(self, message: bytes) -> tuple[Digest, int]:
        """Post a job; return its id and the index of the entry."""
        answer = await self._connection.call(
            self._stub.SubmitJob,
            job_pb.SubmitJobRequest(message=message),
            deadline_s=CHECKING_S,
            idempotent=True,
        )
        return fixed(Digest, answer.job_id, "job_id"), answer.log_index

    async def list(self, limit: int = 0, phase: str = "") -> Sequence[JobSummary]:
        """Return jobs, newest first."""
        answer = await self._connection.call(
            self._stub.ListJobs, job_pb.ListJobsRequest(limit=limit, phase=phase), idempotent=True
        )
        return [from_wire(job, JobSummary) for job in answer.jobs]

    async def get(self, job: Digest) -> JobDetail:
        """Return all about a job."""
        answer = await self._connection.call(
            self._stub.GetJob, job_pb.GetJobRequest(job_id=bytes(job)), idempotent=True
        )
        return from_wire(answer, JobDetail)

    async def report(self, progress: Progress) -> None:
        """Report how far this node is with a job."""
        await self._connection.call(
            self._stub.ReportProgress,
            to_wire(progress, job_pb.ReportProgressRequest),
            idempotent=False,
        )


class LogClient:
    """The coordinator's log."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub: log_grpc.LogServiceAsyncStub = stub(log_grpc.LogServiceStub, connection)

    async def append(self, message: bytes) -> int:
        """Hand in a signed message; return the index of its entry. Safe to repeat (MSG-3)."""
        answer = await self._connection.call(
            self._stub.Append, log_pb.AppendRequest(message=message), idempotent=True
        )
        return answer.index

    async def watch(self, from_index: int) -> AsyncIterator[tuple[int, bytes]]:
        """Yield index and encoding of the entries from an index on, until the connection breaks.

        Raises:
            ProtocolError: MSG-5, an entry comes out of turn.
        """
        wanted = from_index
        request = log_pb.WatchLogRequest(from_index=from_index)
        async for answer in self._connection.stream(self._stub.WatchLog, request):
            # MSG-5: the entries come in order, from the index asked for, without a gap.
            if answer.index != wanted:
                raise ProtocolError(
                    "MSG-5", Code.MISMATCH, got=f"entry {answer.index}", want=f"entry {wanted}"
                )
            yield wanted, answer.entry
            wanted += 1

    async def follow(
        self,
        from_index: int,
        on_break: Callable[[Unreachable], None] = lambda _: None,
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yield entries as ``watch`` does, and go on after every break of the connection.

        Args:
            from_index: zero-based index of the first entry wanted.
            on_break: told why the connection broke, each time.
        """
        wanted, attempt = from_index, 0
        while True:
            try:
                async for index, entry in self.watch(wanted):
                    yield index, entry
                    wanted, attempt = index + 1, 0
            except Unreachable as error:
                on_break(error)
            except ProtocolError as error:
                # The log may be starting again; any other refusal is final.
                if error.code is not Code.UNAVAILABLE:
                    raise
            await asyncio.sleep(pause_s(attempt))
            attempt += 1

    async def head(self) -> SignedHead:
        """Return the newest signed head; its signature is not checked here."""
        answer = await self._connection.call(
            self._stub.GetHead, log_pb.GetHeadRequest(), idempotent=True
        )
        return from_wire(answer, SignedHead)

    async def inclusion(self, index: int, size: int = 0) -> Inclusion:
        """Return an entry with its path; the path is not checked here."""
        answer = await self._connection.call(
            self._stub.GetInclusion,
            log_pb.GetInclusionRequest(index=index, size=size),
            idempotent=True,
        )
        return from_wire(answer, Inclusion)

    async def consistency(self, first: int, second: int = 0) -> Consistency:
        """Return the proof from one size to another; it is not checked here."""
        answer = await self._connection.call(
            self._stub.GetConsistency,
            log_pb.GetConsistencyRequest(first_size=first, second_size=second),
            idempotent=True,
        )
        return from_wire(answer, Consistency)


class Disputes:
    """The disputes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub: dispute_grpc.DisputeServiceAsyncStub = stub(
            dispute_grpc.DisputeServiceStub, connection
        )

    async def move(self, message: bytes) -> int:
        """Make a move; return the index of its entry. Safe to repeat (MSG-3)."""
        answer = await self._connection.call(
            self._stub.SubmitMove, dispute_pb.SubmitMoveRequest(message=message), idempotent=True
        )
        return answer.log_index

    async def get(self, dispute: Digest) -> DisputeDetail:
        """Return all about a dispute."""
        answer = await self._connection.call(
            self._stub.GetDispute,
            dispute_pb.GetDisputeRequest(dispute_id=bytes(dispute)),
            idempotent=True,
        )
        return from_wire(answer, DisputeDetail)

    async def list(
        self, job: Digest | None = None, limit: int = 0, *, open_only: bool = False
    ) -> Sequence[DisputeSummary]:
        """Return disputes, newest first."""
        request = dispute_pb.ListDisputesRequest(
            job_id=bytes(job or b""), limit=limit, open_only=open_only
        )
        answer = await self._connection.call(self._stub.ListDisputes, request, idempotent=True)
        return [from_wire(one, DisputeSummary) for one in answer.disputes]


class BlobClient:
    """The blob store of another node, together with the local one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stub: blob_grpc.BlobServiceAsyncStub = stub(blob_grpc.BlobServiceStub, connection)

    async def has(self, digests: Sequence[Digest]) -> Sequence[Presence]:
        """Tell which blobs the other end has, in the order asked."""
        answer = await self._connection.call(
            self._stub.Has,
            blob_pb.HasRequest(digests=[bytes(digest) for digest in digests]),
            idempotent=True,
        )
        # NET-6: one answer for each digest.
        if len(answer.blobs) != len(digests):
            raise ProtocolError(
                "NET-6", Code.MISMATCH, got=f"{len(answer.blobs)} answers", want=f"{len(digests)}"
            )
        return [from_wire(one, Presence) for one in answer.blobs]

    async def upload(self, store: Blobs, digest: Digest, on_progress: OnProgress = _quiet) -> None:
        """Send a blob of the local store, unless the other end has it; go on after a break."""
        attempt = 0
        while True:
            (there,) = await self.has([digest])
            if there.present:
                return
            try:
                await self._put(store, digest, there.received, on_progress)
            except Unreachable:
                attempt += 1
                if attempt >= ATTEMPTS:
                    raise
                await asyncio.sleep(pause_s(attempt - 1))
            else:
                return

    async def _put(
        self, store: Blobs, digest: Digest, offset: int, on_progress: OnProgress
    ) -> None:
        file, size = await asyncio.to_thread(store.open_at, digest, 0)
        start = min(offset, size)
        file.seek(start)

        async def requests() -> AsyncIterator[blob_pb.PutRequest]:
            yield blob_pb.PutRequest(
                start=blob_pb.PutStart(digest=bytes(digest), size=size, offset=start)
            )
            done = start
            while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
                yield blob_pb.PutRequest(data=piece)
                done += len(piece)
                on_progress(done, size)

        with file:
            await self._connection.send(
                self._stub.Put, requests(), deadline_s=_deadline_s(size - start)
            )

    async def download(
        self, store: Blobs, digest: Digest, limit: int, on_progress: OnProgress = _quiet
    ) -> int:
        """Fetch a blob into the local store, unless it is there; return its length in bytes.

        Args:
            store: where it goes, under the digest it must have (NET-8).
            digest: which blob.
            limit: most bytes accepted.
            on_progress: told of bytes done and bytes in all.

        Raises:
            ProtocolError: NET-7, it is longer than ``limit`` or than announced; NET-8, it has
                another digest or the other end does not have it.
        """
        attempt = 0
        party = self._connection.peer.party
        while not (here := store.presence(digest, party)).present:
            try:
                await self._get(store, digest, here.received, limit, on_progress)
            except Unreachable:
                attempt += 1
                if attempt >= ATTEMPTS:
                    raise
                await asyncio.sleep(pause_s(attempt - 1))
        return here.size

    async def _get(
        self, store: Blobs, digest: Digest, offset: int, limit: int, on_progress: OnProgress
    ) -> None:
        request = blob_pb.GetRequest(digest=bytes(digest), offset=offset)
        upload, size = None, 0
        answers = self._connection.stream(self._stub.Get, request, deadline_s=_deadline_s(limit))
        try:
            async for answer in answers:
                if upload is None:
                    size = answer.size
                    # NET-7: a blob is fetched only up to the length that its use allows.
                    if size > limit:
                        raise ProtocolError(
                            "NET-7",
                            Code.TOO_LARGE,
                            got=f"a blob of {size} bytes",
                            want=f"at most {limit} bytes",
                        )
                    upload = await asyncio.to_thread(
                        store.begin, digest, size, offset, self._connection.peer.party
                    )
                if answer.data:
                    await asyncio.to_thread(upload.write, answer.data)
                    on_progress(upload.received, size)
            # NET-7: a download has at least one answer.
            if upload is None:
                raise ProtocolError("NET-7", Code.MALFORMED, got="no answer", want="the blob")
            await asyncio.to_thread(upload.commit)
        finally:
            if upload is not None:
                upload.abandon()


class Remote:
    """All services of another node over one connection.

    Attributes:
        connection: the connection; close it when done.
        jobs: the job board.
        log: the log.
        disputes: the disputes.
        blobs: the blob store.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.jobs = Jobs(connection)
        self.log = LogClient(connection)
        self.disputes = Disputes(connection)
        self.blobs = BlobClient(connection)
        self._node: node_grpc.NodeServiceAsyncStub = stub(node_grpc.NodeServiceStub, connection)

    async def status(self) -> NodeStatus:
        """Return what the node says about itself."""
        answer = await self.connection.call(
            self._node.Status, node_pb.StatusRequest(), idempotent=True
        )
        return from_wire(answer, NodeStatus)
