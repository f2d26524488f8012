"""``python -m tests.bench.disputes.figure``: draw docs/figures/dispute-bounds.svg.

Rounds and bytes of a dispute over the length of the run and over the size of the program, from
``protocol/dispute/bounds.py``. The lie is at the costliest end of the run and of the step, in a
matrix product of GPT-2 small over its vocabulary; all marks are claimed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from identic.protocol.dispute.bounds import Fault, course
from identic.protocol.dtypes import DType
from identic.protocol.ids import Count
from identic.protocol.ops import TABLE
from identic.protocol.program.plan import Load, Part, PlannedCall, Source, StepPlan
from identic.protocol.program.types import Program, Section
from identic.protocol.tensors import TensorType
from tests.helpers.small_run import tiny_run

FIGURE = Path(__file__).resolve().parents[3] / "docs" / "figures" / "dispute-bounds.svg"

TOKENS, WIDTH, VOCABULARY = 8192, 768, 50_257
MOST_MARKS = 2047
"""Marks of a run unless its submitter wishes otherwise."""

FRACTIONS = (1, 1.25, 1.5, 2, 2.1, 2.5, 3, 4, 5, 6, 7, 8, 9)
STEPS = tuple(sorted({int(f * 10**k) for k in range(7) for f in FRACTIONS if f * 10**k < 4.1e6}))
OPERATORS = tuple(int(f * 10**k) for k in range(1, 7) for f in FRACTIONS)
PROGRAMS = (100, 2_000, 20_000)
RUNS = (100, 2_000, 1_000_000)
COLOURS = ("#c2410c", "#1d4ed8", "#15803d")

# ---- what is drawn --------------------------------------------------------------------------


@cache
def plan_of(operators: int) -> StepPlan:
    """A step of so many operators, all the same matrix product."""
    kinds = tuple(
        TensorType.of(DType.FLOAT32, shape) for shape in ((TOKENS, VOCABULARY), (VOCABULARY, WIDTH))
    )
    product = PlannedCall(TABLE["matmul"].call(kinds, ()), (0, 1), Part.GRADIENT, 0, 0)
    empty, one = Section((), (), ()), Count(1)
    program = Program(one, one, one, (), (), (), (), (), empty, empty)
    loads = tuple(Load(Source.STATE, i, kind) for i, kind in enumerate(kinds))
    return StepPlan(program, loads, (product,) * operators, (0, 1))


def cost(steps: int, operators: int) -> tuple[int, int]:
    """Rounds, and bytes of each side: the most of lies at both ends of run and step."""
    cadence = max(1, -(-steps // MOST_MARKS))
    terms = replace(tiny_run().terms, steps=Count(steps), cadence=Count(cadence))
    plan = plan_of(operators)
    found = [
        course(terms, plan, Fault(step, value), marks=terms.marks)
        for step in (0, steps - 1)
        for value in (len(plan.loads), plan.values - 1)
    ]
    return max(len(c.rounds) for c in found), max(c.nbytes for c in found)


Measure = Callable[[tuple[int, int]], float]


@dataclass(frozen=True)
class Panel:
    """One diagram.

    Attributes:
        title: above it.
        across: name of the horizontal axis, which is logarithmic.
        measure: what goes up.
        top: end of the vertical axis.
        ticks: numbers at it.
        curves: label, and points by their place across.
    """

    title: str
    across: str
    top: float
    ticks: Sequence[float]
    curves: Sequence[tuple[str, Sequence[tuple[int, float]]]]


def panels() -> list[Panel]:
    """Rounds and bytes, over steps and over operators."""
    measures: list[tuple[str, Measure, float, Sequence[float]]] = [
        ("rounds", lambda c: c[0], 13, (0, 2, 4, 6, 8, 10, 12)),
        ("kB of each side", lambda c: c[1] / 1000, 325, (0, 50, 100, 150, 200, 250, 300)),
    ]
    out = []
    for title, measure, top, ticks in measures:
        runs = [
            (f"{n:,} operators", [(steps, measure(cost(steps, n))) for steps in STEPS])
            for n in PROGRAMS
        ]
        out.append(Panel(title, "steps of the run", top, ticks, runs))
    for title, measure, top, ticks in measures:
        sizes = [
            (f"{steps:,} steps", [(n, measure(cost(steps, n))) for n in OPERATORS])
            for steps in RUNS
        ]
        out.append(Panel(title, "operators of a step", top, ticks, sizes))
    return out


# ---- drawing --------------------------------------------------------------------------------

DASHES = ("none", "7 4", "2 3")
"""Of the curves in order, which may lie on each other."""

PANEL_W, PANEL_H, LEFT, TOP, GAP_X, GAP_Y = 330, 170, 46, 34, 70, 76


def svg(drawn: Sequence[Panel], title: str = "Rounds and bytes of a dispute") -> str:
    """The figure, two diagrams a row."""
    width = 2 * (PANEL_W + GAP_X) + LEFT - 20
    height = TOP + -(-len(drawn) // 2) * (PANEL_H + GAP_Y)
    font = 'font-family="system-ui, sans-serif" font-size="11" fill="#374151"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font}>',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(drawn):
        x = LEFT + number % 2 * (PANEL_W + GAP_X)
        y = TOP + number // 2 * (PANEL_H + GAP_Y)
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel) -> list[str]:
    points = [point for _, curve in panel.curves for point in curve]
    low, high = (math.log10(f(x for x, _ in points)) for f in (min, max))

    def across(x: float) -> float:
        return round((math.log10(x) - low) / (high - low) * PANEL_W, 1)

    def up(y: float) -> float:
        return round(PANEL_H * (1 - y / panel.top), 1)

    parts = [_text(0, -14, panel.title, weight="bold")]
    for tick in panel.ticks:
        parts.append(
            f'<path d="M0 {up(tick)}H{PANEL_W}" stroke="#e5e7eb" stroke-width="1" fill="none"/>'
        )
        parts.append(_text(-6, up(tick) + 4, f"{tick:,}", anchor="end"))
    powers = [10**power for power in range(math.ceil(low), math.floor(high) + 1)]
    parts += [_text(across(n), PANEL_H + 15, _short(n), anchor="middle") for n in powers]
    parts.append(_text(PANEL_W / 2, PANEL_H + 31, panel.across, anchor="middle"))
    styles = zip(panel.curves, COLOURS, DASHES, strict=True)
    for number, ((label, curve), colour, dash) in enumerate(styles):
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" fill="none"'
        path = "".join(f"{'L' if i else 'M'}{across(x)} {up(y)}" for i, (x, y) in enumerate(curve))
        y = 14 + 15 * number
        parts += [f'<path d="{path}" {style}/>', f'<path d="M10 {y - 4}h22" {style}/>']
        parts.append(_text(38, y, label))
    return parts


def _text(x: float, y: float, words: str, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def _short(number: int) -> str:
    """A power of ten in few letters."""
    for unit, letter in ((10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number // unit}{letter}"
    return str(number)


def main() -> int:
    """Write the figure."""
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    FIGURE.write_text(svg(panels()))
    sys.stdout.write(f"wrote {FIGURE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
