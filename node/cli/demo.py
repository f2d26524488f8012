"""``identic demo``: the whole network on this machine, with an honest and a lying solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from identic.node.cli.output import Answer, current
from identic.node.demo.run import run


def demo(
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", min=2, help="Training steps of each job.")
    ] = 60,
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="Folder of the results.")
    ] = Path("out"),
) -> Answer:
    """Train on this machine, catch a lie, print the ruling.

    Starts a coordinator, a solver, two verifiers and a whistleblower as processes of their own,
    posts a job and follows it; then the same job with a solver that lies in one element. The
    exit code is 0 if the honest job was settled and the lie was ruled against.
    """
    return run(current(), steps=steps, into=into)
