"""The CUDA devices of this machine: opened, looked at, and told apart from those that are missing.

Spec: docs/spec/execution.md (EXE-22, EXE-24).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any, Final, Protocol

from identic.kernels.arrays import Array
from identic.kernels.backend import Run
from identic.kernels.cuda.survey import Survey
from identic.kernels.cuda_backend import CudaBackend
from identic.protocol.errors import LocalError
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import StepPlan

INSTALL: Final = (
    "pip install 'identic[cuda]'; for a driver of CUDA 13 cupy-cuda13x nvidia-cuda-nvrtc"
)
"""What to do where CuPy is missing."""


class Card(Protocol):
    """The operators on a device."""

    @property
    def name(self) -> str:
        """``cuda:0`` and the like."""
        ...

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        """Result of one operator."""
        ...

    def compile(self, plan: StepPlan, loads: Sequence[Array] = (), *, given: bool = True) -> Run:
        """A step prepared."""
        ...

    def check_room(self, plan: StepPlan) -> None:
        """Refuse a step that the device has no room for.

        Raises:
            LocalError: names what the step needs and what there is.
        """
        ...


def installed() -> bool:
    """Whether CuPy is here; without it no device is asked for."""
    return importlib.util.find_spec("cupy") is not None


def opened(index: int) -> Card:
    """The operators on a device.

    Raises:
        LocalError: CuPy or a driver is missing, or there is no such device.
    """
    card: Card = CudaBackend(_cupy_device().CupyDevice(index))
    return card


def survey() -> Survey:
    """Look at the devices of this machine, without computing anything on them.

    Raises:
        LocalError: CuPy or a driver is missing.
    """
    found: Survey = _cupy_device().survey()
    return found


def _cupy_device() -> Any:
    """The module that needs CuPy, loaded only here: a node without a device goes without."""
    if not installed():
        raise LocalError("CuPy is not installed", remedy=INSTALL)
    try:
        return importlib.import_module("identic.kernels.cuda.cupy_device")
    except ImportError as error:
        raise LocalError(f"CuPy does not load: {error}", remedy=INSTALL) from error


def raised(error: Exception) -> bool:
    """Whether an error comes out of CuPy: a device that has failed, wherever that was noticed."""
    return type(error).__module__.partition(".")[0] in {"cupy", "cupy_backends"}
