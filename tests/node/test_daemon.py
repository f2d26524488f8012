"""The process of a node: it starts, tells how it fares, survives its roles, and stops in order."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path

import pytest

from identic.node.config import Config, MetricsSection, write_example
from identic.node.daemon import Daemon
from identic.node.identity import Identity
from identic.node.role import Context
from identic.node.rpc.client import Connection
from identic.node.rpc.remote import Remote
from identic.node.views import NodeStatus, RoleState
from identic.protocol.errors import LocalError

ROOT = Path(__file__).resolve().parents[2]


class IdleRole:
    """A role that does nothing, and fails while a file called ``fail`` lies in data_dir."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._fail = context.config.data_path / "fail"

    async def start(self) -> None:
        (self._context.config.data_path / "started").touch()

    async def run(self) -> None:
        if self._fail.exists():
            raise LocalError("the file is there", remedy="remove it")
        await asyncio.Event().wait()

    async def stop(self) -> None:
        (self._context.config.data_path / "stopped").touch()

    def status(self) -> Mapping[str, str]:
        return {"mood": "calm"}


def configured(folder: Path, listen: str = "127.0.0.1:0") -> Config:
    """Make a coordinator's configuration with an identity."""
    path = folder / "node.toml"
    text = write_example("coordinator", "hub").replace("127.0.0.1:7400", listen)
    path.write_text(text)
    config = Config.load(path)
    if not (config.data_path / "identity.key").exists():
        Identity.create(config.data_path, "hub")
    return config


async def until(daemon: Daemon, state: RoleState, restarts: int) -> NodeStatus:
    """Ask for the status over the wire until the role is in a state."""
    async with Connection(
        daemon.server.address, daemon.context.identity, daemon.context.identity.card
    ) as connection:
        while True:
            status = await Remote(connection).status()
            (role,) = status.roles
            if role.state is state and role.restarts >= restarts:
                return status
            await asyncio.sleep(0)


async def test_a_node_tells_how_it_fares(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with Daemon(config, {"coordinator": IdleRole}) as daemon:
        status = await until(daemon, RoleState.RUNNING, 0)
        assert status.party == daemon.context.identity.party
        assert (status.name, status.known_peers) == ("hub", 1)
        assert dict(status.roles[0].details) == {"mood": "calm"}
        assert status.memory_used_bytes > 0
        assert status.disk_free_bytes > 0
    assert (config.data_path / "stopped").exists()
    # Everything was let go of: the same node comes up again.
    async with Daemon(config, {"coordinator": IdleRole}) as daemon:
        await until(daemon, RoleState.RUNNING, 0)


async def test_a_failing_role_is_shown_and_started_again(tmp_path: Path) -> None:
    config = configured(tmp_path)
    (config.data_path / "fail").touch()
    async with Daemon(config, {"coordinator": IdleRole}) as daemon:
        status = await until(daemon, RoleState.WAITING, 0)
        assert "the file is there" in status.roles[0].last_error
        assert status.roles[0].last_error_ms > 0
        (config.data_path / "fail").unlink()
        status = await until(daemon, RoleState.RUNNING, 1)
        assert "the file is there" in status.roles[0].last_error


async def test_metrics_are_served(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = configured(tmp_path)
    served = config.model_copy(update={"metrics": MetricsSection(listen=f"127.0.0.1:{port}")})
    async with Daemon(served, {"coordinator": IdleRole}) as daemon:
        await until(daemon, RoleState.RUNNING, 0)
        daemon.context.blobs.put(b"12345")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        assert "identic_blob_bytes 5.0" in text
        assert 'method="/identic.v1.NodeService/Status",status="OK"' in text


async def test_a_second_instance_is_refused(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with Daemon(config, {"coordinator": IdleRole}):
        with pytest.raises(LocalError) as refusal:
            await Daemon(config, {"coordinator": IdleRole}).__aenter__()
    assert "in use by process" in refusal.value.problem


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    async with Daemon(configured(tmp_path), {"coordinator": IdleRole}) as daemon:
        other = tmp_path / "other"
        other.mkdir()
        config = configured(other, daemon.server.address)
        with pytest.raises(LocalError) as refusal:
            await Daemon(config, {"coordinator": IdleRole}).__aenter__()
        assert daemon.server.address in refusal.value.problem
    # The refused node let go of its files.
    async with Daemon(configured(other), {"coordinator": IdleRole}):
        pass


async def test_a_node_without_a_role_is_refused(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("")
    with pytest.raises(LocalError) as refusal:
        await Daemon(Config.load(tmp_path / "node.toml")).__aenter__()
    assert "no role" in refusal.value.problem


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_in_order(tmp_path: Path, number: signal.Signals) -> None:
    config = configured(tmp_path)
    script = (
        "import sys; from pathlib import Path\n"
        "from identic.node.config import Config\n"
        "from identic.node.daemon import run\n"
        "from tests.node.test_daemon import IdleRole\n"
        "run(Config.load(Path(sys.argv[1])), {'coordinator': IdleRole})\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, tmp_path / "node.toml", cwd=ROOT, stderr=PIPE
    )
    assert process.stderr is not None
    while b"role is running" not in await process.stderr.readline():
        assert process.returncode is None
    process.send_signal(number)
    async with asyncio.timeout(60):
        rest = await process.stderr.read()
    assert await process.wait() == 0, rest
    assert b"Traceback" not in rest
    assert (config.data_path / "stopped").exists()
