"""All adversaries by name, in the order of the table in ``docs/disputes.md``."""

from __future__ import annotations

from tests.adversaries import claims, crowds, lies, moves, parties
from tests.adversaries.adversary import LISTED, Adversary

MODULES = (lies, claims, moves, parties, crowds)
"""Each with a group of adversaries."""

CATALOGUE: dict[str, type[Adversary]] = {
    name: kind
    for module in MODULES
    for name, kind in LISTED.items()
    if kind.__module__ == module.__name__
}
