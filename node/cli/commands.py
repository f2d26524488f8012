"""The table of commands: what is typed, where its function is, what ``--help`` says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_HERE: Final = "identic.node.cli"


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        path: what is typed after ``identic``.
        target: module and function.
        summary: first line of the function's docstring, so that a list needs no import.
    """

    path: str
    target: str
    summary: str


NOUNS: Final = {
    "node": "Run a node, and see how it fares.",
    "job": "Post training jobs and follow them.",
    "dispute": "Look at disputes, and judge them again.",
    "receipt": "Check what a receipt says about a model.",
    "ledger": "See who has what.",
    "key": "See who this machine is.",
    "debug": "Look at single bits.",
}
"""Nouns with several verbs."""

COMMANDS: Final = (
    Command("demo", f"{_HERE}.demo:demo", "Train on this machine, catch a lie, print the ruling."),
    Command(
        "job check", f"{_HERE}.submitting:check", "Capture a job and check it, without posting it."
    ),
    Command("job submit", f"{_HERE}.submitting:submit", "Capture a job, upload it and post it."),
    Command("job list", f"{_HERE}.job:list_jobs", "List the jobs of the network, newest first."),
    Command("job show", f"{_HERE}.job:show", "Tell all about one job."),
    Command("job watch", f"{_HERE}.job:watch", "Follow a job until it is over."),
    Command(
        "job fetch", f"{_HERE}.fetching:fetch", "Fetch a job's model, receipt, states and disputes."
    ),
    Command(
        "receipt show", f"{_HERE}.receipt:show", "Tell what a receipt says, without checking it."
    ),
    Command(
        "receipt verify", f"{_HERE}.receipt:verify", "Check a model against its receipt, offline."
    ),
    Command("audit", f"{_HERE}.audit:audit", "Re-execute one step of a finished run and compare."),
    Command("dispute list", f"{_HERE}.dispute:list_disputes", "List the disputes, newest first."),
    Command(
        "dispute show",
        f"{_HERE}.dispute:show",
        "Print the game as a tree: each level under the one it came from, and who moved when.",
    ),
    Command(
        "dispute replay",
        f"{_HERE}.dispute:replay",
        "Judge a dispute again from its transcript, offline.",
    ),
    Command(
        "dispute simulate",
        f"{_HERE}.simulate:simulate",
        "Predict rounds, bytes, time and bonds of a dispute about a job.",
    ),
    Command("ledger show", f"{_HERE}.ledger:show", "Show every account, from the log alone."),
    Command("node init", f"{_HERE}.node:init", "Make a node's identity and its configuration."),
    Command("node run", f"{_HERE}.node:run", "Run a node until it is told to stop."),
    Command("node status", f"{_HERE}.node:status", "Show how a running node fares."),
    Command("key show", f"{_HERE}.key:show", "Show this identity, and the card to hand out."),
    Command("doctor", f"{_HERE}.doctor:doctor", "Check what this machine can do."),
    Command("bench", f"{_HERE}.bench:bench", "Time operators and training steps beside torch."),
    Command(
        "debug eval",
        f"{_HERE}.debug:evaluate",
        "Apply an operator to bit patterns on every backend.",
    ),
    Command(
        "debug bits", f"{_HERE}.debug:bits", "Compare two backends or vector paths, bit by bit."
    ),
)
"""Every command, in the order of ``--help``."""
