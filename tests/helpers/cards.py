"""Stand-ins for the operators on a device: those of the CPU, with something wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from identic.kernels.arrays import Array
from identic.kernels.backend import Run
from identic.kernels.cpu_backend import CpuBackend
from identic.kernels.cuda.device import DeviceFault
from identic.node.execution.elements import with_word, word_at
from identic.protocol.errors import LocalError
from identic.protocol.ops.base import Call
from identic.protocol.program.plan import StepPlan


class Sound:
    """A device without fault, of any size."""

    name = "cuda:0"

    def __init__(self) -> None:
        self.inner = CpuBackend()
        self.steps = 0
        """Steps that ran."""

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        return self.inner.run(call, inputs)

    def compile(self, plan: StepPlan, loads: Sequence[Array] = (), *, given: bool = True) -> Run:
        prepared = self.inner.compile(plan, loads, given=given)

        def step(loads: list[Array], *, given: bool = False) -> list[Array]:
            self.before_step(self.steps)
            self.steps += 1
            return prepared(loads, given=given)

        return step

    def before_step(self, number: int) -> None:
        """Called before each prepared step; the self-test has two."""

    def check_room(self, plan: StepPlan) -> None:
        """There is room."""


class Small(Sound):
    """A device with no room for a step."""

    def check_room(self, plan: StepPlan) -> None:
        """There is none."""
        del plan
        raise LocalError("cuda:0 has 1 KiB free, and a step needs 2 KiB", remedy="take the CPU")


class Vanishing(Sound):
    """A device that goes away at a step after the self-test's two.

    Args:
        at: number of the step, counted from 0.
    """

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def before_step(self, number: int) -> None:
        if number - 2 >= self.at:
            raise DeviceFault("cuda:0 has gone", remedy="look at the card")


class Wrong(Sound):
    """A device with one wrong bit in the results of an operator.

    Args:
        operator: which.
        after: results of that operator that are still right.
    """

    def __init__(self, operator: str, after: int = 0) -> None:
        super().__init__()
        self.operator = operator
        self.after = after

    def run(self, call: Call, inputs: Sequence[Array]) -> Array:
        result = super().run(call, inputs)
        if call.op.name != self.operator or not result.size:
            return result
        self.after -= 1
        return result if self.after >= 0 else with_word(result, 0, word_at(result, 0) ^ 1)


class WrongSteps(Sound):
    """A device whose single operators are right, and every second prepared step is not."""

    def compile(self, plan: StepPlan, loads: Sequence[Array] = (), *, given: bool = True) -> Run:
        prepared = super().compile(plan, loads, given=given)

        def step(loads: list[Array], *, given: bool = False) -> list[Array]:
            first, *rest = prepared(loads, given=given)
            if self.steps % 2:
                return [first, *rest]
            return [with_word(first, 0, word_at(first, 0) ^ 1), *rest]

        return step


WORKER = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from identic.node.worker import cards
from identic.node.worker.main import main
from identic.protocol.errors import LocalError
from tests.helpers.cards import Small, Sound, Vanishing, Wrong
marker = pathlib.Path(sys.argv[3])
def opened(index):
    if marker.exists():
        raise LocalError("there is no device any more", remedy="")
    if sys.argv[4] == "once":
        marker.touch()
    return eval(sys.argv[2])
cards.installed, cards.opened = lambda: True, opened
sys.exit(main())
"""


def worker(card: str, marker: Path, *, once: bool = False) -> tuple[str, ...]:
    """The command of a worker process whose device is one of these.

    Args:
        card: Python's words for it, such as ``Vanishing(at=3)``.
        marker: a file; once it exists there is no device.
        once: whether the first process makes that file.
    """
    root = str(Path(__file__).resolve().parents[2])
    return (sys.executable, "-c", WORKER, root, card, str(marker), "once" if once else "always")
