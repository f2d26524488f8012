"""What executes one operator: the same bits from every backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from identic.kernels.arrays import Array
from identic.protocol.ids import Digest
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import StepPlan


class Backend(Protocol):
    """A way to run operators on this machine."""

    @property
    def name(self) -> str:
        """Word for screens and receipts."""
        ...

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of one operator, a new row-major array of type ``call.output``.

        Inputs have the types of ``call.inputs``; they may be views with any strides, and are
        not changed.
        """
        ...


class Run(Protocol):
    """A prepared step."""

    def __call__(self, loads: list[Array], *, given: bool = False) -> list[Array]:
        """The arrays of the plan's outputs from those of its loads, both in plan order.

        Args:
            loads: numpy's, or the backend's.
            given: whether nobody needs the state among the loads any more. The list is then
                emptied, and a backend with a device may write new tensors over old ones.
        """
        ...


@runtime_checkable
class Compiles(Protocol):
    """A backend that can prepare a whole step."""

    def compile(self, plan: StepPlan, loads: Sequence[Array] = (), *, given: bool = True) -> Run:
        """The step prepared.

        Args:
            plan: the step.
            loads: what is known of the first loads: what lies where they are read needs no room.
            given: whether the state is given to the step.

        Raises:
            LocalError: a device has no room for the step.
        """
        ...


@runtime_checkable
class Holds(Protocol):
    """A backend whose prepared steps read and leave tensors on a device."""

    def hold(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays on the device.

        Raises:
            LocalError: the device has no room.
        """
        ...

    def chunk_roots(self, arrays: Sequence[Array]) -> list[Digest]:
        """Root over the chunks of each array, numpy's or the device's (COM-3)."""
        ...
