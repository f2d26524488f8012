"""Which operators a process computes with: those of the CPU, or those of a CUDA device.

A device is taken only after it gave the known bits. ``auto`` goes to the CPU where none can be
taken, and says why; a device that was asked for by name is used or refused.

Spec: docs/spec/execution.md (EXE-7, EXE-20, EXE-22 to EXE-24).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from identic.kernels import _native
from identic.kernels.backend import Backend
from identic.kernels.cpu_backend import CpuBackend
from identic.node.execution.selftest import check_bits, check_device, check_device_again
from identic.node.worker import cards
from identic.node.worker.devices import AUTO, CPU, number
from identic.protocol.errors import LocalError, Unsound
from identic.protocol.program.plan import StepPlan

AGAIN_S: Final = 60.0
"""Longest time of a device's work between two self-tests, in seconds."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Wanted:
    """What is asked for.

    Attributes:
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        threads: of the CPU's operators.
        vector: vector path of the CPU's operators, or ``auto``.
    """

    device: str
    threads: int
    vector: str = "auto"


class Taken:
    """The operators that were taken, and why.

    Attributes:
        backend: runs operators.
        device: ``cpu``, ``cuda:0`` and the like.
        why: in a few words.
    """

    def __init__(
        self, backend: Backend, device: str, why: str, clock: Clock = time.monotonic
    ) -> None:
        self.backend = backend
        self.device = device
        self.why = why
        self._clock = clock
        self._tested = clock()

    def check(self) -> None:
        """Refuse to hand out what was computed on a machine that is not sound any more.

        Raises:
            Unsound: the float environment was changed.
            DeviceFault: the device gives other bits than it must.
        """
        check_float_environment()
        # EXE-23: a device is tested again before what it computed for a minute is handed out.
        if self.device != CPU and self._clock() - self._tested >= AGAIN_S:
            check_device_again(self.backend, self.device)
            self._tested = self._clock()


def take(wanted: Wanted, plan: StepPlan | None = None) -> Taken:
    """Take what is asked for, after its self-test.

    Args:
        wanted: device, threads and vector path.
        plan: the step that it must have room for, if that is known.

    Raises:
        LocalError: there is no such vector path.
        Unsound: the device is not here, or has no room for the step; or what was asked for does
            not give the known bits.
    """
    index = number(wanted.device)
    cpu = native_backend(wanted.threads, wanted.vector)
    check_bits(cpu)
    if index is None:
        return Taken(cpu, CPU, "as configured")
    try:
        card = cards.opened(index)
        check_device(card, cpu, card.name)
        if plan is not None:
            card.check_room(plan)
    except LocalError as error:
        # EXE-22: a device that was asked for is used or refused; otherwise the CPU computes.
        if wanted.device != AUTO:
            # EXE-24: who cannot have its device cannot tell, and is not held for late instead.
            raise _unsound(error) from error
        return Taken(cpu, CPU, error.problem)
    return Taken(card, card.name, "it gives the known bits")


def _unsound(error: LocalError) -> Unsound:
    """The error as one about this machine, and so about nobody else."""
    return error if isinstance(error, Unsound) else Unsound(error.problem, remedy=error.remedy)


def native_backend(threads: int, path: str) -> CpuBackend:
    """The native operators of this process, on a vector path, in a sound float environment.

    Raises:
        LocalError: the machine lacks the path, or flushes subnormals for good.
    """
    if path != "auto" and path not in _native.paths():
        raise LocalError(
            f"this machine has no vector path {path!r}",
            remedy=f"set vector to one of auto, {', '.join(_native.paths())}",
        )
    _native.set_path(path)
    backend = CpuBackend(threads)
    _native.reset_float_environment()
    check_float_environment()
    return backend


def check_float_environment() -> None:
    """Refuse to go on, or to hand out what was computed, in an unsound float environment.

    Raises:
        Unsound: a thread flushes subnormals or rounds otherwise than to nearest.
    """
    found = _native.float_environment()
    # EXE-7: no thread flushes subnormals or rounds otherwise than to nearest.
    if found["ftz"] or found["daz"] or found["rounding"] != "nearest":
        raise Unsound(
            f"the float environment of this machine is {found}",
            remedy="run the node outside of whatever changes it; see `identic doctor`",
        )
