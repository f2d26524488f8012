"""The coordinator without a loop: it judges one message at a time and writes the log.

* Nothing is believed that the log does not say: on opening, all entries are applied again.
* An entry is judged first, then stored, then shown. One that is refused leaves no trace; one
  that is stored is never taken back.
* The same message twice has one place in the log (MSG-3).

Not safe for several threads; ``coordinator.py`` puts calls in order.
Spec: docs/spec/jobs.md (JOB-4).
"""

from __future__ import annotations

from collections.abc import Callable

from identic.node.blobs import Blobs
from identic.node.coordinator import board as boards
from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import ruled
from identic.node.coordinator.documents import Documents
from identic.node.coordinator.duties import Duty, next_deadline, owed
from identic.node.coordinator.heart import FROZEN_MS, Heart
from identic.node.coordinator.inspection import Inspector
from identic.node.coordinator.log import Log
from identic.node.coordinator.policy import Policy
from identic.node.coordinator.programs import Programs
from identic.node.coordinator.retention import forgettable
from identic.node.storage.base import Storage
from identic.proofs.envelope import check_seal
from identic.proofs.signatures import SigningKey
from identic.protocol.encoding import decode
from identic.protocol.errors import IdenticError, LocalError, ProtocolError
from identic.protocol.ids import Count, Credits, Digest, JobId, Millis, PartyId
from identic.protocol.job.disputes import opening
from identic.protocol.job.draws import draw_beacon
from identic.protocol.job.entries import (
    BeaconDrawn,
    Deposit,
    DisputeOpened,
    Event,
    LogEntry,
    Resumed,
    Settled,
    TimeCalled,
    VerifiersAssigned,
    entry_hash,
)
from identic.protocol.job.messages import SignedMessage, SubmitJob, message_digest
from identic.protocol.job.state import Job
from identic.protocol.program.validate import Limits

Clock = Callable[[], int]
"""Unix time in milliseconds."""


class Host:
    """Board and log of one coordinator.

    Attributes:
        board: everything that the log says.
        log: the entries.
        troubles: why the coordinator cannot do what it owes to a job.
    """

    def __init__(
        self,
        storage: Storage,
        blobs: Blobs,
        key: SigningKey,
        clock: Clock,
        *,
        grant: Credits,
        limits: Limits | None = None,
        policy: Policy | None = None,
    ) -> None:
        """Open the log and apply all of it.

        Args:
            storage: holds the entries.
            blobs: holds programs, states and files.
            key: the coordinator's.
            clock: tells the time.
            grant: money that a party is given once.
            limits: largest program to accept.
            policy: what to take on of new postings; everything if ``None``.

        Raises:
            LocalError: the log is damaged, or a program that it needs is missing.
        """
        limits = limits or Limits()
        self._clock = clock
        self._blobs = blobs
        self._grant = grant
        self._programs = Programs(blobs, limits)
        self._inspector = Inspector(blobs, self._programs, limits, policy or Policy())
        self.log = Log(storage, key)
        self._documents = Documents(key, blobs, self.log, self._programs, self._inspector.finished)
        self.board = Board(key.party)
        self.troubles: dict[JobId, str] = {}
        self._heart = Heart(storage)
        self._replay()
        # JOB-27: whoever starts again says first for how long it was away.
        self._away(self._heart.last, longer_than=0)

    def _replay(self) -> None:
        for entry in self.log.replay():
            try:
                self.board = self._applied(entry)
            except ProtocolError as error:
                raise LocalError(
                    f"entry {entry.index} of the log does not follow from those before: {error}",
                    remedy="restore data_dir, log and blobs, from one copy",
                ) from error

    # ---- absences ---------------------------------------------------------------------------

    def wake(self) -> None:
        """Note that the coordinator is at work; to be called each second and before each action.

        After a time without a call, in which nothing could be taken in, the clocks are moved on.

        Raises:
            LocalError: the disk failed.
        """
        # JOB-27: whoever was frozen says so before it takes anything in.
        self._away(self._heart.last, longer_than=FROZEN_MS)

    def _away(self, since: int, *, longer_than: int) -> None:
        """Append a pause if the last time at work lies longer back, and somebody's clock runs."""
        now, since = self._now(), max(since, int(self.board.now))
        if now - since > longer_than and self.next_deadline() is not None:
            self._append(Resumed(Millis(since)))
        self._heart.beat(now, keep=self.next_deadline() is not None)

    # ---- messages ---------------------------------------------------------------------------

    def find(self, signed: SignedMessage) -> int | None:
        """Index of a message that is in the log already."""
        return self.log.find(message_digest(signed.message))

    def inspect(self, signed: SignedMessage) -> None:
        """Make the slow checks of a message that concerns bytes; changes nothing.

        Safe to call from any thread, also while entries are appended.

        Raises:
            ProtocolError: the rule that the message breaks.
        """
        message = check_seal(signed)
        said = message.statement
        if not self._inspector.concerns(said):
            return
        board = self.board
        self._applied(self._entry(signed))
        job = None if isinstance(said, SubmitJob) else board.job(getattr(said, "job"))  # noqa: B009
        self._inspector.check(said, job)

    def submit(self, signed: SignedMessage) -> int:
        """Judge and append a message; return its index, the old one when repeated.

        The caller has called ``inspect`` before.

        Raises:
            ProtocolError: the rule that the message breaks.
            LocalError: the disk failed; nothing is changed.
        """
        known = self.find(signed)
        if known is not None:
            return known
        return self._append(signed, message_digest(signed.message))

    def welcome(self, party: PartyId) -> None:
        """Give a party that was not seen before its deposit."""
        if party not in self.board.known and self._grant:
            self._append(Deposit(Count(len(self.board.known)), party, self._grant))

    # ---- what the coordinator owes ----------------------------------------------------------

    def settle_duties(self) -> int:
        """Append everything that is owed now; return how many entries that were.

        A job whose entry cannot be written, since a blob is missing or the disk is full, does
        not hold up the others: it is named in ``troubles`` and tried again at the next call.
        """
        count, self.troubles = 0, {}
        while (duty := self._next_duty()) is not None:
            began = self._clock()
            try:
                entry = self._fulfil(duty)
                # JOB-27: nor could anything be taken in while a large model was being read.
                self._away(began, longer_than=FROZEN_MS)
                self._append(entry)
            except IdenticError as error:
                self.troubles[duty.job.id] = str(error)
            else:
                count += 1
        return count

    def _next_duty(self) -> Duty | None:
        duties = owed(self.board, self._now())
        return next((duty for duty in duties if duty.job.id not in self.troubles), None)

    def next_deadline(self) -> Millis | None:
        """Unix time at which ``settle_duties`` should be called again at the latest."""
        return next_deadline(self.board)

    def _fulfil(self, duty: Duty) -> Event:
        job, case, kind = duty.job, duty.case, duty.kind
        root = self.log.root
        if case is not None:
            if kind is TimeCalled:
                return TimeCalled(Digest(case.id))
            return ruled(case, job.attempt, self._documents.transcript(job, case))
        if kind is VerifiersAssigned:
            return VerifiersAssigned(job.id, job.attempt, root, self.board.drawn(job, root))
        if kind is BeaconDrawn:
            step = draw_beacon(root, job.id, job.attempt, job.terms.steps)
            return BeaconDrawn(job.id, job.attempt, root, step)
        if kind is DisputeOpened:
            return opening(job)
        if kind is Settled:
            receipt = self._documents.receipt(self.board, job, Millis(self._now()))
            return Settled(job.id, job.attempt, receipt)
        return TimeCalled(Digest(job.id))

    # ---- the store --------------------------------------------------------------------------

    def forget(self, keep_ms: int) -> int:
        """Remove data and states of jobs that ended longer ago than ``keep_ms``; how many blobs.

        Raises:
            LocalError: the disk does not do its part.
        """
        gone = forgettable(self.board, self._said_last, self._now() - keep_ms)
        present = [blob for blob in gone if self._blobs.path(blob).exists()]
        for blob in present:
            self._blobs.remove(blob)
        return len(present)

    def _said_last(self, job: Job) -> int:
        (entry,) = self.log.read(self.board.indexes[job.id][-1], 1)
        return int(decode(LogEntry, entry).at)

    # ---- the log ----------------------------------------------------------------------------

    def _now(self) -> int:
        """The time, which never goes back for the log."""
        return max(self._clock(), int(self.board.now))

    def _entry(self, event: Event) -> LogEntry:
        return LogEntry(Count(self.log.size), Millis(self._now()), event)

    def _applied(self, entry: LogEntry) -> Board:
        return boards.apply(self.board, entry, self.log.root, self._programs.plan)

    def _append(self, event: Event, key: Digest | None = None) -> int:
        entry = self._entry(event)
        after = self._applied(entry)
        self.log.append(entry, key or entry_hash(entry))
        self.board = after
        return int(entry.index)
