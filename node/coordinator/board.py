"""The board: jobs, disputes and ledger as one value, changed only by entries of the log.

``apply(board, entry, root, plans)`` is the whole of the coordinator's judgement that does not
need the bytes of large blobs. It is the same function for a new entry and for replaying an
old one, so a coordinator that starts again comes to the same board.

* A refused entry raises and changes nothing: the board is a value.
* What the coordinator adds by itself is checked here like everything else.

Spec: docs/spec/jobs.md (JOB-2, JOB-4, JOB-13, JOB-15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from identic.node.coordinator.cases import (
    Case,
    after_move,
    after_time,
    open_case,
    paused,
    same_ruling,
)
from identic.proofs.envelope import check_seal
from identic.protocol.dispute.clocks import Pause
from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.ids import Digest, JobId, Millis, PartyId
from identic.protocol.job.draws import draw_verifiers
from identic.protocol.job.entries import (
    BeaconDrawn,
    Deposit,
    DisputeOpened,
    LogEntry,
    Resumed,
    Ruled,
    TimeCalled,
    VerifiersAssigned,
)
from identic.protocol.job.machine import open_job, step
from identic.protocol.job.messages import (
    CallTime,
    DisputeId,
    DisputeMove,
    Enrol,
    JobStatement,
    Leave,
    Message,
    SignedMessage,
    SubmitJob,
    message_digest,
)
from identic.protocol.job.pauses import after_pause, check_pause
from identic.protocol.job.state import Event, Job, Outcome
from identic.protocol.job.terms import job_id
from identic.protocol.job.verifying import can_verify
from identic.protocol.program.plan import StepPlan
from identic.protocol.settlement.ledger import Ledger, post
from identic.protocol.settlement.movements import issue

Plans = Callable[[Digest, Digest], StepPlan]
"""Unrolled program from the SHA-256 of its blob and its digest."""


def _nothing() -> Mapping[Digest, tuple[int, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Board:
    """Everything that the log says."""

    network: PartyId
    """Identity of the coordinator."""
    now: Millis = Millis(0)  # noqa: RUF009 - a plain number
    """Unix time of the last entry."""
    jobs: Mapping[JobId, Job] = field(default_factory=lambda: MappingProxyType({}))
    """In the order of posting."""
    cases: Mapping[DisputeId, Case] = field(default_factory=lambda: MappingProxyType({}))
    """Disputes, in the order of opening."""
    ended: tuple[DisputeId, ...] = ()
    """Disputes whose ruling is to be told, in the order in which they ended."""
    ledger: Ledger = field(default_factory=Ledger)
    known: tuple[PartyId, ...] = ()
    """Parties with a deposit, in order."""
    enrolled: frozenset[PartyId] = frozenset()
    """Parties that may be drawn as verifiers."""
    indexes: Mapping[Digest, tuple[int, ...]] = field(default_factory=_nothing)
    """Log indexes of what was said about a job or a dispute."""

    def job(self, name: Digest) -> Job:
        """Return a job of the board.

        Raises:
            ProtocolError: there is none of that name.
        """
        found = self.jobs.get(JobId(name))
        # JOB-2: what is said about a job is about one that was posted.
        if found is None:
            raise ProtocolError("JOB-2", Code.UNKNOWN, got=f"job {name}", want="a job of the board")
        return found

    def case(self, name: Digest) -> Case:
        """Return a dispute of the board.

        Raises:
            ProtocolError: there is none of that name.
        """
        found = self.cases.get(DisputeId(name))
        # JOB-17: what is said in a dispute is about one that was opened.
        if found is None:
            raise ProtocolError("JOB-17", Code.UNKNOWN, got=f"dispute {name}", want="an open one")
        return found

    def pool(self, job: Job) -> tuple[PartyId, ...]:
        """Parties that can be drawn as verifiers of a job."""
        bond = job.terms.prices.verifier_bond
        return tuple(
            party
            for party in sorted(self.enrolled)
            if can_verify(job, party) and self.ledger.balance(party) >= bond
        )

    def drawn(self, job: Job, root: Digest) -> tuple[PartyId, ...]:
        """The verifiers that a log of this root draws."""
        return draw_verifiers(root, job.id, job.attempt, self.pool(job), job.terms.verifiers)


def apply(board: Board, entry: LogEntry, root: Digest, plans: Plans) -> Board:
    """The board after one more entry.

    Args:
        board: the board after all entries before.
        entry: what happened.
        root: root of the log's tree over all entries before.
        plans: the programs of posted jobs.

    Raises:
        ProtocolError: the rule that the entry breaks.
    """
    # JOB-4: the times of entries never go back.
    if entry.at < board.now:
        raise ProtocolError("JOB-4", Code.OUT_OF_RANGE, got=entry.at, want=f"at least {board.now}")
    return _indexed(_judge(board, entry, root, plans), entry)


def _judge(board: Board, entry: LogEntry, root: Digest, plans: Plans) -> Board:
    event = entry.event
    if isinstance(event, Resumed):
        return _resumed(board, Pause(event.since, entry.at))
    board = replace(board, now=entry.at)
    if isinstance(event, SignedMessage):
        return _message(board, check_seal(event))
    if isinstance(event, Deposit):
        return _deposit(board, event)
    if isinstance(event, TimeCalled):
        return _time(board, event.subject, Event(entry.at, event))
    if isinstance(event, VerifiersAssigned | BeaconDrawn):
        _check_draw(board, event, root)
    before = board.job(event.job)
    if isinstance(event, Ruled):
        same_ruling(board.case(event.dispute), event)
        _check_turn(board, event)
    board = _step(board, before, Event(entry.at, event))
    if isinstance(event, DisputeOpened):
        job = board.job(event.job)
        plan = plans(job.artifacts.program, job.terms.program)
        return _with_case(board, open_case(job.terms, plan, event, entry.at))
    if isinstance(event, Ruled):
        case = board.case(event.dispute)
        told = _with_case(board, replace(case, transcript=event.transcript))
        return _without(told, _void(told, before, event.dispute))
    return board


def _resumed(board: Board, pause: Pause) -> Board:
    """Every clock that runs is moved on by the coordinator's absence."""
    check_pause(board.now, pause)
    jobs = {name: after_pause(job, pause) for name, job in board.jobs.items()}
    cases = {
        name: case if case.over or case.void else paused(case, pause)
        for name, case in board.cases.items()
    }
    moved_on = replace(board, jobs=MappingProxyType(jobs), cases=MappingProxyType(cases))
    return replace(moved_on, now=pause.at)


def _message(board: Board, message: Message) -> Board:
    # MSG-1: a message is addressed to this network.
    if message.network != board.network:
        raise ProtocolError("MSG-1", Code.MISMATCH, got=message.network, want=board.network)
    said, party = message.statement, message.party
    if isinstance(said, Enrol):
        return replace(board, enrolled=board.enrolled | {party})
    if isinstance(said, Leave):
        return replace(board, enrolled=board.enrolled - {party})
    if isinstance(said, DisputeMove):
        # JOB-6: a move is handed in by the party that made it.
        if said.move.body.party != party:
            raise ProtocolError("JOB-6", Code.FORBIDDEN, got=party, want=said.move.body.party)
        return _with_case(board, after_move(board.case(said.dispute), said.move, board.now))
    event = Event(board.now, said, party, message_digest(message))
    if isinstance(said, SubmitJob):
        return _posted(board, open_job(event, said))
    if isinstance(said, CallTime):
        return _time(board, said.subject, event)
    return _said(board, said, event)


def _said(board: Board, said: JobStatement, event: Event) -> Board:
    return _step(board, board.job(said.job), event)


def _posted(board: Board, outcome: Outcome) -> Board:
    job, _ = outcome
    # JOB-2: a job is posted once.
    if job.id in board.jobs:
        raise IllegalMove("JOB-2", got=f"job {job.id.name} again", want="new terms")
    return _changed(board, outcome)


def _deposit(board: Board, event: Deposit) -> Board:
    # SET-4: deposits are numbered in order, one for each party.
    if event.number != len(board.known) or event.party in board.known:
        raise ProtocolError(
            "SET-4", Code.MISMATCH, got=f"deposit {event.number}", want=len(board.known)
        )
    ledger = post(board.ledger, issue(event.number, event.party, event.amount))
    return replace(board, ledger=ledger, known=(*board.known, event.party))


def _check_draw(board: Board, event: VerifiersAssigned | BeaconDrawn, root: Digest) -> None:
    rule = "JOB-13" if isinstance(event, VerifiersAssigned) else "JOB-15"
    # JOB-13, JOB-15: what is drawn follows from the root of the log before it.
    if event.seed != root:
        raise ProtocolError(rule, Code.MISMATCH, got=f"seed {event.seed}", want=root)
    if isinstance(event, VerifiersAssigned):
        want = board.drawn(board.job(event.job), root)
        # JOB-13: the verifiers are those that the root draws.
        if event.parties != want:
            raise ProtocolError("JOB-13", Code.MISMATCH, got=event.parties, want=want)


def _time(board: Board, subject: Digest, event: Event) -> Board:
    case = board.cases.get(DisputeId(subject))
    if case is not None:
        return _with_case(board, after_time(case, event.at))
    return _step(board, board.job(subject), event)


def _step(board: Board, job: Job, event: Event) -> Board:
    return _changed(board, step(job, event))


def _changed(board: Board, outcome: Outcome) -> Board:
    job, posts = outcome
    ledger = board.ledger
    for transaction in posts:
        ledger = post(ledger, transaction)
    return replace(board, jobs=MappingProxyType({**board.jobs, job.id: job}), ledger=ledger)


def _with_case(board: Board, case: Case) -> Board:
    ended = tuple(name for name in board.ended if name != case.id)
    if case.over and case.transcript is None:
        ended = (*ended, case.id)
    cases = MappingProxyType({**board.cases, case.id: case})
    return replace(board, cases=cases, ended=ended)


def _check_turn(board: Board, said: Ruled) -> None:
    first = next(name for name in board.ended if board.cases[name].job == said.job)
    # JOB-18: the rulings of a job are told in the order in which its disputes ended.
    if first != said.dispute:
        raise IllegalMove("JOB-18", got=f"the ruling of {said.dispute.name}", want=first.name)


def _void(board: Board, before: Job, ruled: DisputeId) -> set[DisputeId]:
    """Disputes of a job that a ruling has put an end to, besides its own."""
    after = board.jobs[before.id].contest
    played = () if after is None else (game.id for _, game in after.games)
    was = () if before.contest is None else before.contest.games
    return {game.id for _, game in was if game.opened} - {*played, ruled}


def _without(board: Board, names: set[DisputeId]) -> Board:
    """The board on which these disputes are void."""
    void = {name: replace(board.cases[name], void=True) for name in names}
    ended = tuple(name for name in board.ended if name not in names)
    return replace(board, cases=MappingProxyType({**board.cases, **void}), ended=ended)


def _indexed(board: Board, entry: LogEntry) -> Board:
    """Note which job or dispute the entry is about."""
    about = subjects(entry)
    if not about:
        return board
    changed = {name: (*board.indexes.get(name, ()), int(entry.index)) for name in about}
    return replace(board, indexes=MappingProxyType({**board.indexes, **changed}))


def subjects(entry: LogEntry) -> tuple[Digest, ...]:
    """Job and dispute that an entry is about, for those who look for it."""
    event = entry.event
    if not isinstance(event, SignedMessage):
        names = (getattr(event, "job", None), getattr(event, "dispute", None))
        own = getattr(event, "subject", None)
        return tuple(Digest(name) for name in (*names, own) if name is not None)
    said = event.message.statement
    if isinstance(said, SubmitJob):
        return (job_id(said.terms),)
    if isinstance(said, CallTime):
        return (said.subject,)
    if isinstance(said, DisputeMove):
        return (said.dispute,)
    if isinstance(said, Enrol | Leave):
        return ()
    return (said.job,)
