"""What a dispute would take: rounds, bytes, clocks, time and bonds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.text import Text

from identic.node.cli import words
from identic.node.cli.output import Lines, columns, indented
from identic.node.cli.screens.descent import position, value_name
from identic.protocol.dispute.bounds import Fault
from identic.protocol.ids import JobId
from identic.protocol.job.terms import Prices
from identic.protocol.program.plan import StepPlan

_NOUNS = {
    "run": "signed states",
    "interval": "states",
    "step": "values",
    "state": "parts",
    "output": "chunks of 4 kB",
    "chunk": "elements",
    "fold": "partial values",
}


@dataclass(frozen=True)
class RoundLine:
    """A round that is to come.

    Attributes:
        level: its name.
        items: that each side publishes.
        nbytes: of each side's move.
        again: steps that a side executes again for it; None where the answer is at hand.
        clock_s: time that costs a side nothing.
    """

    level: str
    items: int
    nbytes: int
    again: int | None
    clock_s: float


@dataclass(frozen=True)
class Forecast:
    """A dispute that is to come.

    Attributes:
        job: that it is about.
        lie: where the lie is, in words.
        rounds: in order.
        nbytes: of each side's moves.
        evidence: bytes that either side opens at the end.
        most_rounds: of any dispute about this job.
        most_bytes: likewise.
        most_evidence: likewise.
        again: steps that a side executes again.
        step_s: time of a step; 0 where it is not known.
        about_s: time when both sides answer at once; None where the time of a step is not known.
        longest_s: time after which there is a ruling, whatever anybody does.
        prices: bonds of the job.
        fault: where the lie is.
    """

    job: JobId
    lie: str
    rounds: tuple[RoundLine, ...]
    nbytes: int
    evidence: int
    most_rounds: int
    most_bytes: int
    most_evidence: int
    again: int
    step_s: float
    about_s: float | None
    longest_s: float
    prices: Prices
    fault: Fault


def place(plan: StepPlan, fault: Fault, spots: Mapping[int, str]) -> str:
    """Where a lie is, in words."""
    if fault.step is None:
        return "the initial state"
    step = f"step {fault.step:,}→{fault.step + 1:,}"
    if fault.value is None:
        name = "header" if fault.part == 0 else plan.program.state[fault.part - 1].name
        return f"{step}, the new state's {name}"
    name = f"{step}, value {fault.value:,}  {value_name(plan, fault.value, spots)}"
    if not fault.path:
        return name
    where = position(plan, fault.value, fault.element)
    return f"{name}, {where}, partial value {', '.join(f'{i:,}' for i in fault.path)}"


def lines(view: Forecast, again: str) -> Lines:
    """The rounds, then what all takes."""
    heads = ("level", "each side publishes", "bytes", "executes again", "clock")
    rows: list[list[Text | str]] = [[Text(name, style="dim") for name in heads]]
    rows += [_row(line) for line in view.rounds]
    if view.evidence:
        rows.append(["evidence", "by either side", words.size(view.evidence)])
    head = Text("a lie in   ", style="dim").append(Text(view.lie, style="bold not dim"))
    table = indented(columns(rows, right=(2,)), 1)
    return [head, "", *table, "", *_totals(view), "", f"the same again:  {again}"]


def _row(line: RoundLine) -> list[Text | str]:
    noun = _NOUNS.get(line.level, "items")
    if line.items == 1:
        noun = noun.replace("s", "", 1) if noun.startswith("chunks") else noun.removesuffix("s")
    steps = {None: "", 0: "a long sum"}.get(line.again)
    again = words.plural(line.again or 0, "step") if steps is None else steps
    publishes, clock = f"{line.items:,} {noun}", words.duration(line.clock_s)
    return [line.level, publishes, words.size(line.nbytes), again, clock]


def _totals(view: Forecast) -> list[Text]:
    most, rest = words.size(view.most_bytes), words.size(view.most_evidence)
    rounds = f"{len(view.rounds)}; at most {view.most_rounds} for any lie in this job"
    nbytes = f"{words.size(view.nbytes)} of each side, at most {most}; evidence at most {rest}"
    if view.about_s is None:
        time = f"{words.plural(view.again, 'step')} again (--step-seconds says how long they take)"
    else:
        each = f"{words.plural(view.again, 'step')} again at {words.duration(view.step_s)} a step"
        time = f"about {words.duration(view.about_s)} when both answer at once: {each}"
    longest = f"a ruling after {words.duration(view.longest_s)} at the latest"
    p, money = view.prices, words.money
    share = money(p.solver_bond // 2)
    lost = (money(p.solver_bond), money(p.verifier_bond), money(p.challenger_bond))
    solver = f"a lying solver loses {lost[0]}: {share} to the challenger, the rest burned"
    others = f"a lying verifier loses {lost[1]}; a false challenge costs {lost[2]}"
    rows: list[list[Text | str]] = [
        ["rounds", rounds],
        ["bytes", nbytes],
        ["time", time],
        ["", longest],
        ["bonds", solver],
        ["", others],
    ]
    return columns(rows)


def value(view: Forecast, *, seed: int) -> dict[str, object]:
    """The forecast as a JSON value."""
    prices = view.prices
    return {
        "job": view.job,
        "lie": {"place": view.lie, **vars(view.fault)},
        "seed": seed,
        "rounds": view.rounds,
        "bytes_each_way": view.nbytes,
        "evidence_bytes": view.evidence,
        "most": {
            "rounds": view.most_rounds,
            "bytes_each_way": view.most_bytes,
            "evidence_bytes": view.most_evidence,
        },
        "steps_again": view.again,
        "step_seconds": view.step_s or None,
        "about_seconds": view.about_s,
        "longest_seconds": view.longest_s,
        "bonds": {
            "solver": prices.solver_bond,
            "verifier": prices.verifier_bond,
            "challenger": prices.challenger_bond,
        },
    }
