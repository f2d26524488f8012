"""A small language for disputes in tests.

``duel(run).liar(Side.DEFENDER, run.lying(...)).at_width(4).play().wrong(Side.DEFENDER, "REF-8")``:
one side plays the honest run, the other a liar; what is not said is as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from identic.protocol.dispute.moves import WIDTH, Side
from identic.protocol.dispute.state import Ruling
from identic.protocol.ids import Digest
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.plan import StepPlan
from tests.helpers.execution import MemoryExecution
from tests.helpers.game import Game, Strategy, honest, play, setup_between, silent_from


class Subject(Protocol):
    """A job with its honest run."""

    @property
    def terms(self) -> JobTerms: ...
    @property
    def plan(self) -> StepPlan: ...
    @property
    def good(self) -> MemoryExecution: ...


@dataclass(frozen=True)
class Duel:
    """A dispute to be played."""

    subject: Subject
    claims: dict[Side, Sequence[Digest]] = field(default_factory=dict)
    strategies: dict[Side, Strategy] = field(default_factory=dict)
    width: int = WIDTH
    first: Side = Side.DEFENDER

    def liar(
        self, side: Side, execution: MemoryExecution, strategy: Strategy | None = None
    ) -> Duel:
        """Let a side claim another run, and play it or a strategy."""
        plays = strategy or honest(execution)
        return self.claiming(side, execution.run_leaves(), plays)

    def claiming(self, side: Side, states: Sequence[Digest], strategy: Strategy) -> Duel:
        """Let a side claim these states at the marks."""
        return replace(
            self,
            claims={**self.claims, side: states},
            strategies={**self.strategies, side: strategy},
        )

    def silent(self, side: Side, turn: int = 0) -> Duel:
        """Let a side say nothing from round ``turn`` on."""
        plays = silent_from(self._strategy(side), turn)
        return replace(self, strategies={**self.strategies, side: plays})

    def at_width(self, width: int) -> Duel:
        """Publish trees in messages of this many items."""
        return replace(self, width=width)

    def opened_by(self, side: Side) -> Duel:
        """Let a side move first in every round."""
        return replace(self, first=side)

    def _strategy(self, side: Side) -> Strategy:
        return self.strategies.get(side) or honest(self.subject.good)

    def play(self) -> Ended:
        """Play to the end."""
        states = self.subject.good.run_leaves()
        claims = [list(self.claims.get(side, states)) for side in Side]
        setup = setup_between(
            self.subject.terms, self.subject.plan, claims[0], claims[1], width=self.width
        )
        defender, challenger = (self._strategy(side) for side in Side)
        return Ended(play(setup, defender, challenger, first=self.first))


@dataclass(frozen=True)
class Ended:
    """A finished dispute, and what can be expected of it."""

    game: Game

    @property
    def ruling(self) -> Ruling:
        """How it ended."""
        return self.game.ruling

    def wrong(
        self, side: Side, rule: str, step: int | None = None, value: int | None = None
    ) -> Ended:
        """Expect that a side is found wrong here, with every move and check in order."""
        ruling = self.ruling
        assert (ruling.verdict, ruling.loser, ruling.rule) == (Verdicts.WRONG, side, rule)
        assert (ruling.step, ruling.value) == (step, value)
        assert self.game.refused == []
        assert all(report.ok for report in self.game.reports)
        return self

    def late(self, side: Side, level: str) -> Ended:
        """Expect that a side is late at this level."""
        ruling = self.ruling
        assert (ruling.verdict, ruling.loser) == (Verdicts.LATE, side)
        assert (ruling.rule, ruling.level) == ("DSP-12", level)
        return self


def duel(subject: Subject) -> Duel:
    """A dispute about a job; both sides are honest until something else is said."""
    return Duel(subject)
