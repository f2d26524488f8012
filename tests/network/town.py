"""A network of real processes with a client that posts jobs and reads the log.

Nothing here sleeps or times anything: what is awaited is an entry of the coordinator's log, as
the client applies it to its own board.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from identic.kernels.arrays import from_bytes
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.cli.reading import LogReader
from identic.node.coordinator.board import Board
from identic.node.demo.network import LocalNetwork, Member
from identic.node.execution.loaded import load_job, load_state
from identic.node.execution.training import Trainer
from identic.node.rpc.remote import Remote
from identic.node.submission import Conditions, Prepared, post, prepare
from identic.proofs.envelope import seal
from identic.protocol.encoding import encode
from identic.protocol.ids import Credits, Digest, JobId, Millis, PartyId
from identic.protocol.job.messages import SignedMessage, Statement
from identic.protocol.job.state import Job, Phase
from identic.protocol.job.terms import Clocks, Prices
from tests.helpers.programs import mlp, mlp_data, mlp_state

T = TypeVar("T")

CLOCKS = Clocks(Millis(120_000), Millis(240_000), Millis(400), Millis(240_000))
"""Nobody is late, however slow the machine; and nobody waits long for the end of a window."""

PRICES = Prices(
    solver_reward=Credits(1_500_000),
    verifier_reward=Credits(300_000),
    solver_bond=Credits(10_000_000),
    verifier_bond=Credits(5_000_000),
    challenger_bond=Credits(2_000_000),
)
GRANT = 1_000_000_000
LONG = 1_000
"""Steps of a run that is long enough to be interrupted."""
PROGRAM = mlp(steps=LONG)


@dataclass(frozen=True)
class Ask:
    """What a test's job differs in."""

    steps: int = 60
    cadence: int = 2
    checkpoint: int = 5
    verifiers: int = 2
    window_ms: int = int(CLOCKS.window_ms)

    @property
    def marks(self) -> int:
        """Marks of the whole run, the initial state included."""
        return 1 + -(-self.steps // self.cadence)


def conditions(ask: Ask) -> Conditions:
    """The conditions of a job."""
    return Conditions(
        steps=ask.steps,
        prices=PRICES,
        clocks=replace(CLOCKS, window_ms=Millis(ask.window_ms)),
        seed=3,
        cadence=ask.cadence,
        checkpoint=ask.checkpoint,
        verifiers=ask.verifiers,
    )


def prepared(blobs: Blobs, submitter: PartyId, ask: Ask) -> Prepared:
    """The job of all tests in a store."""
    state = [from_bytes(v.type, b) for v, b in zip(PROGRAM.state, mlp_state(PROGRAM), strict=True)]
    data = [from_bytes(v.type, b) for v, b in zip(PROGRAM.data, mlp_data(PROGRAM), strict=True)]
    return prepare(blobs, submitter, PROGRAM, state, data, conditions(ask))


@cache
def expected(ask: Ask) -> tuple[Digest, ...]:
    """State roots at the marks of the job, computed in this process."""
    with TemporaryDirectory() as folder:
        blobs = Blobs(Path(folder), 1 << 30)
        made = prepared(blobs, PartyId(bytes(32)), ask)
        job = load_job(made.terms, made.artifacts, blobs)
        trainer = Trainer(job, Executor(job.plan, CpuBackend()))
        state = load_state(job, blobs, made.artifacts.state, 0, made.terms.initial_state)
        reached = trainer.run(state, 0, made.terms.last_mark)
        return (made.terms.initial_state, *(r.mark.state_root for r in reached))


class Town:
    """A network and its client.

    Attributes:
        net: the processes.
        blobs: the client's store.
    """

    def __init__(self, net: LocalNetwork) -> None:
        self.net = net
        self.blobs = Blobs(net.folder / "client" / "blobs", 1 << 30)
        self._nonces = itertools.count()

    def party(self, name: str) -> PartyId:
        """Identity of a member, or of the client."""
        return self.net.identity(name).party

    @contextlib.asynccontextmanager
    async def remote(self, name: str | None = None) -> AsyncIterator[Remote]:
        """The client's connection to a member, by default to the coordinator."""
        async with self.net.connect(name) as connection:
            yield Remote(connection)

    async def post(self, ask: Ask = Ask()) -> JobId:
        """Post a job."""
        made = prepared(self.blobs, self.party("client"), ask)
        async with self.remote() as remote:
            return await post(remote, self.net.identity("client"), self.blobs, made)

    async def say(self, statement: Statement, network: PartyId | None = None) -> int:
        """Let the client make a statement, to its own network unless another is named."""
        signed = self.seal(statement, network)
        async with self.remote() as remote:
            return await remote.log.append(encode(signed))

    def seal(self, statement: Statement, network: PartyId | None = None) -> SignedMessage:
        """A statement with the client's signature."""
        key = self.net.identity("client").signing_key
        to = network or self.party(self.net.coordinator)
        return seal(key, to, next(self._nonces), statement)

    async def until(self, found: Callable[[Board], T | None]) -> T:
        """Read the log until something is found on the board; the earliest such board counts."""
        async with self.remote() as remote:
            reader = LogReader(remote, self.blobs)
            async for _ in reader.follow():
                answer = found(reader.board)
                if answer is not None:
                    return answer
        raise AssertionError("the log has ended")

    async def until_job(self, job: JobId, condition: Callable[[Job], bool]) -> Job:
        """Read the log until a job is as wished."""

        def found(board: Board) -> Job | None:
            now = board.jobs.get(job)
            return now if now is not None and condition(now) else None

        return await self.until(found)

    async def settled(self, job: JobId) -> Job:
        """Wait until a job is settled; it must not expire."""
        over = await self.until_job(job, lambda now: now.phase.over)
        assert over.phase is Phase.SETTLED
        return over

    async def board(self) -> Board:
        """The board as it is, checked against the signed head."""
        async with self.remote() as remote:
            reader = LogReader(remote, self.blobs)
            await reader.catch_up()
            return reader.board

    def said(self, name: str, event: str) -> list[dict[str, Any]]:
        """Lines of a member's log file about an event."""
        lines = self.net.log(name).read_text().splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [line for line in found if line.get("event") == event]

    async def until_said(self, name: str, event: str) -> dict[str, Any]:
        """Wait until a member has logged an event; returns the first such line."""
        while not (found := self.said(name, event)):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.05)
        return found[0]

    # ---- the command line -------------------------------------------------------------------

    def command(self, *words: str | Path, online: bool = True) -> subprocess.CompletedProcess[str]:
        """Run ``identic``; answers are JSON."""
        folder = self.net.folder
        card = folder / self.net.coordinator / f"{self.net.coordinator}.card"
        if not card.exists():
            card = folder / "client" / "peers" / f"{self.net.coordinator}.card"
        where = ["--coordinator", self.net.address(self.net.coordinator), "--card", card]
        asked = [*words, *where, "--identity", folder / "client"] if online else list(words)
        return identic(*asked)


def identic(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ``identic`` with ``--json``."""
    command = [sys.executable, "-m", "identic.node.cli.main", *(str(w) for w in words), "--json"]
    environment = {**os.environ, "IDENTIC_CONFIG": ""}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def members(**roles: str) -> list[Member]:
    """A coordinator, and members by name with their roles, for several jobs at a time."""
    settings: dict[str, dict[str, object]] = {
        "solver": {"max_jobs": 8, "stake": "1000"},
        "verifier": {},
        "whistleblower": {"stake": "1000"},
    }
    return [
        Member("hub", "coordinator"),
        *(Member(name, role, settings[role]) for name, role in roles.items()),
    ]


def running(net: LocalNetwork, later: Sequence[str] = ()) -> Iterator[Town]:
    """Start a network that is used from many event loops, and stop it in the end.

    Args:
        net: not started yet.
        later: members that are not started.
    """

    async def start() -> None:
        net.prepare()
        await net.up(net.coordinator)
        await net.up(*(name for name in net.members if name not in later))

    try:
        asyncio.run(start())
        yield Town(net)
    finally:
        asyncio.run(net.stop())


def roots(job: Job) -> tuple[Digest, ...]:
    """State roots that a job's solver committed to."""
    return tuple(mark.state_root for mark in job.marks)


def names(town: Town, parties: Sequence[PartyId]) -> set[str]:
    """Names of parties."""
    known = {town.party(name): name for name in (*town.net.members, "client")}
    return {known[party] for party in parties}
