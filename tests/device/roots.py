"""Short runs on the device end in the known roots, and in those of the CPU.

``golden.json`` has the roots; ``python -m tests.device.roots`` computes them on the CPU and writes
it. A program depends on the version of torch that captured it: one that is not the stored one, or
starts from other numbers, is held to the CPU alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from identic.kernels.arrays import Array
from identic.kernels.backend import Backend
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.execution.states import commit_state, unpack_tensors
from identic.protocol.commitments import StateHeader
from identic.protocol.ids import Count, StepIndex, Unsigned
from identic.protocol.program.codec import program_digest
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll
from tests.device.setting import Finding, Setting
from tests.helpers.programs import mlp, mlp_data, mlp_state

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.json"
EXAMPLES = HERE.parents[1] / "examples"


@dataclass(frozen=True)
class Start:
    """A run before its first step."""

    program: Program
    state: list[Array]
    data: list[Array]
    seed: int

    def root(self, state: list[Array], step: int, executor: Executor) -> str:
        """Root of a state, in hex."""
        digest, cursor = program_digest(self.program), step * self.program.examples
        header = StateHeader(digest, Unsigned(self.seed), StepIndex(step), Count(cursor))
        variables = self.program.state
        return commit_state(header, variables, state, executor.chunk_roots).root.hex()

    def end(self, backend: Backend, steps: int) -> str:
        """Root after so many steps, in hex."""
        executor = Executor(unroll(self.program), backend)
        state, data = self.state, executor.hold(self.data)
        for step in range(steps):
            state = executor.step(state, data, self.seed, step)
        return self.root(state, steps, executor)

    def known(self) -> str:
        """What the run follows from: program and initial state."""
        first = self.root(self.state, 0, Executor(unroll(self.program), CpuBackend()))
        return f"{program_digest(self.program).hex()} {first}"


def _mlp() -> Start:
    program = mlp()
    state = unpack_tensors(program.state, b"".join(mlp_state(program)))
    data = unpack_tensors(program.data, b"".join(mlp_data(program)))
    return Start(program, state, data, 3)


def _example(name: str) -> Start:
    # Only here, since it imports torch.
    from identic.node.capture import capture, load_job  # noqa: PLC0415

    job = load_job(f"{EXAMPLES / name}.py:job")
    captured = capture(job)
    return Start(captured.program, list(captured.state), list(captured.data), job.seed)


RUNS: dict[str, tuple[Callable[[], Start], int]] = {
    "mlp": (_mlp, 8),
    "the demo's GPT": (partial(_example, "gpt_docs"), 4),
    "a ResNet-18 of digits": (partial(_example, "resnet_digits"), 2),
}
"""Runs, and how many steps of each."""


def roots(setting: Setting) -> Iterator[Finding]:
    """The last root of each run, on the device."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for name, (make, steps) in list(RUNS.items())[: 1 if setting.least else None]:
        start = make()
        found = start.end(setting.backend, steps)
        stored = golden[name] if golden[name]["start"] == start.known() else None
        if stored is not None:
            yield Finding(f"{name}: the stored root", found == stored["end"], found)
        elif setting.cpu is None:
            yield Finding(f"{name}: the stored root", None, "torch captured another program")
        if setting.cpu is not None:
            want = start.end(setting.cpu, steps)
            yield Finding(f"{name}: the CPU's root", found == want, found)


def made(names: list[str]) -> dict[str, dict[str, str]]:
    """Golden roots of some runs, by the CPU."""
    rows = {}
    for name in names:
        make, steps = RUNS[name]
        start = make()
        rows[name] = {"start": start.known(), "end": start.end(CpuBackend(), steps)}
    return rows


def main() -> int:
    """Write the golden roots."""
    GOLDEN.write_text(json.dumps(made(list(RUNS)), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
