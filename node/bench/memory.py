"""Peak memory of training steps, each side in a process of its own that does nothing else.

A peak is counted above what the process held once its libraries were loaded. Ours is that of a
node: a program, its data and a state, no torch. The peer's is that of the same job in eager torch.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from identic.node.bench.rows import Footprint
from identic.protocol.errors import LocalError

STEPS = 3
"""Steps of a measurement: the first may make room that later ones use again."""

JOBS = {
    "memory of a gpt step": "gpt_docs",
    "memory of a resnet-18 step": "resnet18",
    "memory of a gpt-2 small step": "gpt2_small",
}

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Start:
    """What the calling process held when it was ready to begin, in bytes."""

    bytes: int

    @classmethod
    def here(cls) -> Start:
        """Forget the peak so far; from now on a new one counts."""
        _CLEAR.write_text("5", encoding="ascii")
        return cls(_field("VmRSS"))

    def peak(self) -> int:
        """Most bytes since then, above those of then."""
        return _field("VmHWM") - self.bytes


def _field(name: str) -> int:
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    found = next(line for line in lines if line.startswith(f"{name}:"))
    return int(found.split()[1]) * 1024


def footprints(words: tuple[str, ...], environment: dict[str, str]) -> Iterator[Footprint]:
    """Measure the jobs whose name holds one of the words; all of them without words.

    Args:
        words: as of ``--only``.
        environment: of the processes.

    Raises:
        LocalError: a process fails.
    """
    for name, job in JOBS.items() if _CLEAR.exists() else ():
        if not words or any(word in name for word in words):
            found = _footprint(name, job, environment)
            if found is not None:
                yield found


def _footprint(name: str, job: str, environment: dict[str, str]) -> Footprint | None:
    """One row, or ``None`` where the job cannot be made here."""
    with tempfile.TemporaryDirectory() as folder:
        if not _ask("torch", ["capture", job, folder], environment):
            return None
        ours = int(_ask("ours", [folder], environment))
        theirs = int(_ask("torch", ["steps", job, folder], environment))
    return Footprint(name, ours, "torch", theirs, ours / theirs)


def _ask(side: str, arguments: list[str], environment: dict[str, str]) -> str:
    """What the process of a side prints."""
    command = [sys.executable, "-m", f"identic.node.bench.memory_{side}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        raise LocalError(
            f"measuring the memory of {side} ended with {done.returncode}",
            remedy="what it says stands above",
        )
    return done.stdout.strip()
