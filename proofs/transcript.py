"""A dispute as a file: everything that anyone needs to judge it again, offline.

Established by a replay:

1. the bytes are one transcript of a known version, signed whole by its coordinator (RCP-1);
2. the program is the one of the terms, and the terms are those of both claims (RCP-2);
3. every move is its party's, and fits the rules at its time (DSP-1 to DSP-18);
4. these moves at these times give this ruling (RCP-3).

Not established: that the coordinator recorded times truthfully, and that it is the one the
reader trusts, unless the reader says whom. Spec: docs/spec/commitments.md (RCP-1 to RCP-3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge

from identic.proofs import arbiter, transcript_v1
from identic.proofs.report import Report
from identic.proofs.signatures import SigningKey, sign, verify
from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.moves import SignedMove
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Dispute, Ruling
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import Count, Millis, PartyId, Signature
from identic.protocol.job.terms import JobTerms, check_terms
from identic.protocol.program.codec import load, program_digest
from identic.protocol.program.plan import StepPlan
from identic.protocol.program.unroll import unroll
from identic.protocol.program.validate import Limits

VERSION = 2
"""What is written; version 1 is read as well (RCP-12)."""

MOST_VERSIONS = 1 << 16
"""A file that begins with a larger number is no transcript of any version."""

MAX_TRANSCRIPT_BYTES = 1 << 27
"""Longest transcript that is read."""


@dataclass(frozen=True)
class TimedMove:
    """A move, and when it arrived."""

    at: Millis
    """Unix time of arrival, by the coordinator's clock."""
    move: SignedMove


@dataclass(frozen=True)
class Transcript:
    """What happened in a dispute."""

    version: Count
    """2; 1 for a record that was read from a file of that version."""
    terms: JobTerms
    program: bytes
    """Canonical encoding of the program."""
    opening: Opening
    """Parties, claims and the beginning."""
    moves: tuple[TimedMove, ...]
    """All moves that counted, in order."""
    pauses: tuple[Pause, ...]
    """Times in which the coordinator could take no move, in order."""
    called: Millis | None
    """Unix time at which time was called, if that ended the dispute."""
    ruling: Ruling
    coordinator: PartyId
    """Who kept the record and signs it."""


@dataclass(frozen=True)
class SignedTranscript:
    """A transcript file."""

    transcript: Transcript
    signature: Signature
    """The coordinator's, under the label ``transcript``."""


_LAYOUTS: dict[int, type[SignedTranscript | transcript_v1.OldSigned]] = {
    transcript_v1.VERSION: transcript_v1.OldSigned,
    VERSION: SignedTranscript,
}
"""What a file of each version is."""


@dataclass(frozen=True)
class Replay:
    """A transcript judged again."""

    transcript: Transcript
    plan: StepPlan
    """The unrolled program, to name operators and places."""
    dispute: Dispute
    report: Report | None
    """The referee's checks; ``None`` when time decided."""

    @property
    def ruling(self) -> Ruling:
        """The ruling that the replay came to; it equals the recorded one."""
        return self.transcript.ruling


def write(key: SigningKey, transcript: Transcript) -> bytes:
    """Sign a transcript and encode it as a file."""
    return encode(SignedTranscript(transcript, sign(key, Domain.TRANSCRIPT, transcript)))


def replay(data: bytes, coordinator: PartyId | None = None, limits: Limits | None = None) -> Replay:
    """Judge a dispute again from the bytes of its transcript.

    Args:
        data: the file.
        coordinator: whose transcript it must be; anybody's if ``None``.
        limits: largest program to read; the usual ones if ``None``.

    Raises:
        ProtocolError: any byte is not as the coordinator signed it, or the record does not
            lead to its ruling.
    """
    # RCP-1: a transcript is one canonical encoding, signed by its coordinator.
    if len(data) > MAX_TRANSCRIPT_BYTES:
        raise ProtocolError("RCP-1", Code.TOO_LARGE, got=len(data), want=MAX_TRANSCRIPT_BYTES)
    record = _read(data)
    if coordinator is not None and record.coordinator != coordinator:
        raise ProtocolError("RCP-1", Code.FORBIDDEN, got=record.coordinator, want=coordinator)
    plan = _plan(record, limits or Limits())
    dispute, report = _play(record, plan)
    # RCP-3: the recorded ruling is the one that the moves lead to.
    if dispute.ruling != record.ruling:
        raise ProtocolError("RCP-3", Code.MISMATCH, got=record.ruling, want=dispute.ruling)
    return Replay(record, plan, dispute, report)


def _read(data: bytes) -> Transcript:
    """The record of a file of any version, under its coordinator's signature."""
    # Every version begins with its number, in the encoding of a count.
    version = int.from_bytes(data[:8], "big")
    if len(data) < 8 or version >= MOST_VERSIONS:
        raise ProtocolError(
            "RCP-1", Code.MALFORMED, got=f"a file that begins {data[:8].hex()}", want="a transcript"
        )
    # RCP-1: a file of a version that is not known is refused.
    if version not in _LAYOUTS:
        want = f"version {transcript_v1.VERSION} or {VERSION}, which this software reads"
        raise ProtocolError("RCP-1", Code.UNSUPPORTED, got=f"version {version}", want=want)
    try:
        signed = decode(_LAYOUTS[version], data)
    except ProtocolError as error:
        # RCP-1: a transcript is one canonical encoding, whole.
        got = f"{error.got} ({error.rule})"
        raise ProtocolError("RCP-1", Code.MALFORMED, got=got, want="a whole transcript") from error
    verify(signed.transcript.coordinator, Domain.TRANSCRIPT, signed.transcript, signed.signature)
    record = signed.transcript
    return record if isinstance(record, Transcript) else _modern(record)


def _modern(old: transcript_v1.OldTranscript) -> Transcript:
    """A record of version 1 in today's words."""
    return Transcript(
        version=old.version,
        terms=old.terms.modern,
        program=old.program,
        opening=old.modern_opening,
        moves=tuple(TimedMove(m.at, m.move) for m in old.moves),
        pauses=(),
        called=old.called,
        ruling=old.ruling,
        coordinator=old.coordinator,
    )


def in_order(moves: Iterable[TimedMove], pauses: Iterable[Pause]) -> Iterator[TimedMove | Pause]:
    """Moves and pauses by their times; a move at the end of a pause comes after it."""
    return merge(pauses, moves, key=lambda event: event.at)


def _plan(record: Transcript, limits: Limits) -> StepPlan:
    check_terms(record.terms)
    program = load(record.program, limits)
    # RCP-2: the program is the one that the terms name.
    if program_digest(program) != record.terms.program:
        raise ProtocolError(
            "RCP-2", Code.MISMATCH, got=program_digest(program), want=record.terms.program
        )
    return unroll(program)


def _play(record: Transcript, plan: StepPlan) -> tuple[Dispute, Report | None]:
    setup = Setup(record.terms, plan, record.opening)
    if record.version == transcript_v1.VERSION:
        moves = [(timed.at, timed.move) for timed in record.moves]
        progress = transcript_v1.play(setup, moves, record.called)
        return progress.dispute, progress.report
    progress = arbiter.start(setup)
    for event in in_order(record.moves, record.pauses):
        if isinstance(event, Pause):
            progress = arbiter.pause(progress.dispute, event)
        else:
            progress = arbiter.apply(progress.dispute, event.move, event.at)
    if record.called is not None:
        progress = arbiter.call_time(progress.dispute, record.called)
    return progress.dispute, progress.report
