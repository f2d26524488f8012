"""What a part of the checks is given: a device, the CPU's operators, and how much to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from identic.kernels.arrays import Array
from identic.kernels.backend import Backend
from identic.kernels.cuda.device import Device
from identic.kernels.cuda_backend import CudaBackend
from identic.kernels.operators import KERNELS
from identic.protocol.ops.base import Call


@dataclass(frozen=True)
class Setting:
    """Where and how much.

    Attributes:
        device: what is checked.
        cpu: the CPU's operators, where they could be built.
        least: whether only the smallest form is wanted, on a stand-in of a device.
        torch_device: where torch computes what we are compared with.
    """

    device: Device
    cpu: Backend | None
    least: bool = False
    torch_device: str = "cuda"

    @cached_property
    def backend(self) -> CudaBackend:
        """The operators on the device."""
        return CudaBackend(self.device)

    def held(self, arrays: Sequence[Array]) -> list[Any]:
        """Arrays on the device."""
        return [self.device.upload(a) for a in arrays]

    def run(self, call: Call, inputs: Sequence[Any]) -> Any:
        """Result of a call, on the device."""
        return KERNELS[call.op.name](self.backend.engine, call, inputs)


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Attributes:
        name: what.
        ok: how it came out; ``None`` where nothing can be told.
        note: more about it, for people.
    """

    name: str
    ok: bool | None
    note: str = field(default="")
