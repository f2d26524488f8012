"""A toy job on the coordinator's real board: entries in a tree, signatures, money, contests.

The program is the counter of ``counter_trace.py``, small enough to play many games about it;
everything around it is what a coordinator runs: ``board.apply``, the duties, the referee.
Time is a number; nothing is on a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from identic.node.coordinator import board as boards
from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case, ruled
from identic.node.coordinator.duties import Duty, next_deadline, owed
from identic.proofs import arbiter
from identic.proofs.envelope import seal
from identic.proofs.merkle import IncrementalTree
from identic.proofs.runlog import run_root
from identic.proofs.signatures import SigningKey
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.moves import Move, Side
from identic.protocol.dispute.state import Dispute
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Credits, Digest, Millis, StepIndex, Unsigned
from identic.protocol.job.disputes import opening
from identic.protocol.job.entries import (
    Deposit,
    DisputeOpened,
    Event,
    LogEntry,
    TimeCalled,
    entry_hash,
)
from identic.protocol.job.messages import (
    AcceptJob,
    Artifacts,
    Challenge,
    Commit,
    DisputeId,
    DisputeMove,
    Mark,
    Statement,
    SubmitJob,
)
from identic.protocol.job.state import Job
from identic.protocol.job.terms import job_id
from identic.protocol.settlement.ledger import Issued
from tests.helpers.counter_trace import counter_data, counter_plan, counter_state
from tests.helpers.execution import MemoryExecution
from tests.helpers.game import terms_of

PLAN = counter_plan()
FUNDS = 100
HUB = SigningKey(sha256(b"hub"))
START = 1_000_000


def key(name: str) -> SigningKey:
    """The key of somebody."""
    return SigningKey(sha256(name.encode()))


TERMS = replace(
    terms_of(PLAN, counter_state(), counter_data(), steps=5, cadence=2),
    submitter=key("submitter").party,
)
GOOD = MemoryExecution(TERMS, PLAN, counter_state(), counter_data())
JOB = job_id(TERMS)

Plays = Callable[[Dispute, Side], Move | None]
"""What somebody moves; nothing is silence."""
Delay = Callable[[Dispute, Side], int | None]
"""When somebody moves, in milliseconds from now; ``None`` is never."""


class Toy:
    """A board with one job.

    Attributes:
        board: everything that happened.
        now: Unix time in milliseconds.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.now = START
        self.board = Board(HUB.party)
        self._tree = IncrementalTree()
        self._size = self._said = 0
        for number, name in enumerate(("submitter", *names)):
            self.enter(Deposit(Count(number), key(name).party, Credits(FUNDS)))
        blobs = Artifacts(sha256(b"program"), sha256(b"state"), (sha256(b"data"),))
        self.say("submitter", SubmitJob(TERMS, blobs))

    # ---- entries ----------------------------------------------------------------------------

    def enter(self, event: Event) -> None:
        """Judge an entry and append it."""
        entry = LogEntry(Count(self._size), Millis(self.now), event)
        self.board = boards.apply(self.board, entry, self._tree.root, lambda *_: PLAN)
        self._tree.append(entry_hash(entry))
        self._size += 1

    def say(self, name: str, said: Statement) -> None:
        """Somebody says something; the coordinator then does what it owes."""
        self._said += 1
        self.enter(seal(key(name), HUB.party, self._said, said))
        self.settle()

    def settle(self) -> None:
        """Do all that is owed now, but for draws and settlements."""
        while (duty := next(iter(owed(self.board, self.now)), None)) is not None:
            self.enter(self._fulfilled(duty))

    def _fulfilled(self, duty: Duty) -> Event:
        case = duty.case
        if case is not None and duty.kind is not TimeCalled:
            return ruled(case, self.job.attempt, sha256(b"transcript"))
        if duty.kind is DisputeOpened:
            return opening(duty.job)
        return TimeCalled(Digest(case.id if case is not None else duty.job.id))

    # ---- who and what -----------------------------------------------------------------------

    @property
    def job(self) -> Job:
        """The job."""
        return self.board.job(JOB)

    def money(self, name: str) -> int:
        """Everything that somebody has, bonds included."""
        party = key(name).party
        return self.board.ledger.balance(party) + self.board.ledger.at_risk(party)

    @property
    def conserved(self) -> bool:
        """Whether all money is accounted for."""
        ledger = self.board.ledger
        issued = -ledger.of(Issued()) == FUNDS * len(self.board.known)
        return issued and sum(ledger.balances.values()) == 0

    # ---- the course -------------------------------------------------------------------------

    def train(self, name: str, leaves: Sequence[Digest]) -> None:
        """A solver takes the job and commits to all marks."""
        self.say(name, AcceptJob(JOB, self.job.attempt))
        steps = TERMS.step_of
        marks = tuple(
            Mark(StepIndex(steps(m)), leaves[m], Unsigned(0), ()) for m in range(1, TERMS.marks)
        )
        root = run_root(list(leaves), TERMS.cadence, TERMS.steps)
        head = RunHead(JOB, Count(TERMS.marks), root)
        self.say(name, Commit(JOB, self.job.attempt, Count(1), marks, head))

    def claim(self, name: str, leaves: Sequence[Digest]) -> int | None:
        """Challenge at the first mark that differs; tells the mark if the claim was taken."""
        own = [record.state_root for record in self.job.marks]
        mark = next((m for m, (a, b) in enumerate(zip(own, leaves, strict=True)) if a != b), 0)
        try:
            self.say(name, Challenge(JOB, self.job.attempt, Count(mark), leaves[mark]))
        except ProtocolError:
            return None
        return mark

    def play(self, players: Mapping[str, tuple[Plays, Delay]]) -> None:
        """Play all disputes to their ends, whoever moves first first; then time is called."""
        waits: dict[tuple[DisputeId, int, str], int | None] = {}
        while self.job.contest is not None:
            moves = []
            for name, (_, delay) in players.items():
                for case in self._due(name):
                    turn = (case.id, int(case.dispute.turn), name)
                    if turn not in waits:
                        wait = delay(case.dispute, self._side(case, name))
                        waits[turn] = None if wait is None else self.now + wait
                    at = waits[turn]
                    if at is not None:
                        moves.append((max(at, self.now), name, case, turn))
            deadline = next_deadline(self.board)
            assert deadline is not None
            first = min(moves, key=lambda move: (move[0], move[1]), default=None)
            if first is None or first[0] > int(deadline):
                self.now = max(self.now, int(deadline))
                self.settle()
                continue
            self.now, name, case, turn = first
            waits[turn] = None
            self._move(name, case, players[name][0])

    def _due(self, name: str) -> list[Case]:
        party = key(name).party
        return [
            case
            for case in self.board.cases.values()
            if not case.over
            and not case.void
            and party in (case.opened.defender, case.opened.challenger)
            and self._side(case, name) in case.dispute.due
        ]

    @staticmethod
    def _side(case: Case, name: str) -> Side:
        mine = case.opened.defender == key(name).party
        return Side.DEFENDER if mine else Side.CHALLENGER

    def _move(self, name: str, case: Case, plays: Plays) -> None:
        """One try a round; a refused move is none."""
        move = plays(case.dispute, self._side(case, name))
        if move is None:
            return
        said = DisputeMove(case.id, arbiter.sign_move(key(name), case.dispute, move))
        before = self.board
        try:
            self.say(name, said)
        except ProtocolError:
            assert self.board is before
            assert not name.startswith("honest")
