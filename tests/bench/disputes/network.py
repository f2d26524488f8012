"""The processes of a measured dispute: a coordinator and two parties, on loopback or on a link."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from identic.node.demo.network import LocalNetwork, Member
from tests.bench.disputes import switch

HUB, LIAR, DOUBTER = "hub", "liar", "doubter"
PARTY = ("-m", "tests.bench.disputes.party")
ROOT = Path(__file__).resolve().parents[3]
PORT = 7400


@dataclass(frozen=True)
class Link:
    """What lies between the processes.

    Attributes:
        name: in the table and on the command line.
        delay_ms: of each frame, one way; 0 for loopback.
        loss: share of frames that are lost.
    """

    name: str
    delay_ms: float = 0.0
    loss: float = 0.0

    @property
    def words(self) -> str:
        """What it is, for the head of the table."""
        if not self.delay_ms:
            return f"{self.name}: gRPC with mutual TLS over 127.0.0.1"
        return (
            f"{self.name}: a network namespace for each process, {2 * self.delay_ms:.0f} ms there "
            f"and back, {self.loss:.1%} of the frames lost, by a switch in user space"
        )


LINKS = {link.name: link for link in (Link("loopback"), Link("50 ms", 25.0, 0.002))}


def members() -> list[Member]:
    """A coordinator, who lies, and who doubts."""
    return [
        Member(HUB, "coordinator"),
        Member(LIAR, "solver", {"max_jobs": 1, "stake": "1000"}, PARTY),
        Member(DOUBTER, "whistleblower", {"stake": "1000"}, PARTY),
    ]


class Network(LocalNetwork):
    """The three processes over a link; use as an async context manager.

    Args:
        folder: where everything lies.
        blobs: of the job, which every process has already.
        link: what lies between them.
        threads: threads of each party's operators.
    """

    def __init__(self, folder: Path, blobs: Path, link: Link, threads: int) -> None:
        super().__init__(folder, members(), threads=threads)
        self._stock = blobs
        self._link = link
        self._switch: subprocess.Popen[str] | None = None
        self._places = [f"ib{os.getpid()}{name[0]}" for name in (*self.members, "outside")]

    async def __aenter__(self) -> Self:
        """Start the link and the coordinator; parties are started row by row."""
        if self._link.delay_ms:
            self._switch = self._switched()
        try:
            self.prepare()
            for name in (*self.members, "client"):
                _link_all(self._stock, self.folder / name / "blobs")
            await self.up(HUB)
        except BaseException:
            await self.stop()
            raise
        return self

    async def stop(self) -> None:
        """Stop the processes, then the link."""
        await super().stop()
        if self._switch is not None and self._switch.stdin is not None:
            self._switch.stdin.close()
            self._switch.wait()

    def address(self, name: str) -> str:
        """Where a member listens."""
        if not self._link.delay_ms:
            return super().address(name)
        return f"{switch.address(list(self.members).index(name))}:{PORT}"

    def command(self, name: str) -> list[str]:
        """How a member is started."""
        run = [sys.executable, *self.members[name].program, "--config", str(self.config(name))]
        if not self._link.delay_ms:
            return run
        return ["ip", "netns", "exec", self._places[list(self.members).index(name)], *run]

    def start(self, name: str) -> None:
        """Start a member, unless it runs."""
        if self.running(name):
            return
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self.command(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=ROOT,
                env={**os.environ, "IDENTIC_CONFIG": ""},
            )

    def cpu_s(self, name: str) -> float:
        """Time on the processor that a member has taken so far."""
        times = psutil.Process(self._processes[name].pid).cpu_times()
        return float(times.user + times.system)

    def _switched(self) -> subprocess.Popen[str]:
        command: Sequence[str] = (
            *(sys.executable, "-m", "tests.bench.disputes.switch", *self._places),
            *("--delay-ms", str(self._link.delay_ms), "--loss", str(self._link.loss)),
        )
        started = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if started.stdout is None or started.stdout.readline().strip() != "ready":
            raise SystemExit("the switch does not start; see above")
        return started


def _link_all(source: Path, target: Path) -> None:
    """Give a store all blobs of another one, as hard links."""
    for path in source.glob("??/*"):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            os.link(path, place)
