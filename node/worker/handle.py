"""The daemon's end of a worker process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from identic.node.worker import frames
from identic.protocol.errors import LocalError, ProtocolError

STOP_S = 5.0
"""Seconds a worker gets to end by itself before it is killed."""


class Worker:
    """One worker process for one job; use as an async context manager.

    Requests are made one at a time. Cancelling a request leaves the process in the middle of
    its work, so whoever cancels also closes.
    """

    def __init__(self, assignment: frames.Assignment) -> None:
        self._assignment = assignment
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self.ready: frames.Ready | None = None

    @property
    def pid(self) -> int | None:
        """Process number once it was started."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    async def __aenter__(self) -> Self:
        """Start the process and hand it the job.

        Raises:
            ProtocolError: the job's parts break a rule.
            LocalError: the process cannot start, or this machine cannot run the job.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "identic.node.worker.main",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise LocalError(
                f"the worker process cannot start: {error.strerror or error}",
                remedy="look for a limit on processes, open files or memory",
            ) from error
        try:
            reply = await self.ask(self._assignment)
        except BaseException:
            await self.close()
            raise
        if not isinstance(reply, frames.Ready):
            raise TypeError(f"the worker answered {reply}")
        self.ready = reply
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
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def ask(self, request: frames.Request) -> frames.Reply:
        """Make a request that has one reply."""
        async with self._lock:
            await self._send(request)
            return await self._receive()

    async def train(self, request: frames.Train) -> AsyncIterator[frames.Reply]:
        """Train to the last mark; yields every reply, ``Trained`` last."""
        async with self._lock:
            await self._send(request)
            while True:
                reply = await self._receive()
                yield reply
                if isinstance(reply, frames.Trained):
                    return

    async def _send(self, request: frames.Request) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise RuntimeError("the worker is not running")
        if process.stdin.is_closing():
            # The process ended while it was idle.
            raise await self._death()
        try:
            process.stdin.write(frames.pack_request(request))
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise await self._death() from error

    async def _receive(self) -> frames.Reply:
        process = self._process
        if process is None or process.stdout is None:
            raise RuntimeError("the worker is not running")
        try:
            prefix = await process.stdout.readexactly(frames.LENGTH_BYTES)
            body = await process.stdout.readexactly(frames.frame_length(prefix))
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

    async def _death(self) -> LocalError:
        """Say in words how the process ended."""
        process = self._process
        if process is None:
            raise RuntimeError("the worker was not started")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_S)
        await self.close()
        code = process.returncode
        if code is not None and code < 0:
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
