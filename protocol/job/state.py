"""What is known about a job: a value that only the job machine changes.

``phase`` is what people see. ``awaiting`` is what the job waits for below it; during a
contest it stays what it was, so that the run goes on and is taken up again.

Spec: docs/spec/jobs.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from identic.protocol.ids import Count, Digest, JobId, Millis, PartyId, StepIndex, Unsigned
from identic.protocol.job.contest import Contest
from identic.protocol.job.entries import Event as Entry
from identic.protocol.job.messages import (
    Artifacts,
    CallTime,
    DisputeId,
    Finish,
    JobStatement,
    RevealVerdict,
    SubmitJob,
)
from identic.protocol.job.run import Frontier, RunHead
from identic.protocol.job.terms import JobTerms
from identic.protocol.settlement.ledger import Transaction

FIRST_ATTEMPT = Count(1)
NEVER = Millis(0)
NO_MARKS = Frontier()


class Phase(Enum):
    """Phases of a job, in the words of every screen."""

    OPEN = "open"
    TRAINING = "training"
    VERIFYING = "verifying"
    DISPUTED = "disputed"
    SETTLED = "settled"
    EXPIRED = "expired"

    @property
    def over(self) -> bool:
        """Whether nothing can happen any more."""
        return self in (Phase.SETTLED, Phase.EXPIRED)


class Awaiting(Enum):
    """What a job waits for."""

    SOLVER = "a solver"
    MARKS = "the solver's next marks"
    VERDICTS = "the verifiers' sealed verdicts"
    BEACON = "the beacon"
    REVEALS = "the verifiers' verdicts"
    WINDOW = "challenges"
    NOTHING = "nothing"


@dataclass(frozen=True)
class MarkRecord:
    """A mark of the run as committed."""

    step: StepIndex
    state_root: Digest
    loss: Unsigned
    """Bits of the float32 loss; 0 for the initial state."""


@dataclass(frozen=True)
class StoredState:
    """A state in the blob store."""

    mark: Count
    blob: Digest


@dataclass(frozen=True)
class Seat:
    """A verifier of the present attempt."""

    party: PartyId
    sealed: Digest | None = None
    """The committed verdict."""
    verdict: RevealVerdict | None = None
    late: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the verifier vouches for the solver's run."""
        return self.verdict is not None and self.verdict.agrees


@dataclass(frozen=True)
class OpenAsk:
    """A stored state that somebody waits for."""

    party: PartyId
    mark: Count
    at: Millis
    """Unix time at which it was asked for."""
    deadline: Millis
    """Unix time at which the solver is late with it."""


@dataclass(frozen=True)
class Job:
    """A job and everything decided about it."""

    id: JobId
    terms: JobTerms
    artifacts: Artifacts
    posted_at: Millis
    phase: Phase = Phase.OPEN
    awaiting: Awaiting = Awaiting.SOLVER
    attempt: Count = FIRST_ATTEMPT
    """Grows when a solver fails."""
    deadline: Millis | None = None
    """When what is awaited is late, or the window closes; nothing during a dispute."""
    solver: PartyId | None = None
    accepted_at: Millis = NEVER
    committed_at: Millis = NEVER
    """When the last marks were committed to."""
    trained_ms: Millis = NEVER
    """Time from acceptance to the finished run."""
    verifiers: tuple[Seat, ...] = ()
    marks: tuple[MarkRecord, ...] = ()
    """Mark 0, the initial state, and what the solver committed to."""
    frontier: Frontier = NO_MARKS
    """The run log over ``marks``."""
    stored: tuple[StoredState, ...] = ()
    finish: Finish | None = None
    beacon: StepIndex | None = None
    contest: Contest | None = None
    """The claims about the run, while there is more than one."""
    contests: tuple[Contest, ...] = ()
    """All contests that are over, of every attempt, oldest first."""
    entry_until: Millis | None = None
    """Unix time up to which claims enter, once one did in the window."""
    disputes: tuple[DisputeId, ...] = ()
    """All disputes so far, in the order in which they were set up."""
    untold: tuple[PartyId, ...] = ()
    """Who made the challenges of this attempt that ended without an answer, in order."""
    ask: OpenAsk | None = None
    asked: tuple[PartyId, ...] = ()
    """Who asked for states in this attempt, in order."""
    recused: tuple[PartyId, ...] = ()
    """Verifiers of this attempt that could not tell, in order."""
    barred: tuple[PartyId, ...] = ()
    """Parties that failed at this job as its solver."""
    receipt: Digest | None = None

    @property
    def head(self) -> RunHead:
        """The solver's run log so far."""
        return RunHead(self.id, Count(self.frontier.size), self.frontier.root)

    @property
    def step_ms(self) -> Millis:
        """Time that the solver took for a step, rounded up; 0 before the first commitment."""
        steps = int(self.marks[-1].step)
        return Millis(-(-(self.committed_at - self.accepted_at) // steps) if steps else 0)

    def seat(self, party: PartyId | None) -> Seat | None:
        """The seat of a verifier, if it has one."""
        return next((seat for seat in self.verifiers if seat.party == party), None)

    def with_seat(self, changed: Seat) -> Job:
        """Replace the seat of the same party."""
        seats = tuple(changed if s.party == changed.party else s for s in self.verifiers)
        return replace(self, verifiers=seats)

    @property
    def attesters(self) -> tuple[PartyId, ...]:
        """Verifiers that vouch for the solver's run."""
        return tuple(seat.party for seat in self.verifiers if seat.agrees)

    @property
    def due_at(self) -> Millis | None:
        """Unix time at which time may be called; nothing while nobody is waited for."""
        if self.ask is None or self.deadline is None:
            return self.deadline
        if self.awaiting is Awaiting.MARKS:
            return min(self.deadline, self.ask.deadline)
        # JOB-31: whoever waits for a state has the time that the solver takes.
        return self.ask.deadline

    @property
    def checkpoints(self) -> range:
        """Marks whose states the solver must store before it finishes, the last one excepted.

        To look a mark up, make it a plain ``int``: a range searches for any other kind.
        """
        return range(self.terms.checkpoint, self.terms.last_mark, self.terms.checkpoint)


@dataclass(frozen=True)
class Event:
    """Something that happens to a job."""

    at: Millis
    """Unix time."""
    body: JobStatement | SubmitJob | CallTime | Entry
    """A statement of ``party``, or an entry of the coordinator."""
    party: PartyId | None = None
    """The sender of a statement; nobody for the coordinator's entries."""
    message: Digest | None = None
    """Digest of the message that carried the statement."""


Outcome = tuple[Job, tuple[Transaction, ...]]
"""The job afterwards, and the money that moves."""
