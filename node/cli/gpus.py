"""Devices in ``identic doctor``: what is there, and whether a node would compute on it."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from pathlib import Path

from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda.survey import Found
from identic.node.cli import words
from identic.node.cli.screens.report import CheckLine, Outcome
from identic.node.execution import vectors
from identic.node.execution.selftest import check_device
from identic.node.worker import cards
from identic.node.worker.devices import number
from identic.protocol.errors import LocalError

FINE, BUT, NO = Outcome.FINE, Outcome.BUT, Outcome.NO

DRIVER = Path("/proc/driver/nvidia/gpus")
"""Where the driver lists its devices, CuPy or not."""
AMD = Path("/dev/kfd")


@dataclass(frozen=True)
class Tested:
    """A device and its self-test.

    Attributes:
        device: what it is.
        problem: why a node would not compute on it; empty if it would.
        remedy: what to do about that.
    """

    device: Found
    problem: str
    remedy: str


def examine() -> tuple[tuple[CheckLine, ...], list[dict[str, object]]]:
    """Look at the devices, and run the self-test of a node on each.

    Returns:
        The lines of the screen, and each device as a JSON value.
    """
    models = listed()
    try:
        found = cards.survey()
    except LocalError as error:
        return (_without(models, error),), []
    count = words.plural(len(found.devices), "device")
    text = f"CuPy {found.cupy} with CUDA {found.runtime}, driver up to CUDA {found.driver}, {count}"
    tested = [_tested(device) for device in found.devices]
    lines = (CheckLine("gpu", FINE, text), *(_line(one) for one in tested))
    return lines, [_value(one) for one in tested]


def listed() -> list[str]:
    """Models that a driver lists, without any library."""
    names = []
    for path in sorted(DRIVER.glob("*/information")):
        with contextlib.suppress(OSError):
            text = path.read_text(errors="replace").splitlines()
            models = [line for line in text if line.startswith("Model:")]
            names += [line.partition(":")[2].strip() for line in models]
    return names


def _without(models: list[str], error: LocalError) -> CheckLine:
    """The line of a machine on which no device can be used."""
    if not models and not cards.installed():
        other = "an AMD device; not used by this version" if AMD.exists() else ""
        return CheckLine("gpu", FINE, other or "none found; none needed")
    name = ", ".join(models) or "none found"
    return CheckLine("gpu", BUT, f"{name}; not used: {error.problem}", error.remedy)


def _tested(device: Found) -> Tested:
    index = number(device.name)
    try:
        card = cards.opened(index or 0)
        # EXE-22: what a node would ask of the device before it computes on it.
        check_device(card, CpuBackend(), device.name)
    except LocalError as error:
        return Tested(device, error.problem, error.remedy)
    return Tested(device, "", "")


def _line(tested: Tested) -> CheckLine:
    device = tested.device
    free, size = words.size(device.free_bytes), words.size(device.memory_bytes)
    text = f"{device.model}, sm_{device.compute_capability}, {free} free of {size}; "
    if tested.problem:
        return CheckLine(device.name, NO, text + tested.problem, tested.remedy)
    known = vectors.known()
    calls = sum(len(one.calls) for one in known)
    text += f"{calls} calls of {len(known)} operators and a small program give the known bits"
    return CheckLine(device.name, FINE, text)


def _value(tested: Tested) -> dict[str, object]:
    outcome = {"sound": not tested.problem, "problem": tested.problem or None}
    return {**asdict(tested.device), **outcome}
