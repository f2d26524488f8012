"""The services of ``proto/identic/v1`` in front of the handlers: check, convert, hand on."""
# ruff: noqa: ARG002 - the library passes every servicer a request and a context

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, TypeVar

from identic.node.blobs import PIECE_BYTES, Upload
from identic.node.rpc.convert import fixed, from_wire, to_wire
from identic.node.rpc.gen.v1 import (
    blob_service_pb2,
    blob_service_pb2_grpc,
    dispute_service_pb2,
    dispute_service_pb2_grpc,
    job_service_pb2,
    job_service_pb2_grpc,
    log_service_pb2,
    log_service_pb2_grpc,
    node_service_pb2,
    node_service_pb2_grpc,
)
from identic.node.rpc.guard import caller
from identic.node.rpc.handlers import Handlers
from identic.node.rpc.options import MAX_SIGNED_BYTES
from identic.node.views import Progress
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Digest

T = TypeVar("T")

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
MAX_DIGESTS: Final = 1_024

IDLE_S: Final = 60.0
"""Longest wait for the next piece of an upload, in seconds."""


def _up(handler: T | None, what: str) -> T:
    """Return the handler, or say that this part of the node is not up."""
    if handler is None:
        raise ProtocolError(
            "NET-5", Code.UNAVAILABLE, got=f"a call to the {what}", want=f"a running {what}"
        )
    return handler


def _signed(message: bytes) -> bytes:
    # MSG-4: a signed message has at most MAX_SIGNED_BYTES.
    if len(message) > MAX_SIGNED_BYTES:
        raise ProtocolError(
            "MSG-4",
            Code.TOO_LARGE,
            got=f"a message of {len(message)} bytes",
            want=f"at most {MAX_SIGNED_BYTES} bytes",
        )
    return message


def _limit(asked: int) -> int:
    return min(asked or DEFAULT_LIMIT, MAX_LIMIT)


class JobServicer(job_service_pb2_grpc.JobServiceServicer):
    """Serves the job board."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    async def SubmitJob(
        self, request: job_service_pb2.SubmitJobRequest, context: Any
    ) -> job_service_pb2.SubmitJobResponse:
        """Post a job."""
        jobs = _up(self._handlers.jobs, "job board")
        job, index = await jobs.submit_job(caller(), _signed(request.message))
        return job_service_pb2.SubmitJobResponse(job_id=bytes(job), log_index=index)

    async def ListJobs(
        self, request: job_service_pb2.ListJobsRequest, context: Any
    ) -> job_service_pb2.ListJobsResponse:
        """List jobs."""
        jobs = _up(self._handlers.jobs, "job board")
        found = await jobs.list_jobs(caller(), _limit(request.limit), request.phase)
        return job_service_pb2.ListJobsResponse(
            jobs=[to_wire(job, job_service_pb2.JobSummary) for job in found]
        )

    async def GetJob(
        self, request: job_service_pb2.GetJobRequest, context: Any
    ) -> job_service_pb2.GetJobResponse:
        """Tell all about a job."""
        jobs = _up(self._handlers.jobs, "job board")
        detail = await jobs.get_job(caller(), fixed(Digest, request.job_id, "job_id"))
        return to_wire(detail, job_service_pb2.GetJobResponse)

    async def ReportProgress(
        self, request: job_service_pb2.ReportProgressRequest, context: Any
    ) -> job_service_pb2.ReportProgressResponse:
        """Keep a report of progress."""
        jobs = _up(self._handlers.jobs, "job board")
        await jobs.report_progress(caller(), from_wire(request, Progress))
        return job_service_pb2.ReportProgressResponse()


class LogServicer(log_service_pb2_grpc.LogServiceServicer):
    """Serves the log."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    async def Append(
        self, request: log_service_pb2.AppendRequest, context: Any
    ) -> log_service_pb2.AppendResponse:
        """Append a message."""
        log = _up(self._handlers.log, "log")
        index = await log.append(caller(), _signed(request.message))
        return log_service_pb2.AppendResponse(index=index)

    async def WatchLog(
        self, request: log_service_pb2.WatchLogRequest, context: Any
    ) -> AsyncIterator[log_service_pb2.WatchLogResponse]:
        """Stream the entries."""
        log = _up(self._handlers.log, "log")
        async for index, entry in log.watch(caller(), request.from_index):
            yield log_service_pb2.WatchLogResponse(index=index, entry=entry)

    async def GetHead(
        self, request: log_service_pb2.GetHeadRequest, context: Any
    ) -> log_service_pb2.GetHeadResponse:
        """Return the newest signed head."""
        head = await _up(self._handlers.log, "log").head(caller())
        return to_wire(head, log_service_pb2.GetHeadResponse)

    async def GetInclusion(
        self, request: log_service_pb2.GetInclusionRequest, context: Any
    ) -> log_service_pb2.GetInclusionResponse:
        """Return an entry with its path."""
        log = _up(self._handlers.log, "log")
        found = await log.inclusion(caller(), request.index, request.size)
        return to_wire(found, log_service_pb2.GetInclusionResponse)

    async def GetConsistency(
        self, request: log_service_pb2.GetConsistencyRequest, context: Any
    ) -> log_service_pb2.GetConsistencyResponse:
        """Return the proof between two sizes."""
        log = _up(self._handlers.log, "log")
        found = await log.consistency(caller(), request.first_size, request.second_size)
        return to_wire(found, log_service_pb2.GetConsistencyResponse)


class DisputeServicer(dispute_service_pb2_grpc.DisputeServiceServicer):
    """Serves the disputes."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    async def SubmitMove(
        self, request: dispute_service_pb2.SubmitMoveRequest, context: Any
    ) -> dispute_service_pb2.SubmitMoveResponse:
        """Make a move."""
        disputes = _up(self._handlers.disputes, "referee")
        index = await disputes.submit_move(caller(), _signed(request.message))
        return dispute_service_pb2.SubmitMoveResponse(log_index=index)

    async def GetDispute(
        self, request: dispute_service_pb2.GetDisputeRequest, context: Any
    ) -> dispute_service_pb2.GetDisputeResponse:
        """Tell all about a dispute."""
        disputes = _up(self._handlers.disputes, "referee")
        found = await disputes.get_dispute(
            caller(), fixed(Digest, request.dispute_id, "dispute_id")
        )
        return to_wire(found, dispute_service_pb2.GetDisputeResponse)

    async def ListDisputes(
        self, request: dispute_service_pb2.ListDisputesRequest, context: Any
    ) -> dispute_service_pb2.ListDisputesResponse:
        """List disputes."""
        disputes = _up(self._handlers.disputes, "referee")
        job = fixed(Digest, request.job_id, "job_id") if request.job_id else None
        found = await disputes.list_disputes(
            caller(), job, _limit(request.limit), open_only=request.open_only
        )
        return dispute_service_pb2.ListDisputesResponse(
            disputes=[to_wire(one, dispute_service_pb2.DisputeSummary) for one in found]
        )


class NodeServicer(node_service_pb2_grpc.NodeServiceServicer):
    """Serves the node's status."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    async def Status(
        self, request: node_service_pb2.StatusRequest, context: Any
    ) -> node_service_pb2.StatusResponse:
        """Tell how the node fares."""
        status = await _up(self._handlers.node, "node").status(caller())
        return to_wire(status, node_service_pb2.StatusResponse)


class BlobServicer(blob_service_pb2_grpc.BlobServiceServicer):
    """Serves the blob store. Reading and writing files happens in threads."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    async def Put(
        self, request_iterator: AsyncIterator[blob_service_pb2.PutRequest], context: Any
    ) -> blob_service_pb2.PutResponse:
        """Take in a blob."""
        blobs = _up(self._handlers.blobs, "blob store")
        first = await _next(request_iterator)
        # NET-7: the first message of an upload says which blob follows.
        if first is None or first.WhichOneof("part") != "start":
            raise ProtocolError("NET-7", Code.MALFORMED, got="no start", want="a start first")
        start = first.start
        digest = fixed(Digest, start.digest, "digest")
        upload = await asyncio.to_thread(blobs.begin, digest, start.size, start.offset, caller())
        try:
            await self._take(request_iterator, upload)
            await asyncio.to_thread(upload.commit)
        finally:
            # After a commit or a discard this does nothing.
            upload.abandon()
        return blob_service_pb2.PutResponse(size=start.size)

    @staticmethod
    async def _take(requests: AsyncIterator[blob_service_pb2.PutRequest], upload: Upload) -> None:
        """Write the pieces of an upload."""
        while (request := await _next(requests)) is not None:
            if request.WhichOneof("part") != "data":
                raise ProtocolError(
                    "NET-7", Code.MALFORMED, got="a second start", want="data after the start"
                )
            await asyncio.to_thread(upload.write, request.data)

    async def Get(
        self, request: blob_service_pb2.GetRequest, context: Any
    ) -> AsyncIterator[blob_service_pb2.GetResponse]:
        """Give out a blob."""
        blobs = _up(self._handlers.blobs, "blob store")
        digest = fixed(Digest, request.digest, "digest")
        file, size = await asyncio.to_thread(blobs.open_at, digest, request.offset)
        with file:
            # The first answer comes even where nothing follows the offset: it tells the length.
            piece = await asyncio.to_thread(file.read, PIECE_BYTES)
            yield blob_service_pb2.GetResponse(size=size, data=piece)
            while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
                yield blob_service_pb2.GetResponse(size=size, data=piece)

    async def Has(
        self, request: blob_service_pb2.HasRequest, context: Any
    ) -> blob_service_pb2.HasResponse:
        """Tell which blobs are here."""
        blobs = _up(self._handlers.blobs, "blob store")
        # NET-7: one call asks for at most MAX_DIGESTS blobs.
        if len(request.digests) > MAX_DIGESTS:
            raise ProtocolError(
                "NET-7",
                Code.TOO_LARGE,
                got=f"{len(request.digests)} digests",
                want=f"at most {MAX_DIGESTS}",
            )
        here = [
            blobs.presence(fixed(Digest, digest, "digest"), caller()) for digest in request.digests
        ]
        return blob_service_pb2.HasResponse(
            blobs=[to_wire(one, blob_service_pb2.BlobPresence) for one in here]
        )


async def _next(
    requests: AsyncIterator[blob_service_pb2.PutRequest],
) -> blob_service_pb2.PutRequest | None:
    """Return the next message of an upload, or None at its end."""
    try:
        return await asyncio.wait_for(anext(requests, None), IDLE_S)
    except TimeoutError as error:
        raise ProtocolError(
            "NET-7", Code.LATE, got=f"silence for {IDLE_S:.0f} s", want="the next piece"
        ) from error
