"""Runs that are not what the program computes: each is told by its solver, or by a challenger.

A liar's own machine makes its steps in the same false way whenever it is asked, so its
commitments hold together; only the program, or the terms, speak against it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from identic.kernels.arrays import Array
from identic.kernels.executor import Executor, Observer
from identic.node.execution.elements import with_word, word_at
from identic.node.execution.rerun import Rerun
from identic.node.execution.states import Arrays
from identic.protocol.dispute.levels import StepLevel
from identic.protocol.dispute.moves import Children, Move, Side
from identic.protocol.dispute.state import Dispute
from identic.protocol.hashing import sha256
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.types import Attribute, Program
from identic.protocol.program.unroll import unroll
from tests.adversaries.adversary import Adversary, Cost, listed
from tests.helpers.arena import Arena, Crooked, Story, as_it_is, tale

STEP = 3
"""The step that goes wrong; it ends at mark 2, whose state is a checkpoint."""


class FalseRun(Adversary):
    """A solver with a false run, challenged by a verifier that computed the honest one."""

    stopped: ClassVar[tuple[str, ...]] = ("REF-12 at primitive",)
    cost = Cost.BOND
    story: ClassVar[type[Story]] = Story

    @abstractmethod
    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """The state after a step, as the liar has it."""

    def strategy(self, dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
        """The liar's moves: those that its run gives."""
        return as_it_is(dispute, side, execution)

    def attack(self, arena: Arena) -> None:
        """Commit to the false run; a verifier finds another root and challenges."""
        false = tale(arena.blobs, self.step, self.story)
        arena.post().accept().commit(false, upto=4)
        arena.challenge("anna", arena.honest)
        arena.duel({"solver": false, "anna": arena.honest}, {"solver": self.strategy})

    def accuse(self, arena: Arena) -> None:
        """Claim the false run against an honest solver."""
        false = tale(arena.blobs, self.step, self.story)
        arena.post().accept().commit(arena.honest, upto=4)
        arena.challenge("watcher", false)
        arena.duel({"watcher": false, "solver": arena.honest}, {"watcher": self.strategy})


def value_of(plan: StepPlan, op: str, number: int = 0) -> int:
    """Plan value of an operator's occurrence."""
    found = [v for v in range(plan.values) if (p := plan.call(v)) and p.call.op.name == op]
    return found[number]


# ---- results that no operator gives ---------------------------------------------------------


@listed
class WrongElement(FalseRun):
    """One bit of one element."""

    name = "wrong element"
    tries = (
        "One element of one matrix product of one step is another number; the run goes on from it."
    )

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Flip a bit of a product."""
        return wrong_element(trainer, state, step, observer)


def wrong_element(trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
    """The state after a step; in one step a bit of a product is flipped."""
    if step != STEP:
        return trainer.truly(state, step, observer)
    product = value_of(trainer.job.plan, "matmul", 2)

    def watch(number: int, array: Array) -> Array:
        if number == product:
            array = with_word(array, 1, word_at(array, 1) ^ 1 << 22)
        return array if observer is None else observer(number, array)

    return trainer.truly(state, step, watch)


@listed
class WrongOperator(FalseRun):
    """Another function in one place."""

    name = "wrong operator"
    tries = "One operator of one step is computed as another: a difference as a sum."

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Add where the program subtracts."""
        if step != STEP:
            return trainer.truly(state, step, observer)
        plan, seen = trainer.job.plan, {}
        value = value_of(plan, "sub", 0)
        planned = plan.call(value)
        assert planned is not None
        first, second = planned.inputs

        def watch(number: int, array: Array) -> Array:
            if number in planned.inputs:
                seen[number] = array
            if number == value:
                array = np.add(seen[first], seen[second], dtype=np.float32)
            return array if observer is None else observer(number, array)

        return trainer.truly(state, step, watch)


@listed
class DifferentProgram(FalseRun):
    """The job's program with another constant."""

    name = "different program"
    tries = (
        "It trains a program of its own, as long as the job's, with another constant: half "
        "the momentum."
    )

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Execute the other program."""
        if step != STEP:
            return trainer.truly(state, step, observer)
        job = trainer.job
        other = Executor(unroll(changed(job.program)), trainer.executor.backend)
        return other.step(state, job.data, int(job.terms.seed), step, observer)


def changed(program: Program) -> Program:
    """The program with half the momentum."""
    instructions = list(program.update.instructions)
    at = next(i for i, made in enumerate(instructions) if made.op == "full")
    half = Attribute("word", (0x3F000000,))
    kept = tuple(half if a.name == "word" else a for a in instructions[at].attributes)
    instructions[at] = replace(instructions[at], attributes=kept)
    return replace(program, update=replace(program.update, instructions=tuple(instructions)))


@listed
class LongerProgram(DifferentProgram):
    """A program with more operators."""

    name = "longer program"
    tries = "It trains a program of its own with one operator more than the job's."
    stopped = ("DSP-5", "DSP-12 at step")

    def strategy(self, dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
        """Show a step's trace with one value more."""
        if isinstance(dispute.level, StepLevel):
            *values, after = execution.trace_leaves(dispute.level.step)
            return (Children((*values, sha256(b"one more"), after)),)
        return as_it_is(dispute, side, execution)


# ---- loads that are not the job's -----------------------------------------------------------


class FalseLoad(FalseRun):
    """A step on something else than the terms and the state before say."""

    stopped = ("REF-8 at load",)


@listed
class StaleData(FalseLoad):
    """The batch before once more."""

    name = "stale data"
    tries = "One step trains on the batch of the step before once more."

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Take the number of the step before."""
        return trainer.truly(state, step - 1 if step == STEP else step, observer)


@listed
class SwappedBatches(FalseLoad):
    """Two batches in the wrong order."""

    name = "swapped batches"
    tries = "Two steps that follow each other train on each other's batches."

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Swap the step before with the wrong one."""
        return trainer.truly(state, {STEP: STEP - 1, STEP - 1: STEP}.get(step, step), observer)


@listed
class WrongLearningRate(FalseLoad):
    """A schedule of its own."""

    name = "wrong learning rate"
    tries = "One step has ten times the learning rate of the schedule."

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Change the schedule."""
        examples, labels, schedule = trainer.job.data
        other = [examples, labels, schedule * np.float32(10)]
        return trainer.truly(state, step, observer, data=other if step == STEP else None)


@listed
class OwnData(FalseLoad):
    """Other examples."""

    name = "other data"
    tries = "It trains on examples of its own from one step on."

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Reverse the examples."""
        examples, labels, schedule = trainer.job.data
        other = [np.ascontiguousarray(examples[::-1]), labels, schedule]
        return trainer.truly(state, step, observer, data=other if step >= STEP else None)


@listed
class WrongSeed(FalseLoad):
    """Other random numbers."""

    name = "wrong seed"
    tries = "It draws from another seed, as if to choose the luckiest run of many."

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Count the seed up."""
        return trainer.truly(state, step, observer, seed=int(trainer.job.terms.seed) + 1)


# ---- states that no step makes --------------------------------------------------------------


@listed
class SkippedSteps(FalseRun):
    """Steps without work."""

    name = "skipped steps"
    tries = "It leaves a step out: the parameters stay as they were, under the next step's header."
    stopped = ("REF-11 at state",)

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Show the honest trace, and keep the state but for its loss."""
        after = trainer.truly(state, step, observer)
        return [*state[:-1], after[-1]] if step == STEP else after


@listed
class Decoy(FalseRun):
    """A trace that does not belong to its state."""

    name = "different trace of a state"
    tries = (
        "To a false state it shows a trace that goes wrong elsewhere, at a value without "
        "any effect."
    )

    def step(self, trainer: Crooked, state: Arrays, step: int, observer: Observer | None) -> Arrays:
        """Show another mask than the one that was used, and keep the state."""
        if step != STEP:
            return trainer.truly(state, step, observer)
        mask = value_of(trainer.job.plan, "gt")

        def watch(number: int, array: Array) -> Array:
            if observer is not None:
                observer(number, np.logical_not(array) if number == mask else array)
            return array

        return [*state[:-1], trainer.truly(state, step, watch)[-1]]
