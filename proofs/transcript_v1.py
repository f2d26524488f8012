"""Transcripts of version 1: their layout, and the clocks of their time.

In version 1 terms had no reserve for disputes, an opening said neither the solver's speed nor
the load, and there were no pauses. A round lasted ``move_ms`` at the run level and ``rerun_ms``
at any other level and for the evidence; nobody had a reserve. All else is as it is now.

Nothing writes this version any more. Spec: docs/spec/commitments.md (RCP-12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from identic.proofs import arbiter
from identic.proofs.arbiter import Progress
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.clocks import Clock
from identic.protocol.dispute.levels import RunLevel
from identic.protocol.dispute.moves import Pair, SignedMove
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Dispute, Ruling
from identic.protocol.encoding import encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Count, Digest, JobId, Millis, PartyId, Signature, Unsigned
from identic.protocol.job.terms import Clocks, JobTerms, Prices, job_id

VERSION = 1


@dataclass(frozen=True)
class OldClocks:
    """Durations of a job, in milliseconds."""

    move_ms: Millis
    rerun_ms: Millis
    window_ms: Millis


@dataclass(frozen=True)
class OldTerms:
    """Terms of a job, in the order of their encoding."""

    version: Count
    submitter: PartyId
    program: Digest
    initial_state: Digest
    data: tuple[Digest, ...]
    seed: Unsigned
    steps: Count
    cadence: Count
    checkpoint: Count
    kernel_set: Count
    verifiers: Count
    prices: Prices
    clocks: OldClocks
    nonce: Digest

    @property
    def modern(self) -> JobTerms:
        """The same terms, with the least reserve that terms may have; ``play`` gives none."""
        clocks = Clocks(self.clocks.move_ms, self.clocks.rerun_ms, self.clocks.window_ms, Millis(1))
        return JobTerms(**{**vars(self), "clocks": clocks})


@dataclass(frozen=True)
class OldOpening:
    """Who disputes what."""

    dispute: Digest
    defender: PartyId
    challenger: PartyId
    defender_head: RunHead
    challenger_head: RunHead
    at: Millis


@dataclass(frozen=True)
class OldMove:
    """A move, and the Unix time of its arrival."""

    at: Millis
    move: SignedMove


@dataclass(frozen=True)
class OldTranscript:
    """What happened in a dispute."""

    version: Count
    terms: OldTerms
    program: bytes
    opening: OldOpening
    moves: tuple[OldMove, ...]
    called: Millis | None
    ruling: Ruling
    coordinator: PartyId

    @property
    def modern_opening(self) -> Opening:
        """The opening with claims about the job as its terms are called now.

        Raises:
            ProtocolError: a claim is about another job.
        """
        opening, job = self.opening, JobId(tagged(Domain.TERMS, encode(self.terms)))
        heads = []
        for head in (opening.defender_head, opening.challenger_head):
            # RCP-12: both claims are about the job of the terms.
            if JobId(head.job) != job:
                raise ProtocolError("RCP-12", Code.MISMATCH, got=head.job, want=job)
            heads.append(replace(head, job=job_id(self.terms.modern)))
        return Opening(
            opening.dispute,
            opening.defender,
            opening.challenger,
            heads[0],
            heads[1],
            opening.at,
            Millis(0),
            Count(1),
        )


@dataclass(frozen=True)
class OldSigned:
    """A file of version 1."""

    transcript: OldTranscript
    signature: Signature


def play(
    setup: Setup, moves: Sequence[tuple[Millis, SignedMove]], called: Millis | None
) -> Progress:
    """Play a dispute by the clocks of version 1; each move has the Unix time of its arrival.

    Raises:
        ProtocolError: a move is not legal at its time, or nobody was late.
    """
    progress = arbiter.start(setup)
    for at, move in moves:
        progress = arbiter.apply(_at_old_clock(progress.dispute), move, at)
    if called is not None:
        progress = arbiter.call_time(_at_old_clock(progress.dispute), called)
    return progress


def _at_old_clock(dispute: Dispute) -> Dispute:
    """The dispute with the clock that its round had in version 1."""
    clocks, none = dispute.setup.terms.clocks, Millis(0)
    # RCP-12: the run level has the short clock, every other one and the evidence the long one.
    allowance = clocks.move_ms if isinstance(dispute.level, RunLevel) else clocks.rerun_ms
    return replace(dispute, clock=Clock(dispute.clock.began, allowance, Pair(none, none)))
