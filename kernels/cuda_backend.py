"""The operators on a CUDA device, by launches of kernels below ``kernels/*/cuda*.cu``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from identic.kernels.arrays import NUMPY, Array
from identic.kernels.backend import Run
from identic.kernels.compiled import Prepared
from identic.kernels.cuda.device import Device
from identic.kernels.cuda.engine import CudaEngine
from identic.kernels.cuda.measuring import GRAIN, MeasuringDevice
from identic.kernels.hashing import cuda as hashing
from identic.kernels.operators import KERNELS
from identic.protocol.errors import LocalError
from identic.protocol.ids import Digest
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import Load, Source, StepPlan

ASIDE = 1 << 27
"""Bytes kept free for the code of kernels, and for what lies unused between blocks of memory."""


class CudaBackend:
    """Runs operators on a device; the results of prepared steps stay there.

    Args:
        device: what holds arrays and launches.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.engine = CudaEngine(device)
        self._prepared: tuple[StepPlan, Prepared] | None = None

    @property
    def name(self) -> str:
        """The device's: ``cuda:0``."""
        return self.device.name

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of one operator as a new numpy array; inputs are numpy's or the device's.

        Raises:
            LocalError: the device has no room.
            DeviceFault: the device has failed.
        """
        arrays = [self.engine.held(x) for x in inputs]
        return self.device.download(KERNELS[call.op.name](self.engine, call, arrays))

    def compile(self, plan: StepPlan, loads: Sequence[Array] = (), *, given: bool = True) -> Run:
        """The whole step prepared; one step of it runs at a time.

        Loads may be numpy's or the device's. Outputs are the device's; each lives as long as
        the caller holds it, and its memory is then used again. A state that is given to a step
        may be written over by the next one.

        Args:
            plan: the step.
            loads: what lies on the device of these needs no room beside itself.
            given: whether the state is given away at each step; one of numpy's always is, since
                the device has a copy.

        Raises:
            LocalError: the device has no room for the step.
        """
        self.check_room(plan, loads, given=given)
        return self._of(plan).compile()

    def hold(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays on the device.

        Raises:
            LocalError: the device has no room.
        """
        return [self.engine.held(a) for a in arrays]

    def chunk_roots(self, arrays: Sequence[Array]) -> list[Digest]:
        """Root over the chunks of each array, computed where it lies (COM-3)."""
        return hashing.chunk_roots(self.device, arrays)

    def check_room(
        self, plan: StepPlan, loads: Sequence[Array] = (), *, given: bool = True
    ) -> None:
        """Refuse a step that the device has no room for, before anything runs.

        Args:
            plan: the step.
            loads: arrays of its loads that exist; those of the device are not counted again.
            given: whether each step may take the memory of the state before it.

        Raises:
            LocalError: names what the step needs and what there is.
        """
        device, held = self.device, [a for a in loads if self.device.holds(a)]
        need = need_bytes(
            plan, device.multiprocessors, device.compute_capability, given=given or not held
        )
        need -= _lying(self.engine, held)
        free = device.free()
        if need > free:
            raise LocalError(
                f"a step needs {_mib(need)} on {self.name}, which has {_mib(free)} free",
                remedy="free the device, take another with device = cuda:N, or set device to cpu",
            )

    def _of(self, plan: StepPlan) -> Prepared:
        """The plan laid out, once."""
        if self._prepared is None or self._prepared[0] is not plan:
            self._prepared = plan, Prepared(plan, self.engine)
        return self._prepared[1]


def need_bytes(
    plan: StepPlan,
    multiprocessors: int = 132,
    compute_capability: int = 90,
    *,
    given: bool = True,
) -> int:
    """What a step takes on a device, with the root of the state after it, by its plan alone.

    A step runs on a device that only counts, so that what launchers put aside is in it.

    Args:
        plan: the step.
        multiprocessors: of the device.
        compute_capability: of the device.
        given: whether the step may take the memory of the state before it.

    Raises:
        LocalError: an operator is too large for any device.
    """
    device = MeasuringDevice(multiprocessors, compute_capability)
    step = Prepared(plan, CudaEngine(device)).compile()
    loads = [_load(device, load) for load in plan.loads]
    state = step(loads, given=given)
    hashing.chunk_roots(device, state)
    return device.peak + ASIDE


def _load(device: MeasuringDevice, load: Load) -> Array:
    """An array for a load: where a caller would have it."""
    shape, dtype = load.type.shape, NUMPY[load.type.dtype]
    on_host = load.source is Source.CONTEXT
    return np.zeros(shape, dtype) if on_host else device.empty(shape, dtype)


def _lying(engine: CudaEngine, held: Sequence[Array]) -> int:
    """Bytes of a pool that arrays of the device take, each counted once."""
    total, end = 0, 0
    for span in sorted((engine.span(a) for a in held), key=lambda s: (s.start, s.stop)):
        if span.start >= end:
            total += -(-len(span) // GRAIN) * GRAIN
            end = span.stop
    return total


def _mib(count: int) -> str:
    return f"{count / (1 << 20):.1f} MiB"
