"""``identic dispute simulate``: what a dispute about a job would take, before there is one."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from identic.node.cli import subject as subjects
from identic.node.cli.client import CardOption, ConfigOption, CoordinatorOption, IdentityOption
from identic.node.cli.faults import Usage
from identic.node.cli.output import Answer
from identic.node.cli.screens import forecast
from identic.node.cli.subject import Subject
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.bounds import Course, Fault, course, worst
from identic.protocol.dispute.clocks import allowance_ms, longest_ms
from identic.protocol.dispute.setup import MAX_LOAD, Opening, Setup
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, Millis, PartyId
from identic.protocol.job.terms import job_id
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.program.plan import StepPlan

SEED_BITS: Final = 32


@dataclass(frozen=True)
class Wish:
    """Where the lie is to be; None leaves it to chance."""

    step: int | None
    value: int | None
    operator: str | None
    element: int | None
    path: str | None
    part: int | None
    start: bool


def simulate(
    target: Annotated[
        str,
        typer.Argument(
            metavar="JOB",
            help="train.py:job, a receipt, a transcript, a job's folder, or a job's name.",
        ),
    ],
    step: Annotated[
        int | None, typer.Option("--step", metavar="K", min=0, help="The step that goes wrong.")
    ] = None,
    operator: Annotated[
        str | None, typer.Option("--operator", metavar="NAME", help="Some result of this operator.")
    ] = None,
    value: Annotated[
        int | None, typer.Option("--value", metavar="V", min=0, help="This value of the step.")
    ] = None,
    element: Annotated[
        int | None, typer.Option("--element", metavar="E", min=0, help="Flat position in it.")
    ] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="I,J", help="Entry of each nested fold, outermost first."),
    ] = None,
    part: Annotated[
        int | None,
        typer.Option(
            "--part", metavar="P", min=0, help="Tensor P of the new state, 0: its header."
        ),
    ] = None,
    start: Annotated[bool, typer.Option("--start", help="A wrong initial state.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Of what is left to chance.")
    ] = None,
    step_seconds: Annotated[
        float | None,
        typer.Option("--step-seconds", metavar="S", min=0, help="Time of one training step."),
    ] = None,
    rtt_ms: Annotated[
        float, typer.Option("--rtt", metavar="MS", min=0, help="Way to the coordinator and back.")
    ] = 0.0,
    load: Annotated[
        int, typer.Option("--load", metavar="N", min=1, max=MAX_LOAD, help="Games at once.")
    ] = 1,
    config: ConfigOption = None,
    coordinator: CoordinatorOption = None,
    card: CardOption = None,
    identity: IdentityOption = None,
) -> Answer:
    """Predict rounds, bytes, time and bonds of a dispute about a job.

    The lie is at the place that is named, and by chance where nothing is; --seed repeats it. A
    Python file is captured, and one step of it measured; nothing leaves this machine.
    """
    found = subjects.read(target, (config, coordinator, card, identity))
    wish = Wish(step, value, operator, element, path, part, start)
    chance = secrets.randbits(SEED_BITS) if seed is None else seed
    fault = choose(found, wish, random.Random(chance))  # noqa: S311 - a place, no secret
    seconds = found.step_s if step_seconds is None else step_seconds
    view = predict(found, fault, seconds=seconds, rtt_s=rtt_ms / 1000, load=load)
    lines = forecast.lines(view, _repeat(target, fault))
    return Answer(forecast.value(view, seed=chance), lines)


# ---- where the lie is -------------------------------------------------------------------------


def choose(subject: Subject, wish: Wish, chance: random.Random) -> Fault:
    """The place of the lie.

    Raises:
        Usage: the job has no such place, or two wishes contradict each other.
    """
    plan, steps = subject.plan, int(subject.terms.steps)
    if wish.start:
        return Fault()
    step = chance.randrange(steps) if wish.step is None else wish.step
    if step >= steps:
        raise Usage(f"there is no step {step:,}", remedy=f"steps are numbered 0 to {steps - 1:,}")
    if wish.part is not None:
        if wish.part > len(plan.outputs):
            raise Usage(
                f"the state has no part {wish.part}",
                remedy=f"0 is its header, 1 to {len(plan.outputs)} are its tensors",
            )
        return Fault(step, part=wish.part)
    value = _value(plan, wish, chance)
    planned = plan.call(value)
    if planned is None or plan.type(value).elements == 0:
        return Fault(step, value)
    elements = plan.type(value).elements
    element = chance.randrange(elements) if wish.element is None else wish.element
    if element >= elements:
        raise Usage(
            f"value {value} has no element {element:,}", remedy=f"it has {elements:,} elements"
        )
    fold = planned.call.op.fold(planned.call, element)
    return Fault(step, value, element=element, path=_path(fold, wish, chance))


def _value(plan: StepPlan, wish: Wish, chance: random.Random) -> int:
    if wish.value is not None:
        if wish.value >= plan.values:
            raise Usage(
                f"there is no value {wish.value:,}",
                remedy=f"values are numbered 0 to {plan.values - 1:,}",
            )
        return wish.value
    first = len(plan.loads)
    made = [v for v in range(first, plan.values) if plan.type(v).elements]
    if wish.operator is not None:
        names = {v: plan.calls[v - first].call.op.name for v in made}
        made = [v for v in made if names[v] == wish.operator]
        if not made:
            raise Usage(
                f"no operator of the step is {wish.operator!r}",
                remedy=f"there are {', '.join(sorted(set(names.values())))}",
            )
    return chance.choice(made)


def _path(fold: Fold, wish: Wish, chance: random.Random) -> tuple[int, ...]:
    """The path that was named, gone on with by chance down to a primitive step."""
    try:
        named = [int(i) for i in wish.path.split(",")] if wish.path else []
    except ValueError as error:
        raise Usage(f"{wish.path!r} is no path", remedy="give numbers: --path 3,17") from error
    path: list[int] = []
    while True:
        index = named[len(path)] if len(path) < len(named) else chance.randrange(fold.length)
        if not 0 <= index < fold.length:
            raise Usage(
                f"there is no entry {index:,} at level {len(path)} of the element",
                remedy=f"entries are numbered 0 to {fold.length - 1:,}",
            )
        path.append(index)
        entry = fold.entry(index)
        if not isinstance(entry, Nested):
            break
        fold = entry.fold
    if len(path) < len(named):
        raise Usage(f"the path {wish.path} is too long", remedy=f"it ends after {len(path)}")
    return tuple(path)


def _repeat(target: str, fault: Fault) -> str:
    """The command that predicts the same place again."""
    words = f"identic dispute simulate {target}"
    if fault.step is None:
        return f"{words} --start"
    words += f" --step {fault.step}"
    if fault.value is None:
        return f"{words} --part {fault.part}"
    path = ",".join(str(i) for i in fault.path)
    words += f" --value {fault.value}"
    return f"{words} --element {fault.element} --path {path}" if path else words


# ---- what it takes ----------------------------------------------------------------------------


def predict(
    subject: Subject, fault: Fault, *, seconds: float, rtt_s: float, load: int
) -> forecast.Forecast:
    """What a dispute about this lie takes.

    Args:
        subject: the job.
        fault: the place of the lie.
        seconds: time of one training step; 0 where it is not known.
        rtt_s: time of a message to the coordinator and back.
        load: games that a side plays at once.
    """
    terms, plan = subject.terms, subject.plan
    found, most = course(terms, plan, fault), worst(terms, plan)
    setup = _setup(subject, round(seconds * 1000), load)
    clocks = [allowance_ms(setup, exchange.again) / 1000 for exchange in found.rounds]
    rounds = tuple(
        forecast.RoundLine(e.level, e.items, e.nbytes, e.again, clock)
        for e, clock in zip(found.rounds, clocks, strict=True)
    )
    return forecast.Forecast(
        job=job_id(terms),
        lie=_place(subject, fault),
        rounds=rounds,
        nbytes=found.nbytes,
        evidence=found.evidence,
        most_rounds=most.total.rounds,
        most_bytes=most.total.nbytes,
        most_evidence=most.total.evidence,
        again=found.again,
        step_s=seconds,
        about_s=_about(found, seconds, rtt_s) if seconds else None,
        longest_s=longest_ms(setup, most.total.rounds) / 1000,
        prices=terms.prices,
        fault=fault,
    )


def _about(found: Course, seconds: float, rtt_s: float) -> float:
    """Time when both sides answer at once, in seconds: they compute at the same time."""
    return found.again * seconds + (len(found.rounds) + 1) * rtt_s


def _setup(subject: Subject, step_ms: int, load: int) -> Setup:
    """The dispute as far as its clocks depend on it; between nobody."""
    terms = subject.terms
    one, other = (
        RunHead(job_id(terms), Count(terms.marks), sha256(side)) for side in (b"one", b"other")
    )
    parties = (PartyId(bytes(32)), PartyId(bytes([1]) * 32))
    opening = Opening(
        Digest(bytes(32)), *parties, one, other, Millis(0), Millis(step_ms), Count(load)
    )
    return Setup(terms, subject.plan, opening)


def _place(subject: Subject, fault: Fault) -> str:
    return forecast.place(subject.plan, fault, subject.spots)
