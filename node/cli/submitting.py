"""``identic job check`` and ``submit``: from a Python file to a job on the board.

The only commands that import torch. The user's file runs in this process; what leaves the
machine is a program without code, numbers, and a signed posting.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final

import typer

from identic.kernels.arrays import on_host
from identic.kernels.cuda_backend import need_bytes
from identic.kernels.executor import Executor
from identic.node import submission
from identic.node.capture.check import Comparison, check_against_eager
from identic.node.capture.data import Examples
from identic.node.capture.job import TrainingJob
from identic.node.capture.loading import load_job
from identic.node.capture.program import Captured, capture
from identic.node.cli import places, words
from identic.node.cli.client import (
    CardOption,
    Client,
    ConfigOption,
    CoordinatorOption,
    IdentityOption,
    client,
)
from identic.node.cli.computing import DeviceOption, operators
from identic.node.cli.faults import Usage
from identic.node.cli.job import follow
from identic.node.cli.output import Answer, Output, current
from identic.node.cli.screens.progress import Transfer
from identic.node.coordinator.policy import rerun_ms
from identic.node.rpc.remote import Remote
from identic.node.submission import Conditions
from identic.node.worker.devices import AUTO
from identic.protocol.encoding import encode
from identic.protocol.ids import Credits, JobId, Millis, PartyId
from identic.protocol.job.terms import (
    MAX_CADENCE,
    MAX_VERIFIERS,
    Clocks,
    JobTerms,
    Prices,
)
from identic.protocol.program.codec import load as load_program
from identic.protocol.program.codec import program_digest
from identic.protocol.program.cost import cost, peak_bytes
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits
from identic.protocol.settlement.prices import suggest_prices

TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE.py[:FUNCTION]",
        help="Python file, and the function in it that returns an identic.TrainingJob.",
    ),
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", metavar="N", min=1, help="Instead of the job's own number.")
]

STORED_STATES: Final = 10
"""States stored on the way unless --checkpoint says otherwise."""
MOST_MARKS: Final = 2047
"""Marks after the initial state: one message of a dispute holds all of them."""
LEAST_RERUN_S: Final = 120.0
KINDS_SHOWN: Final = 6
"""Kinds of operators that a screen names."""
RERUN_FACTOR: Final = 8.0
"""Allowance for a slower machine that re-executes from a stored state."""


@dataclass(frozen=True)
class Prepared:
    """A captured job that fits torch, with what it costs."""

    job: TrainingJob
    captured: Captured
    plan: StepPlan
    comparison: Comparison
    seconds: float
    """One step on this machine."""

    @cached_property
    def device_bytes(self) -> int:
        """What a step takes on a CUDA device."""
        return need_bytes(self.plan)

    @property
    def operations(self) -> int:
        """Weighted operations of a step."""
        return cost(self.plan).flops


def prepare(target: str, steps: int | None, output: Output, device: str = AUTO) -> Prepared:
    """Capture a job, compare one step with torch, and measure one on a device.

    What the user's file prints joins the progress.

    Raises:
        CaptureError: the job cannot become a program, or the program is not the user's step.
    """
    with contextlib.redirect_stdout(output.told.file):
        return _prepared(target, steps, output, device)


def _prepared(target: str, steps: int | None, output: Output, device: str) -> Prepared:
    job = load_job(target)
    if steps is not None:
        job = dataclasses.replace(job, steps=steps)
    if isinstance(job.data, Examples):
        _read(job.data, output)
    with output.busy(f"capturing {target}"):
        captured = capture(job)
    encoded = encode(captured.program)
    # What is posted is refused here as a node with the usual limits would refuse it.
    plan = unroll(load_program(encoded, Limits()))
    for line in captured_lines(captured, plan, len(encoded)):
        output.say(line)
    with output.busy("comparing one step with torch"):
        comparison = check_against_eager(captured, job)
    output.say(f"checked    {comparison}")
    backend = operators(device, 0, plan).backend
    executor = Executor(plan, backend)
    return Prepared(job, captured, plan, comparison, _measured(executor, captured, job.seed))


def _read(data: Examples, output: Output) -> None:
    """Read a dataset, and show how far that is."""
    with Transfer(output, "reading", len(data), words.count) as transfer:
        data.read(lambda done, _: transfer.advance(done))


def captured_lines(captured: Captured, plan: StepPlan, size: int) -> Iterator[str]:
    """What was captured: the job, its program, and what the submitter should know."""
    summary, program = captured.summary, captured.program
    yield f"captured   {summary}"
    if captured.notes.origin:
        yield f"goes on    from {captured.notes.origin}"
    data = sum(v.type.nbytes for v in program.data)
    yield f"data       {words.size(data)} in {words.plural(len(program.data), 'tensor')}"
    yield (
        f"program    {words.plural(len(plan.calls), 'operator')} a step, {words.size(size)}, "
        f"sha256 {program_digest(program).short}"
    )
    kinds = Counter(planned.call.op.name for planned in plan.calls).most_common()
    named = [f"{count:,} {name}" for name, count in kinds[:KINDS_SHOWN]]
    rest = sum(count for _, count in kinds[KINDS_SHOWN:])
    yield "           " + ", ".join([*named, *([f"{rest:,} others"] if rest else [])])
    for remark in captured.notes.remarks:
        yield f"note       {remark}"


def _measured(executor: Executor, captured: Captured, seed: int) -> float:
    """Seconds of one step on this machine, after one to warm up."""
    state = executor.step(captured.state, captured.data, seed, 0)
    on_host(state[-1])
    began = time.monotonic()
    state = executor.consume(state, captured.data, seed, 1)
    # A device is done once the loss is here.
    on_host(state[-1])
    return time.monotonic() - began


def needs(prepared: Prepared, prices: Prices | None = None, verifiers: int = 2) -> str:
    """What a run takes, in a line."""
    steps = prepared.job.steps
    prices = prices or _prices(prepared, Wishes(verifiers=verifiers))
    escrow = prices.solver_reward + verifiers * prices.verifier_reward
    return (
        f"{words.size(peak_bytes(prepared.plan))} per node, {words.size(prepared.device_bytes)} "
        f"on a CUDA device, about "
        f"{words.duration(prepared.seconds)} a step on this machine, "
        f"{words.duration(prepared.seconds * steps)}; reward {words.money(prices.solver_reward)}, "
        f"escrow {words.money(escrow)}"
    )


def check(target: TargetArgument, steps: StepsOption = None, device: DeviceOption = AUTO) -> Answer:
    """Capture a job and check it, without posting it.

    Runs the file, captures the training step, compares one step with torch, and says what a
    node needs. Nothing leaves this machine.
    """
    output = current()
    prepared = prepare(target, steps, output, device)
    return Answer(
        _value(prepared),
        [f"needs      {needs(prepared)}", "", f"post it:  identic job submit {target}"],
    )


def _value(prepared: Prepared) -> dict[str, object]:
    summary, comparison = prepared.captured.summary, prepared.comparison
    return {
        "model": summary.model,
        "parameters": summary.parameters,
        "tensors": summary.tensors,
        "steps": prepared.job.steps,
        "operators": len(prepared.plan.calls),
        "kinds": Counter(planned.call.op.name for planned in prepared.plan.calls),
        "goes_on_from": prepared.captured.notes.origin,
        "remarks": prepared.captured.notes.remarks,
        "torch": prepared.captured.notes.torch,
        "data_bytes": sum(v.type.nbytes for v in prepared.captured.program.data),
        "program": program_digest(prepared.captured.program),
        "loss": comparison.loss,
        "eager_loss": comparison.eager_loss,
        "largest_difference": comparison.difference,
        "memory_bytes": peak_bytes(prepared.plan),
        "device_memory_bytes": prepared.device_bytes,
        "operations_per_step": prepared.operations,
        "seconds_per_step": prepared.seconds,
    }


# ---- terms ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wishes:
    """What the submitter may choose; None takes the default.

    Attributes:
        verifiers: how many re-execute the run.
        cadence: steps between two signed states.
        checkpoint: signed states between two stored ones.
        reward: of the solver and of each verifier, in credits.
        move_s: clock of a dispute's move.
        rerun_s: clock of a move that needs re-execution, and longest silence of a solver.
        budget_s: each side's reserve for a whole dispute.
        window_s: time for challenges after the last verdict.
    """

    verifiers: int = 2
    cadence: int | None = None
    checkpoint: int | None = None
    reward: float | None = None
    move_s: float = 60.0
    rerun_s: float | None = None
    window_s: float = 60.0
    budget_s: float | None = None


def terms_of(prepared: Prepared, who: Client, wishes: Wishes) -> JobTerms:
    """The terms of a job that a client posts.

    Raises:
        ProtocolError: a wish is outside the limits (JOB-1).
    """
    return terms_for(prepared, who.identity.party, wishes)


def terms_for(prepared: Prepared, submitter: PartyId, wishes: Wishes) -> JobTerms:
    """The terms of a job whose submitter is ``submitter``; raises as ``terms_of``."""
    job, captured = prepared.job, prepared.captured
    cadence, checkpoint = _marks(job.steps, wishes)
    again = prepared.seconds * (checkpoint * cadence + 2) * RERUN_FACTOR
    needed = rerun_ms(prepared.plan, job.steps, cadence, checkpoint) / 1000 + LEAST_RERUN_S
    once = max(needed, again)
    rerun_s = wishes.rerun_s if wishes.rerun_s is not None else once
    budget_s = wishes.budget_s if wishes.budget_s is not None else once
    seconds = (wishes.move_s, rerun_s, wishes.window_s, budget_s)
    clocks = Clocks(*(Millis(round(s * 1000)) for s in seconds))
    conditions = Conditions(
        steps=job.steps,
        prices=_prices(prepared, wishes),
        clocks=clocks,
        seed=job.seed,
        cadence=cadence,
        checkpoint=checkpoint,
        verifiers=wishes.verifiers,
    )
    return submission.terms_of(
        submitter, captured.program, captured.state, captured.data, conditions
    )


def _marks(steps: int, wishes: Wishes) -> tuple[int, int]:
    """Steps between two signed states, and signed states between two stored ones."""
    cadence = wishes.cadence or max(1, -(-steps // MOST_MARKS))
    return cadence, wishes.checkpoint or max(1, -(-steps // cadence) // STORED_STATES)


def _prices(prepared: Prepared, wishes: Wishes) -> Prices:
    """The suggested prices, or the wished reward with bonds in proportion to it."""
    steps = prepared.job.steps
    kept = math.prod(_marks(steps, wishes))
    suggested = suggest_prices(prepared.operations, steps, kept, wishes.verifiers)
    if wishes.reward is None:
        return suggested
    value = Credits(round(wishes.reward * words.CREDIT))
    bond, risk = (
        Credits(max(1, -(-value * amount // suggested.solver_reward)))
        for amount in (suggested.solver_bond, suggested.challenger_bond)
    )
    return Prices(value, value, bond, bond, risk)


# ---- posting --------------------------------------------------------------------------------


def submit(
    target: TargetArgument,
    steps: StepsOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the job to its end.")] = False,
    verifiers: Annotated[
        int, typer.Option("--verifiers", min=1, max=MAX_VERIFIERS, help="Who re-execute it all.")
    ] = 2,
    reward: Annotated[
        float | None,
        typer.Option(
            "--reward", metavar="CREDITS", min=0, help="For the solver, and each verifier."
        ),
    ] = None,
    cadence: Annotated[
        int | None,
        typer.Option(
            "--cadence", metavar="STEPS", min=1, max=MAX_CADENCE, help="Between signed states."
        ),
    ] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option("--checkpoint", metavar="N", min=1, help="Signed states between stored ones."),
    ] = None,
    move_clock: Annotated[
        float, typer.Option("--move-clock", metavar="SECONDS", help="For a move of a dispute.")
    ] = 60.0,
    rerun_clock: Annotated[
        float | None,
        typer.Option("--rerun-clock", metavar="SECONDS", help="For a move that re-executes."),
    ] = None,
    window: Annotated[
        float, typer.Option("--window", metavar="SECONDS", help="For challenges, at the end.")
    ] = 60.0,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="SECONDS", help="Each side's reserve for a dispute."),
    ] = None,
    device: DeviceOption = AUTO,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """Capture a job, upload it and post it.

    The escrow, the solver's reward and the verifiers' together, is taken from this client's
    balance; prices and clocks follow from the job's size unless given.
    """
    if min(move_clock, window, *(s for s in (rerun_clock, budget) if s is not None)) <= 0:
        raise Usage("a clock of no time", remedy="give seconds above 0")
    asker, output = client(config, coordinator, card, identity), current()
    prepared = prepare(target, steps, output, device)
    wishes = Wishes(verifiers, cadence, checkpoint, reward, move_clock, rerun_clock, window, budget)
    terms = terms_of(prepared, asker, wishes)
    output.say(f"needs      {needs(prepared, terms.prices, verifiers)}")
    job = asker.run(lambda remote: post(remote, asker, prepared, terms, output))
    line = f"job        {job.name} posted to coordinator {asker.address}"
    if watch:
        output.say(line)
        output.say()
        return follow(asker, job)
    value = {**_value(prepared), "job": job, "name": job.name, "escrow": int(terms.escrow)}
    return Answer(value, [line, "", f"follow it:  identic job watch {job.name}"])


async def post(
    remote: Remote, asker: Client, prepared: Prepared, terms: JobTerms, output: Output
) -> JobId:
    """Upload a job's parts, then post it; returns its id.

    Raises:
        ProtocolError: the coordinator refuses it.
    """
    store, captured = asker.blobs, prepared.captured
    made = submission.pack(store, terms, captured.program, captured.state, captured.data)
    with Transfer(output, "uploading", sum(size for _, size in made.sizes)) as transfer:
        done: dict[str, int] = {}

        def advance(name: str, sent: int, _: int) -> None:
            done[name] = sent
            transfer.advance(sum(done.values()))

        job = await submission.post(remote, asker.identity, store, made, advance)
    _, state, *data = (size for _, size in made.sizes)
    output.say(
        f"uploaded   state {words.size(state)}, data {words.size(sum(data))} "
        f"(root {terms.initial_state.short})"
    )
    spots = captured.notes
    places.save(
        places.path_of(asker.folder, job),
        places.of_plan(prepared.plan, spots.gradient, spots.update),
    )
    for blob in set(made.blobs):
        store.remove(blob)
    return job
