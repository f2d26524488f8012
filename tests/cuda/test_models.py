"""Models of all kinds that people train come to the CPU's states on a device."""

from __future__ import annotations

import pytest

from identic.kernels.arrays import Array, to_bytes
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda_backend import CudaBackend
from identic.kernels.executor import Executor
from identic.node.capture import capture
from identic.protocol.program.unroll import unroll
from tests.capture import zoo
from tests.cuda.shim.device import ShimDevice


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(zoo.ZOO))
def test_prg_10__models_that_people_train(name: str) -> None:
    job = zoo.ZOO[name].job()
    captured = capture(job)
    states = []
    for backend in (CpuBackend(), CudaBackend(ShimDevice(2))):
        executor = Executor(unroll(captured.program), backend)
        state: list[Array] = captured.state
        for step in range(2):
            state = executor.step(state, captured.data, job.seed, step)
        states.append([to_bytes(a) for a in state])
    assert states[0] == states[1]
