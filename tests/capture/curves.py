"""``python -m tests.capture.curves``: draw docs/figures/loss-curves.svg.

Fifty steps of every model of docs/models.md: the captured program on the native kernels, and
torch's own loop on the same batches and random numbers. One panel a model; torch is the wide
line, the program the thin one in it. Below, the largest difference of the two losses over all
steps, as a share of the loss.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from identic.node.capture import capture
from tests.capture.test_zoo import eager_losses, our_losses
from tests.capture.zoo import ZOO
from tests.capture.zoo.brought import BROUGHT

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "loss-curves.svg"

STEPS = 50
COLUMNS, WIDE, HIGH, GAP = 4, 210, 120, 18
TOP, LEFT = 34, 12
PLOT_TOP, PLOT_LEFT, PLOT_RIGHT, PLOT_BOTTOM = 20, 34, 6, 18
TORCH, OURS, INK, FAINT = "#f59e0b", "#1e3a8a", "#1f2937", "#9ca3af"

FONT = 'font-family="system-ui, sans-serif" font-size="10"'

Curves = tuple[str, list[float], list[float]]


def curves() -> Iterator[Curves]:
    """Name, torch's losses and the program's of each model."""
    jobs = {**{n: a.job for n, a in ZOO.items()}, **{n: b.job for n, b in BROUGHT.items()}}
    for name, job in jobs.items():
        captured = capture(job(STEPS))
        theirs, ours = eager_losses(captured, STEPS), our_losses(captured, STEPS)
        sys.stderr.write(f"{name}: {theirs[0]:.3f} to {theirs[-1]:.3f}, {ours[-1]:.3f}\n")
        yield name, theirs, ours


def line(values: Sequence[float], low: float, high: float, colour: str, width: float) -> str:
    """A curve in a panel's coordinates."""
    across = WIDE - GAP - PLOT_LEFT - PLOT_RIGHT
    down = HIGH - PLOT_TOP - PLOT_BOTTOM
    scale = (high - low) or 1.0
    points = (
        f"{PLOT_LEFT + across * i / (len(values) - 1):.1f},"
        f"{PLOT_TOP + down * (high - v) / scale:.1f}"
        for i, v in enumerate(values)
    )
    return (
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" '
        f'stroke-width="{width}" stroke-linejoin="round"/>'
    )


def said(x: float, y: float, text: str, colour: str = INK, anchor: str = "start") -> str:
    """A text."""
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{text}</text>'


def panel(name: str, theirs: Sequence[float], ours: Sequence[float]) -> Iterator[str]:
    """One model."""
    low, high = min(*theirs, *ours), max(*theirs, *ours)
    apart = max(abs(a - b) / abs(a) for a, b in zip(theirs, ours, strict=True))
    base = HIGH - PLOT_BOTTOM
    yield f'<text x="0" y="12" fill="{INK}" font-weight="600">{name}</text>'
    yield said(PLOT_LEFT - 4, PLOT_TOP + 8, f"{high:.2f}", FAINT, "end")
    yield said(PLOT_LEFT - 4, base, f"{low:.2f}", FAINT, "end")
    yield (
        f'<path d="M{PLOT_LEFT} {PLOT_TOP}V{base}H{WIDE - GAP - PLOT_RIGHT}" fill="none" '
        f'stroke="{FAINT}" stroke-width="0.7"/>'
    )
    yield line(theirs, low, high, TORCH, 4.0)
    yield line(ours, low, high, OURS, 1.2)
    yield said(WIDE - GAP - PLOT_RIGHT, base + 12, f"apart by at most {apart:.0e}", FAINT, "end")


def drawn(found: Sequence[Curves]) -> str:
    """The whole figure."""
    rows = -(-len(found) // COLUMNS)
    width, height = 2 * LEFT + COLUMNS * WIDE - GAP, TOP + rows * HIGH + 8
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        said(LEFT, 18, f"Loss over {STEPS} steps: torch (wide), the captured program (thin)"),
    ]
    for number, (name, theirs, ours) in enumerate(found):
        x, y = LEFT + number % COLUMNS * WIDE, TOP + number // COLUMNS * HIGH
        out += [f'<g transform="translate({x} {y})">', *panel(name, theirs, ours), "</g>"]
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    FIGURE.write_text(drawn(list(curves())), encoding="utf-8")
