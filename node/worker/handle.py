"""The daemon's end of a worker process.

The process is started by the ``subprocess`` module and only its pipes are handed to the event
loop: some loops run Python in the forked child, which gRPC's threads do not survive.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Self

from identic.node.logging import get_logger
from identic.node.worker import frames
from identic.protocol.errors import LocalError, ProtocolError

STOP_S = 5.0
"""Seconds a worker gets to end by itself before it is killed."""

log = get_logger("worker")

COMMAND = (sys.executable, "-m", "identic.node.worker.main")


@dataclass(frozen=True)
class Running:
    """A process with its pipes."""

    process: subprocess.Popen[bytes]
    requests: asyncio.StreamWriter
    replies: asyncio.StreamReader
    source: asyncio.BaseTransport
    """Where replies come from."""


class Worker:
    """One worker process for one job; use as an async context manager.

    Requests are made one at a time. Cancelling a request leaves the process in the middle of
    its work, so whoever cancels also closes.
    """

    def __init__(self, assignment: frames.Assignment | frames.Examine) -> None:
        """Start nothing yet.

        Args:
            assignment: the job; or a program of which only its device is to be found out.
        """
        self._assignment = assignment
        self._running: Running | None = None
        self._lock = asyncio.Lock()
        self.ready: frames.Ready | frames.Examined | None = None

    @property
    def pid(self) -> int | None:
        """Process number once it was started."""
        return self._running.process.pid if self._running else None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._running is not None and self._running.process.poll() is None

    async def __aenter__(self) -> Self:
        """Start the process and hand it the job.

        Raises:
            ProtocolError: the job's parts break a rule.
            LocalError: the process cannot start, or this machine cannot run the job.
        """
        self._running = await _start()
        try:
            reply = await self.ask(self._assignment)
        except BaseException:
            await self.close()
            raise
        if not isinstance(reply, frames.Ready | frames.Examined):
            raise TypeError(f"the worker answered {reply}")
        self.ready = reply
        tell(reply.device, reply.why)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        await self.close()

    async def close(self) -> None:
        """End the process: first by closing its input, then by force."""
        running = self._running
        if running is None:
            return
        running.requests.close()
        running.source.close()
        process = running.process
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)

    async def ask(self, request: frames.Request) -> frames.Reply:
        """Make a request that has one reply.

        Raises:
            ProtocolError: what the worker was given breaks a rule.
            LocalError: this machine cannot do it, or the process has ended.
        """
        async with self._lock:
            await self._send(request)
            return await self._receive()

    async def train(self, request: frames.Train) -> AsyncIterator[frames.Reply]:
        """Train to the last mark; yields every reply, ``Trained`` last. Raises as ``ask``."""
        async with self._lock:
            await self._send(request)
            while True:
                reply = await self._receive()
                yield reply
                if isinstance(reply, frames.Trained):
                    return

    async def _send(self, request: frames.Request) -> None:
        requests = self._present.requests
        if requests.is_closing():
            # The process ended while it was idle.
            raise await self._death()
        try:
            requests.write(frames.pack_request(request))
            await requests.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise await self._death() from error

    async def _receive(self) -> frames.Reply:
        replies = self._present.replies
        try:
            prefix = await replies.readexactly(frames.LENGTH_BYTES)
            body = await replies.readexactly(frames.frame_length(prefix))
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            raise await self._death() from error
        try:
            reply = frames.unpack_reply(body)
        except ProtocolError as error:
            raise LocalError(
                f"the worker process answered what cannot be read: {error}",
                remedy="check that the installation is whole and of one version",
            ) from error
        if isinstance(reply, frames.RefusedByRule | frames.Unable):
            raise reply.error()
        return reply

    @property
    def _present(self) -> Running:
        if self._running is None:
            raise RuntimeError("the worker was not started")
        return self._running

    async def _death(self) -> LocalError:
        """Say in words how the process ended."""
        process = self._present.process
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, STOP_S)
        await self.close()
        code = process.returncode
        if code < 0:
            name = signal.Signals(-code).name
            return LocalError(
                f"the worker process was ended by {name}",
                remedy="look for the out-of-memory killer in the system log; "
                "the work resumes from the last stored state",
            )
        return LocalError(
            f"the worker process ended with status {code}",
            remedy="see its error output above; the work resumes from the last stored state",
        )


@cache
def tell(device: str, why: str) -> None:
    """Log what computes, and why; the same words once."""
    log.info("device", taken=device, why=why)


async def _start() -> Running:
    """Start a process and connect its pipes to the event loop.

    Raises:
        LocalError: it cannot start.
    """
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - takes milliseconds; see the module's head
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
    except OSError as error:
        raise LocalError(
            f"the worker process cannot start: {error.strerror or error}",
            remedy="look for a limit on processes, open files or memory",
        ) from error
    loop = asyncio.get_running_loop()
    replies = asyncio.StreamReader()
    source, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(replies), process.stdout
    )
    sink, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), process.stdin
    )
    requests = asyncio.StreamWriter(sink, protocol, None, loop)
    return Running(process, requests, replies, source)
