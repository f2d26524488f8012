"""Short runs on the device end in the known roots, and in those of the CPU.

``golden.json`` has the roots; ``python -m tests.device.roots`` computes them on the CPU and writes
it. A program depends on the version of torch that captured it: one that is not the stored one, or
starts from other numbers, is held to the CPU alone.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
        state, data = list(self.state), executor.hold(self.data)
        for step in range(steps):
            state = executor.consume(state, data, self.seed, step)
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


def _captured(job: Any) -> Start:
    # Only here, since it imports torch.
    from identic.node.capture import capture  # noqa: PLC0415

    captured = capture(job)
    return Start(captured.program, list(captured.state), list(captured.data), job.seed)


def _gpt() -> Start:
    return _captured(runpy.run_path(str(EXAMPLES / "gpt_docs.py"))["job"]())


def _resnet() -> Start:
    """The example's model on noise: its digits are in a package that may not be here."""
    import identic  # noqa: PLC0415

    example = runpy.run_path(str(EXAMPLES / "resnet_digits.py"))
    images = identic.initial((256, 1, 8, 8), seed=2, stream=0, scale=1.0)
    job = identic.TrainingJob(
        model=example["ResNet18"](8, channels=1, classes=10, small=True),
        loss=example["loss"],
        optimizer=identic.SGD(lr=0.1, momentum=0.9, weight_decay=5e-4),
        data=identic.Rows(images, np.arange(256) % 10, batch=64),
        steps=8,
        seed=1,
    )
    return _captured(job)


RUNS: dict[str, tuple[Callable[[], Start], int]] = {
    "mlp": (_mlp, 8),
    "the demo's GPT": (_gpt, 4),
    "a ResNet-18": (_resnet, 2),
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
