"""A network of nodes as separate processes on loopback, in one folder.

Each member gets its own data folder, identity, configuration file and log file, exactly as
an operator would make them; only the ports are chosen here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from identic.node.identity import Identity
from identic.node.rpc.client import Connection
from identic.node.rpc.remote import Remote
from identic.protocol.errors import LocalError, ProtocolError

READY_S = 60.0
"""Longest wait for a node to answer, in seconds."""

STOP_S = 15.0
"""Longest wait for a node to stop before it is killed, in seconds."""


NODE = ("-m", "identic.node.cli.main", "node", "run")
"""Arguments with which Python runs a node; ``--config FILE`` follows."""


@dataclass(frozen=True)
class Member:
    """A node of the network."""

    name: str
    role: str
    settings: Mapping[str, object] = field(default_factory=dict)
    """Keys of the role's section."""
    program: Sequence[str] = NODE
    """What Python runs; another program may replace a role."""


class LocalNetwork:
    """Nodes in processes of their own; use as an async context manager.

    Args:
        folder: where everything lies; made if missing.
        members: the nodes; exactly one has the role ``coordinator``.
        threads: threads of each node's operators.
        vector: vector path of each node.
    """

    def __init__(
        self, folder: Path, members: Sequence[Member], *, threads: int = 1, vector: str = "auto"
    ) -> None:
        self.folder = folder
        self.members = {m.name: m for m in members}
        self._threads = threads
        self._vector = vector
        self._ports = dict(zip(self.members, free_ports(len(members)), strict=True))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._identities: dict[str, Identity] = {}
        self.coordinator = next(m.name for m in members if m.role == "coordinator")

    async def __aenter__(self) -> Self:
        """Make what is missing and start every node.

        Raises:
            LocalError: a node does not come up.
        """
        try:
            self.prepare()
            await self.up(self.coordinator)
            await self.up(*self.members)
        except BaseException:
            await self.stop()
            raise
        return self

    async def up(self, *names: str) -> None:
        """Start members, unless they run, and wait until they answer.

        Raises:
            LocalError: one does not come up.
        """
        for name in names:
            self.start(name)
        for name in names:
            await self.ready(name)

    async def __aexit__(self, *_: object) -> None:
        """Stop every node."""
        await self.stop()

    # ---- files ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make identities, cards and configurations."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in (*self.members, "client"):
            data = self.folder / name
            made = (data / "identity.key").exists()
            create = Identity.load if made else Identity.create
            self._identities[name] = create(data, name)
        for name in (*self.members, "client"):
            known = self.folder / name / "peers"
            known.mkdir(exist_ok=True)
            others = self._identities if name == self.coordinator else (self.coordinator, "client")
            for other in others:
                card = self._identities[other].card
                (known / f"{other}.card").write_text(card.text, encoding="utf-8")
        for member in self.members.values():
            self.config(member.name).write_text(self._config(member), encoding="utf-8")

    def config(self, name: str) -> Path:
        """Configuration file of a member."""
        return self.folder / f"{name}.toml"

    def _config(self, member: Member) -> str:
        lines = [
            f'name = "{member.name}"',
            f'data_dir = "{member.name}"',
            f'listen = "{self.address(member.name)}"',
            f"threads = {self._threads}",
            f'vector = "{self._vector}"',
            "[log]",
            'format = "json"',
        ]
        if member.role != "coordinator":
            card = f"{self.coordinator}/{self.coordinator}.card"
            address = self.address(self.coordinator)
            lines += ["[network]", f'coordinator = "{address}"', f'card = "{card}"']
        lines.append(f"[{member.role}]")
        lines += [f"{key} = {_toml(value)}" for key, value in member.settings.items()]
        return "\n".join(lines) + "\n"

    def address(self, name: str) -> str:
        """Where a member listens."""
        return f"127.0.0.1:{self._ports[name]}"

    def identity(self, name: str) -> Identity:
        """Keys of a member, or of ``client``."""
        return self._identities[name]

    def log(self, name: str) -> Path:
        """Log file of a member."""
        return self.folder / f"{name}.log"

    # ---- processes --------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a member, unless it runs."""
        if name in self._processes and self._processes[name].poll() is None:
            return
        command = [sys.executable, *self.members[name].program, "--config"]
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*command, str(self.config(name))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "IDENTIC_CONFIG": ""},
            )

    def kill(self, name: str) -> None:
        """End a member at once, with its worker, as a power cut would."""
        for pid in (*self.workers(name), self._processes[name].pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._processes[name].wait()

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a member's own process, not to its worker."""
        self._processes[name].send_signal(number)

    def running(self, name: str) -> bool:
        """Whether a member's own process runs."""
        return name in self._processes and self._processes[name].poll() is None

    async def ended(self, name: str) -> int:
        """Wait until a member's own process has ended; returns its exit status."""
        return await asyncio.to_thread(self._processes[name].wait)

    def workers(self, name: str) -> list[int]:
        """Process numbers of a member's workers."""
        return _children(self._processes[name].pid)

    async def halt(self, name: str) -> None:
        """Stop a member in order."""
        process = self._processes[name]
        process.terminate()
        await asyncio.to_thread(process.wait)

    def change(self, name: str, settings: Mapping[str, object]) -> None:
        """Write a member's configuration again with other settings of its role."""
        self.members[name] = Member(name, self.members[name].role, settings)
        self.config(name).write_text(self._config(self.members[name]), encoding="utf-8")

    async def ready(self, name: str) -> None:
        """Wait until a member answers.

        Raises:
            LocalError: it ended or does not answer in time.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + READY_S
        while True:
            process = self._processes[name]
            if process.poll() is not None:
                raise LocalError(
                    f"{name} ended with status {process.returncode} at its start",
                    remedy=f"see the end of {self.log(name)}",
                )
            try:
                async with self.connect(name) as connection:
                    await Remote(connection).status()
                    return
            except (LocalError, ProtocolError) as error:
                if loop.time() > end:
                    raise LocalError(
                        f"{name} does not answer: {error}", remedy=f"see {self.log(name)}"
                    ) from error
            await asyncio.sleep(0.2)

    def connect(self, name: str | None = None) -> Connection:
        """A connection of the client to a member, the coordinator unless another is named."""
        name = name or self.coordinator
        card = self._identities[name].card
        return Connection(self.address(name), self._identities["client"], card)

    async def stop(self) -> None:
        """Stop every member in order, the coordinator last; kill what does not stop."""
        names = [n for n in self._processes if n != self.coordinator]
        for group in (names, [n for n in self._processes if n == self.coordinator]):
            running = [self._processes[n] for n in group if self._processes[n].poll() is None]
            for process in running:
                process.terminate()
            for process in running:
                try:
                    await asyncio.to_thread(process.wait, STOP_S)
                except subprocess.TimeoutExpired:
                    # Its workers end with it.
                    process.kill()
                    process.wait()


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on at the moment."""
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(count):
            listener = held.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports.append(int(listener.getsockname()[1]))
        return ports


def _children(parent: int) -> list[int]:
    """Processes whose parent is ``parent``."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(status.parent.name))
    return found


def _toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
