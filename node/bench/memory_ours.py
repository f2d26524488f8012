"""A process that runs steps of a captured job and prints the peak of its memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from identic.kernels import _native
from identic.kernels.arrays import NUMPY, Array
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.executor import Executor
from identic.node.bench.memory import STEPS, Start
from identic.protocol.program.codec import load
from identic.protocol.program.types import Program
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits


def _state(program: Program) -> list[Array]:
    """A state of the program's shapes: parameters around 0, all else 0."""
    random, drawn = np.random.default_rng(1), len(program.parameters)
    state = [np.empty(v.type.shape, NUMPY[v.type.dtype]) for v in program.state]
    for number, array in enumerate(state):
        # Written once each, so that the memory is there.
        array.fill(0)
        if number < drawn and array.dtype == np.float32:
            random.standard_normal(dtype=np.float32, out=array)
            np.multiply(array, np.float32(0.02), out=array)
    return state


def main(folder: Path) -> None:
    """Steps of the job that ``memory_torch`` wrote down."""
    _native.set_threads(1)
    start = Start.here()
    program = load((folder / "program").read_bytes(), Limits())
    data = [np.load(folder / f"{i}.npy") for i in range(len(program.data))]
    executor, state = Executor(unroll(program), CpuBackend()), _state(program)
    for step in range(STEPS):
        state = executor.consume(state, data, 1, step)
    sys.stdout.write(f"{start.peak()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
