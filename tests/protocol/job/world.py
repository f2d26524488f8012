"""A job with its ledger and its log's clock, driven by short words.

Nothing is signed and no blob exists here: these are tests of the pure machine. States are
digests of words; ``HONEST`` and ``FALSE`` are two runs that part at mark 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from identic.protocol.commitments import RunHead, run_leaf
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import fold
from identic.protocol.ids import Count, Credits, Digest, Millis, PartyId, StepIndex, Unsigned
from identic.protocol.job.contest import Contest, Game
from identic.protocol.job.disputes import opening
from identic.protocol.job.draws import draw_beacon
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
from identic.protocol.job.machine import due, open_job, step
from identic.protocol.job.messages import (
    AcceptJob,
    Artifacts,
    Challenge,
    Commit,
    CommitVerdict,
    DisputeId,
    Finish,
    Mark,
    RevealVerdict,
    Stored,
    SubmitJob,
    Verdict,
    verdict_digest,
    work_digest,
)
from identic.protocol.job.state import Event, Job
from identic.protocol.job.terms import Clocks, JobTerms, Prices, job_id
from identic.protocol.settlement.ledger import Ledger, post
from identic.protocol.settlement.movements import issue


def digest(word: str) -> Digest:
    """Digest of a word, for whatever only needs a name."""
    return Digest(hashlib.sha256(word.encode()).digest())


def party(name: str) -> PartyId:
    """An identity."""
    return PartyId(digest(name))


SUBMITTER, SOLVER, SECOND = party("submitter"), party("solver"), party("second solver")
ANNA, BERT, WATCHER = party("anna"), party("bert"), party("watcher")
EVE, MALLORY = party("eve"), party("mallory")
EVERYBODY = (SUBMITTER, SOLVER, SECOND, ANNA, BERT, WATCHER, EVE, MALLORY)
START = 1_000_000
FUNDS = 1_000

PRICES = Prices(Credits(100), Credits(40), Credits(401), Credits(203), Credits(51))
CLOCKS = Clocks(Millis(1_000), Millis(10_000), Millis(5_000), Millis(4_000))
TERMS = JobTerms(
    version=Count(1),
    submitter=SUBMITTER,
    program=digest("program"),
    initial_state=digest("state 0"),
    data=(digest("tokens"),),
    seed=Unsigned(7),
    steps=Count(7),
    cadence=Count(2),
    checkpoint=Count(2),
    kernel_set=Count(1),
    verifiers=Count(2),
    prices=PRICES,
    clocks=CLOCKS,
    nonce=digest("nonce"),
)
ARTIFACTS = Artifacts(digest("program blob"), digest("state blob"), (digest("tokens blob"),))
JOB = job_id(TERMS)
HONEST = tuple(digest(f"state {i}") for i in range(5))
FALSE = (*HONEST[:2], *(digest(f"false {i}") for i in range(2, 5)))


def head_of(states: tuple[Digest, ...], marks: int = 5) -> RunHead:
    """Head over the first marks of a run."""
    leaves = [run_leaf(m, TERMS.step_of(m), s) for m, s in enumerate(states[:marks])]
    return RunHead(JOB, Count(marks), fold(leaves))


class World:
    """One job, its money and the time."""

    def __init__(self, terms: JobTerms = TERMS) -> None:
        self.now = START
        self.said = 0
        self.ledger = Ledger()
        for number, name in enumerate(EVERYBODY):
            self.ledger = post(self.ledger, issue(number, name, FUNDS))
        event = Event(
            Millis(self.now), SubmitJob(terms, ARTIFACTS), terms.submitter, digest("post")
        )
        self.job, posts = open_job(event, SubmitJob(terms, ARTIFACTS))
        for transaction in posts:
            self.ledger = post(self.ledger, transaction)

    # ---- events -----------------------------------------------------------------------------

    def apply(self, event: Event) -> Job:
        """Apply an event as the board does: all of it or nothing."""
        job, posts = step(self.job, event)
        ledger = self.ledger
        for transaction in posts:
            ledger = post(ledger, transaction)
        self.job, self.ledger = job, ledger
        return job

    def say(self, name: PartyId, statement: object, message: str = "message") -> Job:
        """A party makes a statement."""
        return self.apply(Event(Millis(self.now), statement, name, digest(message)))  # type: ignore[arg-type]

    def enter(self, entry: object) -> Job:
        """The coordinator adds an entry."""
        return self.apply(Event(Millis(self.now), entry))  # type: ignore[arg-type]

    def money(self, name: PartyId) -> int:
        """Everything a party has, bonds included."""
        return self.ledger.balance(name) + self.ledger.at_risk(name)

    # ---- the usual course -------------------------------------------------------------------

    def accept(self, solver: PartyId = SOLVER) -> World:
        """A solver takes the job and two verifiers sit down."""
        self.say(solver, AcceptJob(JOB, self.job.attempt))
        seed = digest("log")
        self.enter(VerifiersAssigned(JOB, self.job.attempt, seed, (ANNA, BERT)))
        return self

    def commit(self, states: tuple[Digest, ...] = HONEST, upto: int = 5) -> World:
        """The solver commits to its marks up to ``upto``."""
        self.say(self.solver, self.commitment(states, upto))
        return self

    def commitment(self, states: tuple[Digest, ...] = HONEST, upto: int = 5) -> Commit:
        """The next commitment of the solver."""
        first = len(self.job.marks)
        marks = tuple(
            Mark(StepIndex(TERMS.step_of(m)), states[m], Unsigned(m), ())
            for m in range(first, upto)
        )
        head = head_of(states, upto)
        return Commit(JOB, self.job.attempt, Count(first), marks, head)

    def store(self) -> World:
        """The solver stores the checkpoint."""
        self.say(self.solver, Stored(JOB, self.job.attempt, Count(2), digest("checkpoint")))
        return self

    def finish(self) -> World:
        """The solver stores the checkpoint and finishes."""
        attempt = self.store().job.attempt
        final = (digest("model"), digest("final state"))
        self.say(self.solver, Finish(JOB, attempt, self.job.head, *final))
        return self

    def seal(self, name: PartyId, states: tuple[Digest, ...] = HONEST) -> World:
        """A verifier seals a verdict."""
        self.say(
            name, CommitVerdict(JOB, self.job.attempt, verdict_digest(self.verdict(name, states)))
        )
        return self

    def verdict(self, name: PartyId, states: tuple[Digest, ...]) -> Verdict:
        """What a verifier that computed ``states`` finds."""
        head = head_of(states)
        salt = digest(f"salt of {name}")
        return Verdict(JOB, self.job.attempt, name, head, head == self.job.head, salt)

    def draw(self) -> World:
        """The beacon is drawn."""
        seed = digest("log later")
        beacon = draw_beacon(seed, JOB, self.job.attempt, TERMS.steps)
        self.enter(BeaconDrawn(JOB, self.job.attempt, seed, beacon))
        return self

    def reveal(self, name: PartyId, states: tuple[Digest, ...] = HONEST) -> World:
        """A verifier tells its verdict."""
        self.say(name, self.revelation(name, states))
        return self

    def revelation(self, name: PartyId, states: tuple[Digest, ...] = HONEST) -> RevealVerdict:
        """The told verdict."""
        v = self.verdict(name, states)
        work = work_digest(name, digest("trace"))
        return RevealVerdict(JOB, v.attempt, v.head, v.agrees, v.salt, work)

    def claim(self, states: tuple[Digest, ...] = HONEST, mark: int | None = None) -> Challenge:
        """The challenge of a run: by default at the first mark on which the solver differs."""
        if mark is None:
            own = [record.state_root for record in self.job.marks]
            mark = next(m for m, (a, b) in enumerate(zip(own, states, strict=False)) if a != b)
        return Challenge(JOB, self.job.attempt, Count(mark), states[mark])

    def challenge(
        self, name: PartyId, states: tuple[Digest, ...] = HONEST, mark: int | None = None
    ) -> World:
        """A doubter challenges, and the coordinator sets the disputes up."""
        self.said += 1
        self.say(name, self.claim(states, mark), f"challenge {self.said}")
        return self.set_up()

    def set_up(self) -> World:
        """The coordinator sets up every dispute that is due."""
        while self.due() is DisputeOpened:
            self.enter(self.opening())
        return self

    def opening(self) -> DisputeOpened:
        """The entry that opens the next dispute."""
        return opening(self.job)

    @property
    def contest(self) -> Contest:
        """The present contest."""
        assert self.job.contest is not None
        return self.job.contest

    def game(self, *players: PartyId) -> Game:
        """The first dispute that is played, or the one between these two."""
        for _, game in self.contest.games:
            between = {self.contest.member(s).party for s in (game.defender, game.challenger)}
            if game.opened and set(players) <= between:
                return game
        raise AssertionError(f"no dispute between {players}")

    def rule(self, verdict: Verdicts, loser: Loser, *players: PartyId) -> World:
        """A dispute ends, the first one or that between two parties."""
        return self.rule_by(self.game(*players).id, verdict, loser)

    def rule_by(
        self,
        name: DisputeId,
        verdict: Verdicts = Verdicts.WRONG,
        loser: Loser = Loser.CHALLENGER,
    ) -> World:
        """The dispute of this name ends."""
        transcript = digest("transcript")
        self.enter(Ruled(name, JOB, self.job.attempt, verdict, loser, "REF-4", transcript))
        return self.set_up()

    def loses(self, name: PartyId, to: PartyId, verdict: Verdicts = Verdicts.WRONG) -> World:
        """A party loses its dispute with another."""
        game = self.game(name, to)
        defends = self.contest.member(game.defender).party == name
        return self.rule(verdict, Loser.DEFENDER if defends else Loser.CHALLENGER, name, to)

    def wait(self, milliseconds: int) -> World:
        """Time passes."""
        self.now += milliseconds
        return self

    def expire_clock(self) -> World:
        """Wait for the deadline and call time."""
        assert self.job.due_at is not None
        self.now = int(self.job.due_at)
        self.enter(TimeCalled(JOB))
        return self

    def settle(self) -> World:
        """Wait for the end of the window and settle."""
        assert self.job.deadline is not None
        self.now = int(self.job.deadline)
        self.enter(Settled(JOB, self.job.attempt, digest("receipt")))
        return self

    def due(self, *, can_draw: bool = False) -> type | None:
        """What the coordinator owes now."""
        return due(self.job, self.now, can_draw=can_draw)

    @property
    def solver(self) -> PartyId:
        """The present solver."""
        assert self.job.solver is not None
        return self.job.solver


def trained(states: tuple[Digest, ...] = HONEST) -> World:
    """A finished run."""
    return World().accept().commit(states).finish()


def judged(states: tuple[Digest, ...] = HONEST) -> World:
    """A finished run that both verifiers vouch for."""
    world = trained(states).seal(ANNA, states).seal(BERT, states).draw()
    return world.reveal(ANNA, states).reveal(BERT, states)


def terms_with(**changes: object) -> JobTerms:
    """The terms with other fields."""
    return replace(TERMS, **changes)  # type: ignore[arg-type]


def refusal(rule: str, attempt: Callable[[], object], world: World) -> ProtocolError:
    """Assert that an attempt is refused by a rule and changes nothing."""
    before = (world.job, world.ledger)
    with pytest.raises(ProtocolError) as refused:
        attempt()
    assert refused.value.rule == rule
    assert (world.job, world.ledger) == before
    return refused.value
