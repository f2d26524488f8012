"""Any events in any order: money is conserved and honest parties lose none.

Parties act at random, by the rules and against them. Refused events change nothing. The
honest ones are a solver, a verifier and a watcher that say only what they computed and play
their disputes; whatever the others do, alone or as friends that join teams and lose on
purpose, their money, bonds included, never falls, and no lie that one of them doubts is paid.
"""

import contextlib
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from identic.protocol.errors import ProtocolError
from identic.protocol.ids import Count, Digest, Millis, PartyId, StepIndex
from identic.protocol.job.entries import (
    BeaconDrawn,
    DisputeOpened,
    Loser,
    Ruled,
    Settled,
    TimeCalled,
    Verdicts,
    VerifiersAssigned,
)
from identic.protocol.job.machine import TRANSITIONS
from identic.protocol.job.messages import (
    Abandon,
    AcceptJob,
    Ask,
    CallTime,
    CancelJob,
    CannotTell,
    Challenge,
    Commit,
    CommitVerdict,
    DisputeId,
    Finish,
    RevealVerdict,
    Served,
    Stored,
)
from identic.protocol.job.state import Awaiting, Phase
from identic.protocol.settlement.ledger import Bond, Issued, post
from tests.helpers.effort import examples
from tests.protocol.job.world import (
    ANNA,
    BERT,
    EVE,
    EVERYBODY,
    FALSE,
    FUNDS,
    HONEST,
    JOB,
    MALLORY,
    SECOND,
    SOLVER,
    SUBMITTER,
    WATCHER,
    World,
    digest,
    head_of,
    judged,
    trained,
)

ONE = Count(1)
FIRST_FALSE = 2
"""First mark on which the false run is one."""
EXAMPLES: list[object] = [
    CancelJob(JOB),
    AcceptJob(JOB, ONE),
    Commit(JOB, ONE, ONE, (), head_of(HONEST)),
    Stored(JOB, ONE, Count(2), digest("blob")),
    Finish(JOB, ONE, head_of(HONEST), digest("model"), digest("state")),
    Abandon(JOB, ONE),
    CommitVerdict(JOB, ONE, digest("verdict")),
    RevealVerdict(JOB, ONE, head_of(HONEST), True, digest("salt"), digest("work")),
    Challenge(JOB, ONE, Count(2), FALSE[2]),
    Ask(JOB, ONE, Count(2)),
    Served(JOB, ONE, Count(2)),
    CannotTell(JOB, ONE),
    CallTime(JOB),
    TimeCalled(JOB),
    VerifiersAssigned(JOB, ONE, digest("log"), (ANNA, BERT)),
    BeaconDrawn(JOB, ONE, digest("log"), StepIndex(0)),
    DisputeOpened(
        DisputeId(digest("d")),
        JOB,
        ONE,
        SOLVER,
        WATCHER,
        head_of(HONEST),
        head_of(FALSE),
        Millis(0),
        ONE,
    ),
    Ruled(DisputeId(digest("d")), JOB, ONE, Verdicts.LATE, Loser.CHALLENGER, "R-1", digest("t")),
    Settled(JOB, ONE, digest("receipt")),
]
SCENES: dict[str, Callable[[], World]] = {
    "open": World,
    "training": lambda: World().accept(),
    "half trained": lambda: World().accept().commit(upto=3),
    "verdicts": trained,
    "beacon": lambda: trained().seal(ANNA).seal(BERT),
    "reveals": lambda: trained().seal(ANNA).seal(BERT).draw(),
    "window": judged,
    "asked for a state": lambda: asked(judged()),
    "a seat given back": lambda: gave_back(trained()),
    "disputed in training": lambda: World().accept().commit(upto=3).challenge(WATCHER, FALSE),
    "disputed in the window": lambda: judged().challenge(WATCHER, FALSE),
    "solver fallen": lambda: judged().challenge(WATCHER, FALSE).loses(SOLVER, WATCHER),
    "settled": lambda: judged().settle(),
    "expired": lambda: trained().expire_clock().expire_clock(),
}


def asked(world: World) -> World:
    """The watcher waits for a state."""
    world.say(WATCHER, Ask(JOB, world.job.attempt, Count(2)))
    return world


def gave_back(world: World) -> World:
    """Anna cannot tell."""
    world.say(ANNA, CannotTell(JOB, world.job.attempt))
    return world


def test_the_examples_are_all_events_of_the_table() -> None:
    assert {type(example) for example in EXAMPLES} == {kind for _, kind in TRANSITIONS}
    assert {scene().job.phase for scene in SCENES.values()} == set(Phase)
    assert {scene().job.awaiting for scene in SCENES.values()} == set(Awaiting)


ENTRIES = (TimeCalled, VerifiersAssigned, BeaconDrawn, DisputeOpened, Ruled, Settled)


def refused_by(world: World, action: Callable[[], object]) -> str | None:
    """Rule that refuses an action, which then has changed nothing; None when it is done."""
    before = (world.job, world.ledger)
    try:
        action()
    except ProtocolError as refused:
        rule = refused.rule
    else:
        return None
    assert (world.job, world.ledger) == before
    return rule


@pytest.mark.parametrize("scene", SCENES)
def test_job_5__what_the_table_lacks_is_refused_everywhere(scene: str) -> None:
    for example in EXAMPLES:
        for name in (None,) if isinstance(example, ENTRIES) else EVERYBODY:
            world = SCENES[scene]()
            known = (world.job.phase, type(example)) in TRANSITIONS
            if name is None:
                rule = refused_by(world, partial(world.enter, example))
            else:
                rule = refused_by(world, partial(world.say, name, example))
            assert known or rule == "JOB-5"
            assert sum(world.ledger.balances.values()) == 0


DOUBTS = (
    st.sampled_from([BERT, WATCHER, ANNA, SECOND, SUBMITTER, EVE, MALLORY]),
    st.integers(1, 4),
    st.integers(0, 1),
)
"""Who challenges, at which mark, and whether with a state of no run."""


class Play(RuleBasedStateMachine):
    """Honest and dishonest parties around one job."""

    HONEST_PARTIES = (SOLVER, ANNA, WATCHER)

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.lies = False
        self.floor = dict.fromkeys(self.HONEST_PARTIES, FUNDS)
        self.doubted = 0
        """The last attempt whose run an honest party doubted."""

    def attempt(self, action: Callable[[], object]) -> None:
        """Do something that may be refused."""
        with contextlib.suppress(ProtocolError):
            action()

    @property
    def states(self) -> tuple[Digest, ...]:
        """The run that the present solver commits to."""
        return FALSE if self.lies else HONEST

    @initialize(
        lies=st.booleans(), far=st.integers(0, 7), doubts=st.lists(st.tuples(*DOUBTS), max_size=6)
    )
    def begin(self, lies: bool, far: int, doubts: list[tuple[PartyId, int, int]]) -> None:
        """Start anywhere on the usual course; Bert vouches for whatever the solver did."""
        self.lies = lies
        world, states = self.world, self.states
        course: list[Callable[[], object]] = [
            lambda: world.accept(SECOND if lies else SOLVER),
            lambda: world.commit(states, 3),
            lambda: world.commit(states).finish(),
            lambda: world.seal(BERT, states).seal(ANNA),
            world.draw,
            lambda: world.reveal(BERT, states),
            lambda: world.reveal(ANNA),
        ]
        for action in course[:far]:
            action()
        for name, mark, other in doubts:
            self.doubt(name, mark, other)

    # ---- the course of the job --------------------------------------------------------------

    @precondition(lambda self: self.world.job.phase is Phase.OPEN)
    @rule(solver=st.sampled_from([SOLVER, SECOND, BERT, SUBMITTER]), lies=st.booleans())
    def accept(self, solver: PartyId, lies: bool) -> None:
        self.lies = lies and solver != SOLVER
        seats = (ANNA, SECOND if solver == BERT else BERT)
        attempt = self.world.job.attempt
        self.attempt(lambda: self.world.say(solver, AcceptJob(JOB, attempt)))
        entry = VerifiersAssigned(JOB, attempt, digest("log"), seats)
        self.attempt(lambda: self.world.enter(entry))

    @rule(upto=st.integers(1, 5))
    def commit(self, upto: int) -> None:
        if self.world.job.solver is not None and upto > len(self.world.job.marks):
            self.attempt(lambda: self.world.commit(self.states, upto))

    @rule()
    def finish(self) -> None:
        if self.world.job.solver is not None:
            self.attempt(self.world.finish)

    @rule()
    def abandon(self) -> None:
        solver = self.world.job.solver
        if solver is not None and solver != SOLVER:
            self.attempt(lambda: self.world.say(solver, Abandon(JOB, self.world.job.attempt)))

    @rule()
    def anna_judges(self) -> None:
        """She tells what she computed: the honest run."""
        self.attempt(lambda: self.world.seal(ANNA))
        self.attempt(lambda: self.world.reveal(ANNA))

    @rule(name=st.sampled_from([BERT, SECOND]), copies=st.booleans())
    def another_judges(self, name: PartyId, copies: bool) -> None:
        states = self.states if copies else (FALSE if self.states is HONEST else HONEST)
        self.attempt(lambda: self.world.seal(name, states))
        self.attempt(lambda: self.world.reveal(name, states))

    @rule()
    def beacon(self) -> None:
        self.attempt(self.world.draw)

    # ---- what is lost -----------------------------------------------------------------------

    @rule(
        name=st.sampled_from([ANNA, BERT, WATCHER, SECOND, SUBMITTER]), mark=st.sampled_from([2, 4])
    )
    def ask(self, name: PartyId, mark: int) -> None:
        """An honest solver stores the state again at once; another one when it likes."""
        attempt = self.world.job.attempt
        self.attempt(lambda: self.world.say(name, Ask(JOB, attempt, Count(mark))))
        if self.world.job.solver == SOLVER:
            self.serve()

    @rule()
    def serve(self) -> None:
        job = self.world.job
        if job.ask is not None and job.solver is not None:
            self.world.say(job.solver, Served(JOB, job.attempt, job.ask.mark))

    @rule(name=st.sampled_from([ANNA, BERT, SECOND]), anew=st.booleans())
    def cannot_tell(self, name: PartyId, anew: bool) -> None:
        """A seat is given back, and when all are, drawn anew for others."""
        attempt = self.world.job.attempt
        self.attempt(lambda: self.world.say(name, CannotTell(JOB, attempt)))
        if anew:
            entry = VerifiersAssigned(JOB, attempt, digest("log"), (EVE, MALLORY))
            self.attempt(lambda: self.world.enter(entry))

    # ---- contests ---------------------------------------------------------------------------

    @rule(doubt=st.tuples(*DOUBTS))
    def challenge(self, doubt: tuple[PartyId, int, int]) -> None:
        self.doubt(*doubt)

    def doubt(self, name: PartyId, mark: int, other: int) -> None:
        """Honest parties claim the first difference only; the others whatever there is."""
        marks = self.world.job.marks
        if self.world.job.solver is None or mark >= len(marks):
            return
        states = HONEST if other == 0 else tuple(digest(f"other {mark}") for _ in HONEST)
        if name in self.HONEST_PARTIES:
            if not self.lies or len(marks) <= FIRST_FALSE:
                return
            states, mark = HONEST, FIRST_FALSE
        try:
            self.world.challenge(name, states, mark)
        except ProtocolError:
            return
        if name in self.HONEST_PARTIES:
            self.doubted = int(self.world.job.attempt)

    @precondition(lambda self: self.world.job.contest is not None)
    @rule(
        which=st.integers(0, 20),
        loses=st.booleans(),
        verdict=st.sampled_from([Verdicts.WRONG, Verdicts.WRONG, Verdicts.LATE, *Verdicts]),
    )
    def ruling(self, which: int, loses: bool, verdict: Verdicts) -> None:
        """Who claims the honest run wins, unless it is dishonest and loses on purpose."""
        contest = self.world.set_up().contest
        match, game = list(contest.games)[which % len(list(contest.games))]
        heads = contest.heads(match)
        honest = [head == head_of(HONEST, int(head.marks)) for head in heads]
        players = [contest.member(stake).party for stake in (game.defender, game.challenger)]
        for player, right in zip(players, honest, strict=True):
            assert right or player not in self.HONEST_PARTIES
        loser = Loser.DEFENDER if honest[1] else Loser.CHALLENGER
        winner = players[0] if loser is Loser.CHALLENGER else players[1]
        if loses and winner not in self.HONEST_PARTIES:
            loser = Loser.CHALLENGER if loser is Loser.DEFENDER else Loser.DEFENDER
        if verdict is Verdicts.CANNOT_TELL:
            if set(players) & set(self.HONEST_PARTIES):
                # They answer, and so are told.
                verdict = Verdicts.LATE
            else:
                loser = Loser.NOBODY
        self.world.rule_by(game.id, verdict, loser)

    # ---- time -------------------------------------------------------------------------------

    @rule(milliseconds=st.integers(1, 4_000))
    def wait(self, milliseconds: int) -> None:
        self.world.wait(milliseconds)

    @precondition(lambda self: self.world.job.deadline is not None)
    @rule()
    def time(self) -> None:
        """The clock runs down, unless an honest solver is due, which is never late."""
        job = self.world.job
        if job.awaiting is Awaiting.MARKS and job.solver == SOLVER:
            return
        if job.awaiting is Awaiting.WINDOW:
            self.attempt(self.world.settle)
        if not self.world.job.phase.over:
            self.attempt(self.world.expire_clock)

    # ---- what must hold ---------------------------------------------------------------------

    @invariant()
    def money_is_conserved(self) -> None:
        ledger = self.world.ledger
        assert sum(ledger.balances.values()) == 0
        assert ledger.of(Issued()) == -FUNDS * len(EVERYBODY)
        assert all(v > 0 for a, v in ledger.balances.items() if a != Issued())

    @invariant()
    def posting_again_changes_nothing(self) -> None:
        for transaction in self.world.ledger.transactions.values():
            assert post(self.world.ledger, transaction) is self.world.ledger

    @invariant()
    def honest_parties_never_lose(self) -> None:
        for name, least in self.floor.items():
            assert self.world.money(name) >= least
            self.floor[name] = self.world.money(name)

    @invariant()
    def no_lie_that_is_doubted_is_paid(self) -> None:
        if self.world.job.attempt == self.doubted:
            assert self.world.job.phase is Phase.DISPUTED

    @invariant()
    def after_a_match_one_team_at_most_stands(self) -> None:
        for contest in (self.world.job.contest, *self.world.job.contests):
            busy = []
            for match in () if contest is None else contest.matches:
                teams = [contest.claims[i].standing for i in (match.defender, match.challenger)]  # type: ignore[union-attr]
                if not match.over:
                    assert all(teams)
                    busy += [match.defender, match.challenger]
            assert len(busy) == len(set(busy))
            if contest is not None:
                idle = [i for i, c in enumerate(contest.claims) if c.standing and i not in busy]
                assert len(idle) <= 1

    @invariant()
    def no_challenge_stays_locked_after_its_contest(self) -> None:
        if self.world.job.contest is None:
            bonds = [a for a in self.world.ledger.balances if isinstance(a, Bond)]
            assert all(bond.subject == JOB for bond in bonds)

    @invariant()
    def nothing_stays_locked_after_the_end(self) -> None:
        if self.world.job.phase.over:
            assert all(self.world.ledger.at_risk(name) == 0 for name in EVERYBODY)

    @invariant()
    def somebody_is_always_waited_for(self) -> None:
        job = self.world.job
        waits = job.deadline is not None or job.phase in (Phase.OPEN, Phase.DISPUTED)
        assert waits or job.phase.over or job.awaiting is Awaiting.BEACON


TestPlay = Play.TestCase
TestPlay.settings = settings(max_examples=examples(300), stateful_step_count=25, deadline=None)
