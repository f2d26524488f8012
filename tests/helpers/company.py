"""A coordinator and parties as nodes in this process, with a solver that the test speaks for.

Nodes are daemons with their own folders, keys, blob stores and workers, and speak gRPC over
TLS; only the event loop is one. A member that is not started is spoken for by the test: its
statements carry its own signature, whoever brings them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.blobs import Blobs
from identic.node.config import Config
from identic.node.daemon import Daemon
from identic.node.demo.network import LocalNetwork, Member
from identic.node.execution.loaded import load_job, load_state
from identic.node.execution.training import Trainer, store_model, store_state
from identic.node.rpc.client import Connection
from identic.node.rpc.remote import Remote
from identic.node.submission import Prepared, post
from identic.node.views import RoleStatus
from identic.proofs.envelope import seal
from identic.protocol.commitments import run_leaf
from identic.protocol.encoding import encode
from identic.protocol.ids import Count, Digest
from identic.protocol.job.messages import AcceptJob, Commit, Finish, Mark, Statement, Stored
from identic.protocol.job.run import Frontier, RunHead
from tests.network.town import Ask, Town, prepared

ASK = Ask(steps=12, cadence=2, checkpoint=2, verifiers=1, window_ms=60_000)
"""A job of six marks, whose checkpoints are at marks 2 and 4."""


class Company(Town):
    """The nodes of a test.

    Attributes:
        nodes: those that run, by name.
    """

    def __init__(self, net: LocalNetwork, exits: AsyncExitStack) -> None:
        super().__init__(net)
        self.nodes: dict[str, Daemon] = {}
        self._exits = exits
        self._said = 0

    async def start(self, *names: str) -> None:
        """Start members."""
        for name in names:
            daemon = Daemon(Config.load(self.net.config(name)))
            self.nodes[name] = await self._exits.enter_async_context(daemon)

    async def role(self, name: str) -> RoleStatus:
        """What a node says of its role."""
        status = await self.nodes[name].status(self.party(name))
        return status.roles[0]

    async def speak(self, name: str, statement: Statement) -> None:
        """Say something for a member."""
        hub, own = self.net.coordinator, self.net.identity(name)
        self._said += 1
        message = encode(seal(own.signing_key, self.party(hub), self._said, statement))
        async with Connection(self.net.address(hub), own, self.net.identity(hub).card) as channel:
            await Remote(channel).log.append(message)

    def blob(self, name: str, digest: Digest) -> Path:
        """Where a blob lies on the disk of a node."""
        return self.net.folder / name / "blobs" / digest.hex()[:2] / digest.hex()

    async def posted(self) -> Prepared:
        """Post the job."""
        made = prepared(self.blobs, self.party("client"), ASK)
        async with self.remote() as remote:
            await post(remote, self.net.identity("client"), self.blobs, made)
        return made

    async def accept(self, made: Prepared, solver: str = "sol") -> None:
        """Let a solver that does not run take the job."""
        await self.speak(solver, AcceptJob(made.job, Count(1)))

    async def solve(self, made: Prepared, solver: str = "sol") -> None:
        """Speak for a solver that trained honestly: all marks, checkpoints, the result."""
        blobs = Blobs(self.blobs.folder, 1 << 30)
        job = load_job(made.terms, made.artifacts, blobs)
        trainer = Trainer(job, Executor(job.plan, CpuBackend()))
        state = load_state(job, blobs, made.artifacts.state, 0, made.terms.initial_state)
        frontier = Frontier().append(run_leaf(0, 0, made.terms.initial_state))
        marks: list[Mark] = []
        stored: list[Stored] = []
        for reached in trainer.run(state, 0, made.terms.last_mark):
            state, mark = reached.state, reached.mark
            marks.append(mark)
            frontier = frontier.append(run_leaf(reached.index, mark.step, mark.state_root))
            blob = store_state(job, blobs, int(mark.step), state)
            stored.append(Stored(made.job, Count(1), Count(reached.index), blob))
        model = store_model(job, blobs, state)
        head = RunHead(made.job, Count(frontier.size), frontier.root)
        async with self.remote() as remote:
            for blob in (*(one.blob for one in stored), model):
                await remote.blobs.upload(blobs, blob)
        await self.speak(solver, Commit(made.job, Count(1), Count(1), tuple(marks), head))
        for one in stored:
            if one.mark % made.terms.checkpoint == 0 and one.mark < made.terms.last_mark:
                await self.speak(solver, one)
        await self.speak(solver, Finish(made.job, Count(1), head, model, stored[-1].blob))


@asynccontextmanager
async def company(folder: Path, members: Sequence[Member]) -> AsyncIterator[Company]:
    """Make a coordinator ``hub`` and members; only the coordinator is started."""
    net = LocalNetwork(folder, [Member("hub", "coordinator"), *members])
    net.prepare()
    async with AsyncExitStack() as exits:
        made = Company(net, exits)
        await made.start("hub")
        yield made


def damage(path: Path) -> None:
    """Change one byte of a file, as a bad disk does."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
