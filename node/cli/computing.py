"""What a command computes with: the option ``--device``, and the operators that it takes."""

from __future__ import annotations

from typing import Annotated

import typer

from identic.node.cli.faults import Usage
from identic.node.cli.machine import usable_cores
from identic.node.cli.output import current
from identic.node.worker import cards
from identic.node.worker.backends import Taken, Wanted, take
from identic.node.worker.devices import AUTO, CPU, checked
from identic.protocol.errors import LocalError
from identic.protocol.program.plan import StepPlan

DeviceOption = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help="auto, cpu, cuda or cuda:N. All give the same bits."
    ),
]


def operators(device: str, threads: int, plan: StepPlan, vector: str = "auto") -> Taken:
    """Take what was asked for, and say so where there was a choice.

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        threads: of the CPU's operators; 0 for every core.
        plan: the step that the device must have room for.
        vector: vector path of the CPU's operators, or ``auto``.

    Raises:
        Usage: there is no such device.
        LocalError: this machine does not have it, or it is not sound, or has no room.
    """
    try:
        checked(device)
    except LocalError as error:
        raise Usage(error.problem, remedy=error.remedy) from error
    taken = take(Wanted(device, threads or usable_cores(), vector), plan)
    if taken.device != CPU:
        current().say(f"computing on {taken.device}")
    elif device == AUTO and cards.installed():
        current().say(f"computing on the CPU: {taken.why}")
    return taken
