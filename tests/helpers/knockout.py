"""A contest in the window against many liars, over the real job machine and pairing.

Disputes are not played: each ends when its clocks let it, as its liar wishes. Who claims what
the program computes wins; between two liars chance decides.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from enum import Enum
from functools import cache

from identic.protocol.dispute.bounds import worst
from identic.protocol.dispute.clocks import longest_ms
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.ids import Count, Millis
from identic.protocol.job.entries import DisputeOpened, Loser, Ruled, Verdicts
from identic.protocol.job.messages import Challenge, DisputeId
from identic.protocol.job.state import Phase
from identic.protocol.program.unroll import unroll
from identic.protocol.settlement.ledger import post
from identic.protocol.settlement.movements import issue
from tests.helpers.programs import mlp
from tests.protocol.job.world import (
    ANNA,
    BERT,
    CLOCKS,
    JOB,
    SOLVER,
    TERMS,
    digest,
    judged,
    party,
)

PLAN = unroll(mlp())
WINDOW = int(CLOCKS.window_ms)


class Way(Enum):
    """How liars play."""

    SLOW = "each dispute takes as long as its clocks allow"
    ANY = "each dispute ends at any time"
    SILENT = "they never move"
    SHORT = "they lose at once"


class Entry(Enum):
    """When liars enter, after the first one."""

    FIRST = "all at the beginning"
    SPREAD = "one after the other, up to the end of the entry"
    LAST = "all at the end of the entry"


@dataclass(frozen=True)
class Course:
    """What became of a job that many liars challenged in its window."""

    claims: int
    took_ms: int
    """From the window's opening to the settlement."""
    entry_ms: int
    """From the window's opening to the end of the entry."""
    longest_ms: int
    """The longest that one of the disputes could have taken."""
    matches: int
    played: int
    """Disputes of the solver."""

    @property
    def after(self) -> float:
        """Time from the end of the entry to the settlement, in longest disputes."""
        return max(0, self.took_ms - self.entry_ms) / self.longest_ms


@cache
def longest(load: int) -> int:
    """Most milliseconds of a dispute in which a party plays so many at once."""
    head = judged().job.head
    opening = Opening(digest("d"), SOLVER, ANNA, head, head, Millis(0), Millis(0), Count(load))
    rounds = worst(TERMS, PLAN).total.rounds
    return longest_ms(Setup(TERMS, PLAN, opening), rounds)


class Liars:
    """A finished honest run that liars challenge.

    Args:
        claims: distinct ones.
        way: how the liars play.
        entry: when they enter.
        team: liars that make the same claim.
        seed: of chance.
    """

    def __init__(self, claims: int, way: Way, entry: Entry, team: int = 1, seed: int = 0) -> None:
        self.world = judged()
        self.claims, self.way, self.entry, self.team = claims, way, entry, team
        self.chance = random.Random(f"{claims} {way} {entry} {seed}")
        self.began = self.world.now
        self.ends: list[tuple[int, int, DisputeOpened | int]] = []
        self.longest = 0
        self.played = 0

    def run(self) -> Course:
        """The course to the settlement."""
        # The first challenge comes as late as it can.
        first = self.began + WINDOW - 1
        self._at(first, 0)
        for number in range(1, self.claims):
            last = first + WINDOW - 1
            at = {
                Entry.FIRST: first,
                Entry.SPREAD: first + (WINDOW - 1) * number // self.claims,
                Entry.LAST: last,
            }[self.entry]
            self._at(at, number)
        world = self.world
        while self.ends:
            world.now, _, what = heapq.heappop(self.ends)
            if isinstance(what, int):
                self._enter(what)
            else:
                self._end(what)
        world.settle()
        assert world.job.phase is Phase.SETTLED
        return Course(
            self.claims,
            world.now - self.began,
            2 * WINDOW - 1,
            self.longest,
            sum(len(contest.matches) for contest in world.job.contests),
            self.played,
        )

    def _at(self, time: int, what: DisputeOpened | int) -> None:
        heapq.heappush(self.ends, (time, self.chance.getrandbits(32), what))

    def _enter(self, number: int) -> None:
        root, bond = digest(f"claim {number}"), TERMS.prices.challenger_bond
        said = Challenge(JOB, self.world.job.attempt, Count(1 + number % 4), root)
        for friend in range(self.team):
            name = party(f"liar {number}, {friend}")
            entry = 1_000 + number * self.team + friend
            self.world.ledger = post(self.world.ledger, issue(entry, name, bond))
            self.world.say(name, said, f"claim {number} by {friend}")
        self._set_up()

    def _set_up(self) -> None:
        """The coordinator sets up what is due, at once."""
        while self.world.due() is DisputeOpened:
            opened = self.world.opening()
            self.world.enter(opened)
            self.longest = max(self.longest, longest(int(opened.load)))
            self.played += opened.defender == SOLVER
            self._at(self.world.now + self._duration(opened), opened)

    def _duration(self, opened: DisputeOpened) -> int:
        most = longest(int(opened.load))
        first = int(CLOCKS.move_ms) + int(opened.load) * int(CLOCKS.budget_ms) + 1
        return {
            Way.SLOW: most,
            Way.ANY: self.chance.randint(0, most),
            Way.SILENT: first,
            Way.SHORT: 0,
        }[self.way]

    def _end(self, opened: DisputeOpened) -> None:
        contest = self.world.job.contest
        if contest is None or contest.game(opened.dispute) is None:
            # Its liar has fallen in another dispute.
            return
        verdict, loser = Verdicts.WRONG, Loser.CHALLENGER
        if opened.defender not in (SOLVER, ANNA, BERT):
            loser = self.chance.choice((Loser.DEFENDER, Loser.CHALLENGER))
            if self.way is Way.SILENT:
                verdict, loser = Verdicts.CANNOT_TELL, Loser.NOBODY
        self._rule(opened.dispute, verdict, loser)

    def _rule(self, name: DisputeId, verdict: Verdicts, loser: Loser) -> None:
        transcript = digest("transcript")
        self.world.enter(Ruled(name, JOB, Count(1), verdict, loser, "DSP-12", transcript))
        self._set_up()


def course(claims: int, way: Way, entry: Entry, team: int = 1, seed: int = 0) -> Course:
    """The course of a job that liars challenge; see ``Liars``."""
    return Liars(claims, way, entry, team, seed).run()
