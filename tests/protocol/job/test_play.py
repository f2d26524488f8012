"""Any events in any order: money is conserved and honest parties lose none.

Parties act at random, by the rules and against them. Refused events change nothing. The
honest ones are a solver, a verifier and a watcher that say only what they computed and play
their disputes; whatever the others do, their money, bonds included, never falls.
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
    CallTime,
    CancelJob,
    Challenge,
    Commit,
    CommitVerdict,
    DisputeId,
    Finish,
    RevealVerdict,
    Stored,
)
from identic.protocol.job.state import Awaiting, Phase
from identic.protocol.settlement.ledger import Issued, post
from tests.protocol.job.world import (
    ANNA,
    BERT,
    EVERYBODY,
    FALSE,
    FUNDS,
    HONEST,
    JOB,
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
EXAMPLES: list[object] = [
    CancelJob(JOB),
    AcceptJob(JOB, ONE),
    Commit(JOB, ONE, ONE, (), head_of(HONEST)),
    Stored(JOB, ONE, Count(2), digest("blob")),
    Finish(JOB, ONE, head_of(HONEST), digest("model"), digest("state")),
    Abandon(JOB, ONE),
    CommitVerdict(JOB, ONE, digest("verdict")),
    RevealVerdict(JOB, ONE, head_of(HONEST), True, digest("salt"), digest("work")),
    Challenge(JOB, ONE, SOLVER, head_of(FALSE)),
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
    "disputed in training": lambda: (
        World().accept().commit(upto=3).challenge(WATCHER, SOLVER, FALSE, 3)
    ),
    "disputed in the window": lambda: judged().challenge(WATCHER, ANNA, FALSE),
    "settled": lambda: judged().settle(),
    "expired": lambda: trained().expire_clock().expire_clock(),
}


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


class Play(RuleBasedStateMachine):
    """Honest and dishonest parties around one job."""

    HONEST_PARTIES = (SOLVER, ANNA, WATCHER)

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.lies = False
        self.floor = dict.fromkeys(self.HONEST_PARTIES, FUNDS)

    def attempt(self, action: Callable[[], object]) -> None:
        """Do something that may be refused."""
        with contextlib.suppress(ProtocolError):
            action()

    @property
    def states(self) -> tuple[Digest, ...]:
        """The run that the present solver commits to."""
        return FALSE if self.lies else HONEST

    @initialize(lies=st.booleans(), far=st.integers(0, 7), doubted=st.booleans())
    def begin(self, lies: bool, far: int, doubted: bool) -> None:
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
        if doubted:
            self.challenge(WATCHER if lies else SUBMITTER, 0, 0)

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

    # ---- disputes ---------------------------------------------------------------------------

    @precondition(lambda self: self.world.job.dispute is None)
    @rule(
        name=st.sampled_from([BERT, WATCHER, SECOND, SUBMITTER]),
        which=st.integers(0, 2),
        cut=st.integers(0, 2),
    )
    def challenge(self, name: PartyId, which: int, cut: int) -> None:
        """The watcher claims the honest run only; the others whatever differs."""
        job = self.world.job
        if job.solver is None:
            return
        vouchers = (job.solver, *job.attesters)
        states = HONEST if self.lies or name == WATCHER else FALSE
        marks = max(len(job.marks) - cut, 3)
        against = vouchers[which % len(vouchers)]
        self.attempt(lambda: self.world.challenge(name, against, states, marks))

    @precondition(lambda self: self.world.job.dispute is not None)
    @rule(
        loses=st.booleans(),
        verdict=st.sampled_from([Verdicts.WRONG, Verdicts.WRONG, Verdicts.LATE, *Verdicts]),
    )
    def ruling(self, loses: bool, verdict: Verdicts) -> None:
        """Who claims the honest run wins, unless it is dishonest and loses on purpose."""
        dispute = self.world.job.dispute
        assert dispute is not None
        if not dispute.opened:
            self.world.enter(self.world.opening())
        honest_head = head_of(HONEST, int(dispute.head.marks))
        loser = Loser.DEFENDER if dispute.head == honest_head else Loser.CHALLENGER
        winner = dispute.challenger if loser is Loser.DEFENDER else dispute.defender
        if loses and winner not in self.HONEST_PARTIES:
            loser = Loser.CHALLENGER if loser is Loser.DEFENDER else Loser.DEFENDER
        if verdict is Verdicts.CANNOT_TELL:
            loser = Loser.NOBODY
        self.world.rule(verdict, loser)

    # ---- time -------------------------------------------------------------------------------

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
    def nothing_stays_locked_after_the_end(self) -> None:
        if self.world.job.phase.over:
            assert all(self.world.ledger.at_risk(name) == 0 for name in EVERYBODY)

    @invariant()
    def somebody_is_always_waited_for(self) -> None:
        job = self.world.job
        waits = job.deadline is not None or job.phase in (Phase.OPEN, Phase.DISPUTED)
        assert waits or job.phase.over or job.awaiting is Awaiting.BEACON


TestPlay = Play.TestCase
TestPlay.settings = settings(max_examples=300, stateful_step_count=25, deadline=None)
