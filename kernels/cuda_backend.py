"""The operators on a CUDA device, by launches of kernels below ``kernels/*/cuda*.cu``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from identic.kernels.arrays import Array
from identic.kernels.compiled import compile_step
from identic.kernels.cuda.device import Device
from identic.kernels.cuda.engine import CudaEngine
from identic.kernels.hashing.cuda import chunk_roots
from identic.kernels.operators import KERNELS
from identic.protocol.ids import Digest
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import StepPlan


class CudaBackend:
    """Runs operators on a device.

    Args:
        device: what holds arrays and launches.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.engine = CudaEngine(device)

    @property
    def name(self) -> str:
        """The device's: ``cuda:0``."""
        return self.device.name

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of one operator as a new numpy array; inputs are numpy's or the device's."""
        arrays = [self.engine.held(x) for x in inputs]
        return self.device.download(KERNELS[call.op.name](self.engine, call, arrays))

    def chunk_roots(self, arrays: Sequence[Array]) -> list[Digest]:
        """Root over the chunks of each array, hashed on the device where it lies there (COM-3)."""
        return chunk_roots(self.device, arrays)

    def compile(self, plan: StepPlan) -> Callable[[list[Array]], list[Array]]:
        """The whole step prepared; one step of it runs at a time."""
        return compile_step(plan, self.engine)
