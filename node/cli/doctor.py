"""``identic doctor``: what this machine can do, one line a check."""

from __future__ import annotations

from identic.node.cli import machine
from identic.node.cli.client import ConfigOption, configured
from identic.node.cli.output import Answer
from identic.node.cli.screens import report
from identic.node.cli.screens.report import Outcome


def doctor(config: ConfigOption = None) -> Answer:
    """Check what this machine can do.

    ✓ is fine, ! works but not as well as it could, ✗ will not work. CUDA devices compute the
    self-test of a node. With a configuration, its address, limits and folder are checked too.
    """
    gpus, devices = machine.gpus()
    checks = machine.examine(configured(config), gpus)
    bad = sum(check.outcome is Outcome.NO for check in checks)
    words = "this machine can take part" if not bad else "not everything will work here"
    return Answer(
        {"ok": not bad, "checks": report.value(checks), "devices": devices},
        [*report.lines(checks), "", words],
        yes=not bad,
    )
