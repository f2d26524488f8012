"""What an adversary is: a name, what it tries, what stops it, and the attack itself.

An attack is played on the coordinator's own machines: its host and log, the arbiter with
signatures, a real program through the executor. What it meets is compared with what its class
says, and the table in ``docs/disputes.md`` is written from the same words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from tests.helpers.arena import Arena


class Cost(Enum):
    """What an attack costs whoever makes it."""

    NOTHING = "nothing"
    BOND = "its bond"
    PART = "an eighth of its bond"
    FEE = "its fee"
    SHARED = "bonds; of each, half goes to whom it fell to, a friend perhaps"


class Adversary(ABC):
    """An attack on a job of the village."""

    name: ClassVar[str]
    tries: ClassVar[str]
    """What it does, in the words of a table."""
    stopped: ClassVar[tuple[str, ...]]
    """Rules by which it is refused, then those of the rulings with their level."""
    cost: ClassVar[Cost]
    liars: ClassVar[tuple[str, ...]] = ("solver",)
    """Who is dishonest; everybody else keeps to the rules."""
    losses: ClassVar[Mapping[str, int]] = {}
    """What liars lose, in millionths of a credit, where it is not the cost of each."""

    @abstractmethod
    def attack(self, arena: Arena) -> None:
        """Make the attack, with the honest answers to it."""

    def expected(self, arena: Arena, liar: str) -> int:
        """What the attack costs a liar, in millionths of a credit."""
        bond = arena.bond(liar)
        costs = {Cost.BOND: bond, Cost.PART: bond // 8}
        return self.losses.get(liar, costs.get(self.cost, 0))


LISTED: dict[str, type[Adversary]] = {}
"""The adversaries of all modules that were imported, by name."""


def listed(kind: type[Adversary]) -> type[Adversary]:
    """Put an adversary into the catalogue."""
    if kind.name in LISTED:
        raise ValueError(f"two adversaries are called {kind.name}")
    LISTED[kind.name] = kind
    return kind


def met(arena: Arena) -> tuple[str, ...]:
    """What an attack met: rules of refusals, each once, then rulings with their level."""
    rulings = (f"{rule} at {level}" for rule, level in arena.rulings())
    return (*dict.fromkeys(arena.refused), *rulings)
