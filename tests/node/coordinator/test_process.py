"""A coordinator as a process of its own, killed with SIGKILL and started again."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path

import pytest

from identic.node.config import Config, write_example
from identic.node.identity import Identity
from identic.node.rpc.client import Connection, Unreachable
from identic.node.rpc.remote import Remote
from identic.proofs.envelope import seal
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Digest
from identic.protocol.job.entries import LogHead
from identic.protocol.job.messages import Enrol, Leave, Statement
from tests.node.coordinator.village import posting

PROGRAM = "import sys; from pathlib import Path; from identic.node.config import Config; \
from identic.node.daemon import run; run(Config.load(Path(sys.argv[1])))"


class Hub:
    """The node of a coordinator."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.config = folder / "node.toml"
        text = write_example("coordinator", "hub").replace("127.0.0.1:7400", self.address)
        self.config.write_text(text)
        loaded = Config.load(self.config)
        self.identity = Identity.create(loaded.data_path, "hub")
        self.ada = Identity.create(folder / "ada", "ada")
        loaded.peers_path.mkdir(parents=True)
        (loaded.peers_path / "ada.card").write_text(self.ada.card.text)

    async def start(self) -> Process:
        """Start the process and wait until its board is open."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROGRAM,
            str(self.config),
            stdout=DEVNULL,
            stderr=DEVNULL,
            env=dict(os.environ),
        )
        async with self.connection() as connection:
            while True:
                try:
                    await Remote(connection).log.head()
                except Unreachable:
                    assert process.returncode is None
                except ProtocolError as refused:
                    if refused.code is not Code.UNAVAILABLE:
                        raise
                else:
                    return process

    def connection(self) -> Connection:
        """Ada's connection to the coordinator."""
        return Connection(self.address, self.ada, self.identity.card)


async def kill(process: Process) -> None:
    """End a process as a power cut does."""
    process.kill()
    await process.wait()


async def test_job_4__a_killed_coordinator_keeps_its_log(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    statements: tuple[Statement, ...] = (Enrol(), Leave(), Enrol())
    messages = [
        encode(seal(hub.ada.signing_key, hub.identity.party, nonce, said))
        for nonce, said in enumerate(statements)
    ]
    process = await hub.start()
    async with hub.connection() as connection:
        remote = Remote(connection)
        assert [await remote.log.append(m) for m in messages] == [1, 2, 3]
        before = decode(LogHead, (await remote.log.head()).head)
    await kill(process)
    process = await hub.start()
    async with hub.connection() as connection:
        remote = Remote(connection)
        after = decode(LogHead, (await remote.log.head()).head)
        assert (after.size, after.root) == (before.size, before.root) == (4, before.root)
        assert [await remote.log.append(m) for m in messages] == [1, 2, 3]
        said = seal(hub.ada.signing_key, hub.identity.party, 9, posting().said)
        with pytest.raises(ProtocolError) as refused:
            await remote.jobs.submit(encode(said))
        assert refused.value.rule == "JOB-6"
        with pytest.raises(ProtocolError) as refused:
            await remote.jobs.get(Digest(bytes(32)))
        assert refused.value.code is Code.UNKNOWN
        (role,) = (await remote.status()).roles
        assert role.details["log entries"] == "4"
    await kill(process)
