"""The process of a node: one event loop with the server and the roles, until it is told to stop.

* A role that fails is logged with its traceback, shown in the status and started again, after a
  pause that grows with every failure in a row.
* SIGTERM and SIGINT stop in order: the roles, then the server, then the files. A second signal
  ends the process at once.
* One process has a ``data_dir`` at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.metadata
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self, cast

from identic.node.blobs import Blobs
from identic.node.config import Config
from identic.node.identity import Card, Identity
from identic.node.logging import configure, get_logger
from identic.node.metrics import Metrics
from identic.node.peers import Peers
from identic.node.role import Context, Factory, Role
from identic.node.rpc.client import Connection
from identic.node.rpc.diagnose import split_address
from identic.node.rpc.handlers import Handlers
from identic.node.rpc.remote import Remote
from identic.node.rpc.server import COORDINATOR_SERVICES, NODE_SERVICES, Server
from identic.node.storage.disk import FolderLock, free_bytes
from identic.node.storage.sqlite import SqliteStorage
from identic.node.views import NodeStatus, RoleState, RoleStatus
from identic.protocol.errors import IdenticError, LocalError
from identic.protocol.ids import PartyId
from identic.protocol.ops import KERNEL_SET

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
STOP_S: Final = 30.0
"""How long a role may take to stop, in seconds."""

STEADY_S: Final = 60.0
"""A role that ran this long has its pause start small again, in seconds."""


def factory_of(role: str) -> Factory:
    """Return what makes a role: ``make`` of ``identic.node.<role>.role``."""
    module = importlib.import_module(f"identic.node.{role}.role")
    return cast(Factory, module.make)


def now_ms() -> int:
    """Return Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


class Supervised:
    """One role with its restarts."""

    def __init__(self, name: str, factory: Factory, context: Context) -> None:
        self.name = name
        self._factory = factory
        self._context = context
        self._log = get_logger(name)
        self._role: Role | None = None
        self._state = RoleState.STARTING
        self._restarts = 0
        self._error = ""
        self._error_ms = 0

    @property
    def state(self) -> RoleState:
        """How the role fares."""
        return self._state

    async def run(self) -> None:
        """Keep the role going until cancelled."""
        pause = FIRST_PAUSE_S
        try:
            while True:
                began = time.monotonic()
                await self._once()
                pause = FIRST_PAUSE_S if time.monotonic() - began > STEADY_S else pause
                self._state = RoleState.WAITING
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                self._restarts += 1
                self._context.metrics.restarts.labels(self.name).inc()
        finally:
            self._state = RoleState.STOPPED

    async def _once(self) -> None:
        """Run the role until it fails; the failure is recorded."""
        self._state = RoleState.STARTING
        try:
            self._role = self._factory(self._context)
            await self._role.start()
            self._state = RoleState.RUNNING
            self._log.info("role is running")
            await self._role.run()
            self._failed(RuntimeError("the role ended by itself"))
        except Exception as error:  # noqa: BLE001 - recorded and logged, then started again
            self._failed(error)
        finally:
            await self._end()

    async def _end(self) -> None:
        """Stop the role within bounds, whatever it does."""
        role, self._role = self._role, None
        if role is None:
            return
        try:
            # Not wait_for, which loses a cancellation that comes as the role has just stopped.
            async with asyncio.timeout(STOP_S):
                await role.stop()
        except Exception as error:  # noqa: BLE001 - recorded and logged
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._error = str(error) if isinstance(error, IdenticError) else f"fault: {error!r}"
        self._error_ms = now_ms()
        if isinstance(error, LocalError):
            self._log.error("role failed", problem=error.problem, remedy=error.remedy)
        else:
            self._log.error("role failed", exc_info=error)

    def status(self) -> RoleStatus:
        """Tell how the role fares."""
        details: Mapping[str, str] = {}
        if self._role is not None:
            try:
                details = dict(self._role.status())
            except Exception as error:  # noqa: BLE001 - shown instead of the details
                details = {"status": f"fault: {error!r}"}
        return RoleStatus(
            self.name, self._state, self._restarts, self._error, self._error_ms, details
        )


class Daemon:
    """A node. Use as ``async with``; it runs inside the block.

    Attributes:
        context: what the roles share.
        server: the gRPC server; its port is known once the block is entered.
    """

    context: Context
    server: Server

    def __init__(self, config: Config, factories: Mapping[str, Factory] | None = None) -> None:
        self._config = config
        self._factories = factories or {}
        self._exits = contextlib.AsyncExitStack()
        self._roles: list[Supervised] = []
        self._started_ms = now_ms()
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as exits:
            await self._start(exits)
            self._exits = exits.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    def stop(self) -> None:
        """Ask ``wait`` to return."""
        self._stopping.set()

    async def wait(self) -> None:
        """Wait until someone calls ``stop``."""
        await self._stopping.wait()

    async def _start(self, exits: contextlib.AsyncExitStack) -> None:
        """Bring everything up; ``exits`` brings it down in reverse order."""
        config = self._config
        if not config.roles:
            raise LocalError(
                "the configuration names no role",
                remedy="add a section such as [solver], or make a file with `identic node init`",
            )
        folder = config.data_path
        exits.callback(FolderLock.take(folder).release)
        identity = Identity.load(folder, config.name)
        config.peers_path.mkdir(parents=True, exist_ok=True)
        peers = Peers(config.peers_path, [identity.card])
        for problem in peers.problems:
            get_logger("peers").warning("card left out", problem=problem)
        storage = SqliteStorage(folder / "state")
        exits.callback(storage.close)
        blobs = Blobs(folder / "blobs", int(config.limits.disk_bytes))
        handlers = Handlers(blobs=blobs if config.coordinator is not None else None)
        metrics = Metrics()
        metrics.log_entries.set_function(storage.size)
        metrics.blob_bytes.set_function(lambda: blobs.used_bytes)
        self._serve_metrics(metrics, exits)
        services = COORDINATOR_SERVICES if "coordinator" in config.roles else NODE_SERVICES
        self.server = await Server.start(
            config.listen, identity, peers, handlers, services=services, metrics=metrics
        )
        exits.push_async_callback(self.server.stop)
        self.context = Context(
            config,
            identity,
            peers,
            storage,
            blobs,
            handlers,
            metrics,
            await self._connect(identity, exits),
        )
        handlers.node = self
        await self._start_roles(exits)

    def _serve_metrics(self, metrics: Metrics, exits: contextlib.AsyncExitStack) -> None:
        if self._config.metrics.listen is not None:
            web = metrics.serve(*split_address(self._config.metrics.listen))
            exits.callback(web.server_close)
            exits.callback(web.shutdown)

    async def _connect(self, identity: Identity, exits: contextlib.AsyncExitStack) -> Remote | None:
        """Prepare the connection to the coordinator; for itself, its own card will do."""
        config = self._config
        if config.network.coordinator is not None and config.card_path is not None:
            connection = Connection(
                config.network.coordinator, identity, Card.load(config.card_path)
            )
        elif config.coordinator is not None:
            _, port = split_address(config.listen)
            address = f"127.0.0.1:{port or self.server.port}"
            connection = Connection(address, identity, identity.card)
        else:
            return None
        exits.push_async_callback(connection.close)
        return Remote(connection)

    async def _start_roles(self, exits: contextlib.AsyncExitStack) -> None:
        for name in self._config.roles:
            factory = self._factories.get(name) or factory_of(name)
            self._roles.append(Supervised(name, factory, self.context))
        tasks = [asyncio.create_task(role.run(), name=role.name) for role in self._roles]

        async def end() -> None:
            # The coordinator comes first in the list and is the last to go.
            for task in reversed(tasks):
                task.cancel()
                await asyncio.wait([task])

        exits.push_async_callback(end)

    async def status(self, peer: PartyId) -> NodeStatus:
        """Tell how the node fares; answers NodeService."""
        del peer
        config, context = self._config, self.context
        return NodeStatus(
            party=context.identity.party,
            name=config.name,
            version=importlib.metadata.version("identic"),
            kernel_set=KERNEL_SET,
            started_ms=self._started_ms,
            now_ms=now_ms(),
            roles=tuple(role.status() for role in self._roles),
            memory_limit_bytes=int(config.limits.memory_bytes),
            memory_used_bytes=_memory_used_bytes(),
            disk_limit_bytes=int(config.limits.disk_bytes),
            disk_free_bytes=free_bytes(config.data_path),
            blob_bytes=context.blobs.used_bytes,
            known_peers=len(context.peers.cards),
        )


def _memory_used_bytes() -> int:
    """Return the resident memory of this process in bytes; 0 where it is not told."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


async def _run(config: Config, factories: Mapping[str, Factory] | None) -> None:
    loop = asyncio.get_running_loop()
    async with Daemon(config, factories) as daemon:

        def stop() -> None:
            get_logger("node").info("stopping; a second signal ends at once")
            daemon.stop()
            for again in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(again)
                signal.signal(again, signal.SIG_DFL)

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        await daemon.wait()


def run(config: Config, factories: Mapping[str, Factory] | None = None) -> None:
    """Run a node in this process until SIGTERM or SIGINT.

    Args:
        config: the settings.
        factories: what makes a role, by its name, in place of the usual.

    Raises:
        LocalError: the node cannot come up.
    """
    configure(config.log.format, config.log.level)
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        asyncio.run(_run(config, factories))
    else:
        uvloop.run(_run(config, factories))
