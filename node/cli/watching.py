"""Following a job: the log tells what counts, the parties' reports how far they are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from identic.node.blobs import Blobs
from identic.node.cli.output import Output
from identic.node.cli.places import Places
from identic.node.cli.reading import LogReader
from identic.node.cli.screens import descent
from identic.node.cli.screens.progress import JobView, LiveJob
from identic.node.cli.views import dispute_view, job_view, tokens_of
from identic.node.rpc.client import Unreachable
from identic.node.rpc.remote import Remote
from identic.node.views import PartyProgress
from identic.protocol.ids import JobId
from identic.protocol.job.messages import DisputeId
from identic.protocol.job.state import Job

POLL_S: Final = 0.3
"""Time between two questions for progress, in seconds."""


@dataclass(frozen=True)
class Watched:
    """A job that is over.

    Attributes:
        job: as the board has it.
        reader: the board.
        view: the last picture.
        rulings: the disputes on the way.
    """

    job: Job
    reader: LogReader
    view: JobView
    rulings: tuple[descent.DisputeView, ...]


class Watch:
    """Follows one job until it is over.

    Args:
        remote: the coordinator.
        blobs: where programs are kept that the screen needs.
        job: which job.
        output: where to show it.
        places: where plan values come from in the submitter's source.
        transcripts: folder that the caller brings the disputes' transcripts to, if it does.
    """

    def __init__(
        self,
        remote: Remote,
        blobs: Blobs,
        job: JobId,
        output: Output,
        places: Places | None = None,
        transcripts: Path | None = None,
    ) -> None:
        self._remote = remote
        self._name = job
        self._output = output
        self._places = places
        self._transcripts = transcripts
        self._reader = LogReader(remote, blobs)
        self._reports: tuple[PartyProgress, ...] = ()
        self._tokens = 0
        self._told: list[descent.DisputeView] = []
        self._seen: set[DisputeId] = set()

    async def run(self, until: Callable[[Job], bool] = lambda job: job.phase.over) -> Watched:
        """Show the job until it is over.

        Args:
            until: when to stop instead.

        Raises:
            ProtocolError: there is no such job, or the coordinator breaks a rule.
        """
        await self._reader.catch_up()
        job = self._reader.board.job(self._name)
        self._tokens = tokens_of(await self._reader.plan(job))
        with LiveJob(self._output) as live:
            self._show(live)
            poll = asyncio.create_task(self._poll(live))
            try:
                if not until(self._job):
                    async for _ in self._reader.follow():
                        self._show(live)
                        if until(self._job):
                            break
            finally:
                poll.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await poll
            self._show(live)
        return Watched(self._job, self._reader, self._view, tuple(self._told))

    @property
    def _job(self) -> Job:
        return self._reader.board.job(self._name)

    @property
    def _view(self) -> JobView:
        return job_view(self._job, self._reports, log_size=self._reader.size, tokens=self._tokens)

    def _show(self, live: LiveJob) -> None:
        live.show(self._view)
        for dispute in self._job.disputes:
            if dispute in self._seen or self._reader.board.case(dispute).transcript is None:
                continue
            kept = self._transcripts
            path = str(kept / f"{dispute.name}.identic") if kept else ""
            view = dispute_view(self._reader, dispute, places=self._places, transcript=path)
            if view is not None:
                self._seen.add(dispute)
                self._told.append(view)
                for line in ("", *descent.lines(view), ""):
                    self._output.say(line)

    async def _poll(self, live: LiveJob) -> None:
        """Ask for progress again and again; it binds nobody, so a failure is no matter."""
        while True:
            with contextlib.suppress(Unreachable):
                self._reports = (await self._remote.jobs.get(self._name)).parties
                live.show(self._view)
            await asyncio.sleep(POLL_S)
