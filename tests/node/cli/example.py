"""The dispute of README.md: a lie in one fused multiply-add of a small perceptron."""

from __future__ import annotations

from rich.text import Text

from identic.node.cli.screens import descent
from tests.helpers.execution import Lie
from tests.helpers.signed_game import Played, finish, opened
from tests.helpers.small_run import small_run

STEP = 2
WRONG = 0x3F400000
"""0.75, whatever the right partial sum is."""


def game() -> Played:
    """The dispute, played out."""
    run = small_run()
    bad = run.lying(Lie(STEP, run.value("matmul"), 0, (1,), WRONG))
    return finish(opened(run, bad.run_leaves(), run.good.run_leaves()), bad, run.good)


def text() -> str:
    """The table as `identic dispute replay` shows it."""
    played = game()
    assert played.dispute.ruling is not None
    view = descent.describe(played.dispute.setup, played.dispute.ruling)
    lines = (x.plain if isinstance(x, Text) else x for x in descent.lines(view))
    return "\n".join(line.rstrip() for line in lines)
