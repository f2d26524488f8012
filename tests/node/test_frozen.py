"""A peer that stands still without closing its connection is noticed from either side."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from identic.node.identity import Identity
from identic.node.rpc.client import Connection, Unreachable
from identic.node.rpc.options import Keepalive
from identic.node.rpc.remote import Remote
from tests.node.conftest import running_site

ROOT = Path(__file__).resolve().parents[2]
QUICK = Keepalive(after_ms=1_000, timeout_ms=1_000)
GENEROUS_S = 90.0


@asynccontextmanager
async def process(*arguments: object) -> AsyncIterator[Process]:
    """Run a module of the tests in a process of its own."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *map(str, arguments), stdout=PIPE, cwd=ROOT
    )
    try:
        yield running
    finally:
        running.kill()
        await running.wait()


async def line(running: Process) -> str:
    """Return the next line that a process prints."""
    assert running.stdout is not None
    return (await running.stdout.readline()).decode().strip()


@pytest.mark.usefixtures("identities")
async def test_net_10__frozen_server_is_noticed(tmp_path: Path, identity_root: Path) -> None:
    ada = Identity.load(identity_root / "ada", "ada")
    hub = Identity.load(identity_root / "hub", "hub")
    arguments = (identity_root / "hub", tmp_path / "site", identity_root / "ada" / "ada.card")
    async with process("tests.node.serve", *arguments) as server:
        address = await line(server)
        async with Connection(address, ada, hub.card, QUICK) as connection:
            remote = Remote(connection)
            assert await remote.log.append(b"x") == 0
            watch = remote.log.watch(0)
            assert await anext(watch) == (0, b"x")
            server.send_signal(signal.SIGSTOP)
            async with asyncio.timeout(GENEROUS_S):
                with pytest.raises(Unreachable):
                    await anext(watch)
            server.send_signal(signal.SIGCONT)
            assert await remote.log.append(b"y") == 1


async def test_net_10__frozen_client_is_noticed(
    tmp_path: Path, identity_root: Path, identities: list[Identity]
) -> None:
    async with running_site(tmp_path / "site", identities[0], keepalive=QUICK) as site:
        site.know(identities[1])
        site.log.entries.append(b"x")
        arguments = (identity_root / "ada", identity_root / "hub" / "hub.card")
        async with process("tests.node.watch", *arguments, site.server.address) as client:
            assert await line(client) == "0"
            client.send_signal(signal.SIGSTOP)
            async with asyncio.timeout(GENEROUS_S), site.log.grown:
                while site.log.watching:
                    await site.log.grown.wait()
