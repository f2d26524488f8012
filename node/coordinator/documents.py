"""The files that the coordinator writes: transcripts of disputes and receipts of models.

Spec: docs/spec/commitments.md (RCP rules).
"""

from __future__ import annotations

from collections.abc import Mapping

from identic.node.blobs import Blobs
from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case
from identic.node.coordinator.log import Log
from identic.node.coordinator.programs import Programs
from identic.node.execution.loaded import LoadedJob, load_state
from identic.proofs import receipt as receipts
from identic.proofs import transcript as transcripts
from identic.proofs.signatures import SigningKey
from identic.proofs.state import StateCommitment
from identic.protocol.encoding import decode
from identic.protocol.ids import Count, Digest, Millis, Signature
from identic.protocol.job.entries import LogEntry, LogHead, Ruled
from identic.protocol.job.messages import Finish, RevealVerdict, SignedMessage, Statement
from identic.protocol.job.state import Job
from identic.protocol.program.codec import MAX_PROGRAM_BYTES


class Documents:
    """Writes files into the blob store."""

    def __init__(
        self,
        key: SigningKey,
        blobs: Blobs,
        log: Log,
        programs: Programs,
        finished: Mapping[Digest, StateCommitment],
    ) -> None:
        """Take what documents are made of.

        Args:
            key: the coordinator's.
            blobs: where documents go.
            log: what they are about.
            programs: of the jobs.
            finished: commitments of last states that were made before, by their blobs.
        """
        self._key = key
        self._blobs = blobs
        self._log = log
        self._programs = programs
        self._finished = finished

    def transcript(self, job: Job, case: Case) -> Digest:
        """Write the transcript of a dispute that is over; return its SHA-256."""
        ruling = case.dispute.ruling
        if ruling is None:
            raise RuntimeError("a transcript before the ruling")
        record = transcripts.Transcript(
            version=Count(transcripts.VERSION),
            terms=job.terms,
            program=self._program(job),
            opening=case.dispute.setup.opening,
            moves=case.moves,
            pauses=case.pauses,
            called=case.called,
            ruling=ruling,
            coordinator=self._key.party,
        )
        return self._blobs.put(transcripts.write(self._key, record))

    def receipt(self, board: Board, job: Job, at: Millis) -> Digest:
        """Write the receipt of a job whose window has closed; return its SHA-256."""
        finish = job.finish
        if finish is None:
            raise RuntimeError("a receipt for an unfinished run")
        commitment = self._finished.get(finish.state) or self._commitment(job, finish)
        head = self._log.head(at)
        entries = self._entries(board, job)
        record = receipts.Receipt(
            version=Count(receipts.VERSION),
            coordinator=self._key.party,
            terms=job.terms,
            program=self._program(job),
            attempt=job.attempt,
            marks=tuple(mark.state_root for mark in job.marks),
            header=commitment.header,
            digests=commitment.digests,
            finish=self._included(next(e for e in entries if _says(e, Finish, job))),
            verdicts=tuple(self._included(entry) for entry in entries if _vouches(entry, job)),
            rulings=tuple(
                self._included(entry) for entry in entries if _about_solver(entry, board, job)
            ),
            log=decode(LogHead, head.head),
            signature=Signature(head.signature),
        )
        return self._blobs.put(receipts.to_json(record).encode())

    def _commitment(self, job: Job, finish: Finish) -> StateCommitment:
        """Commit to the last state again, after a restart of the coordinator."""
        plan = self._programs.plan(job.artifacts.program, job.terms.program)
        loaded = LoadedJob(job.terms, plan.program, plan, [])
        steps = int(job.terms.steps)
        state = load_state(loaded, self._blobs, finish.state, steps, job.marks[-1].state_root)
        return loaded.commit(steps, state)

    def _program(self, job: Job) -> bytes:
        return self._blobs.read(job.artifacts.program, MAX_PROGRAM_BYTES)

    def _entries(self, board: Board, job: Job) -> list[LogEntry]:
        indexes = board.indexes.get(Digest(job.id), ())
        return [decode(LogEntry, self._log.read(index, 1)[0]) for index in indexes]

    def _included(self, entry: LogEntry) -> receipts.Included:
        return receipts.Included(entry, self._log.inclusion(int(entry.index), 0).path)


def _statement(entry: LogEntry) -> Statement | None:
    event = entry.event
    return event.message.statement if isinstance(event, SignedMessage) else None


def _says(entry: LogEntry, kind: type[Finish | RevealVerdict], job: Job) -> bool:
    said = _statement(entry)
    return isinstance(said, kind) and said.attempt == job.attempt


def _vouches(entry: LogEntry, job: Job) -> bool:
    """Whether the entry is a verdict that still stands."""
    event = entry.event
    return (
        _says(entry, RevealVerdict, job)
        and isinstance(event, SignedMessage)
        and event.message.party in job.attesters
    )


def _about_solver(entry: LogEntry, board: Board, job: Job) -> bool:
    """Whether the entry ends a dispute of the attempt that the solver had to defend."""
    event = entry.event
    return (
        isinstance(event, Ruled)
        and event.attempt == job.attempt
        and board.case(event.dispute).opened.defender == job.solver
    )
