"""The role *coordinator* of a node: opens the board, answers the services, keeps the clocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from identic.node.config import CoordinatorSection
from identic.node.coordinator.host import Host
from identic.node.coordinator.policy import Policy
from identic.node.coordinator.screens import counts
from identic.node.coordinator.service import Coordinator
from identic.node.logging import get_logger
from identic.node.role import Context
from identic.protocol.errors import LocalError

HOUR_MS: Final = 3_600_000


def now_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


class CoordinatorRole:
    """Runs a coordinator inside a node."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._log = get_logger("coordinator")
        self._coordinator: Coordinator | None = None

    async def start(self) -> None:
        """Apply the whole log and answer calls.

        Raises:
            LocalError: the log cannot be used.
        """
        context = self._context
        section = context.config.coordinator or CoordinatorSection()
        host = await asyncio.to_thread(
            Host,
            context.storage,
            context.blobs,
            context.identity.signing_key,
            now_ms,
            grant=section.grant,
            policy=Policy(
                memory_bytes=int(context.config.limits.memory_bytes),
                shortest_ms=1000 * section.shortest_clock_s,
            ),
        )
        self._coordinator = Coordinator(host, now_ms)
        handlers = context.handlers
        handlers.jobs = handlers.log = handlers.disputes = self._coordinator
        handlers.blobs = context.blobs
        self._log.info("board is open", entries=host.log.size, jobs=len(host.board.jobs))

    async def run(self) -> None:
        """Keep the clocks until cancelled."""
        if self._coordinator is None:
            raise RuntimeError("the coordinator was not started")
        forgetting = asyncio.create_task(self._forget(self._coordinator))
        try:
            await self._coordinator.run()
        finally:
            forgetting.cancel()
            await asyncio.wait({forgetting})

    async def _forget(self, coordinator: Coordinator) -> None:
        """Remove data and states of old jobs, at the start and each hour."""
        section = self._context.config.coordinator or CoordinatorSection()
        while section.keep_states_h:
            try:
                count = await coordinator.forget(section.keep_states_h * HOUR_MS)
            except LocalError as error:
                self._log.warning(
                    "cannot let old jobs go", problem=error.problem, remedy=error.remedy
                )
            else:
                self._log.info("data and states of old jobs let go", blobs=count)
            await asyncio.sleep(HOUR_MS / 1000)

    async def stop(self) -> None:
        """Answer no more calls."""
        handlers = self._context.handlers
        handlers.jobs = handlers.log = handlers.disputes = handlers.blobs = None
        coordinator, self._coordinator = self._coordinator, None
        if coordinator is not None:
            await coordinator.close()

    def status(self) -> Mapping[str, str]:
        """Tell what is on the board."""
        if self._coordinator is None:
            return {}
        host = self._coordinator.host
        troubles = {f"trouble with {job.name}": why for job, why in host.troubles.items()}
        return {"log entries": str(host.log.size), **counts(host.board), **troubles}


def make(context: Context) -> CoordinatorRole:
    """Make the role for a node."""
    return CoordinatorRole(context)
