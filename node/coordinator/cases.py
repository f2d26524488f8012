"""Disputes on the board: the game, its moves and its ruling, driven by the arbiter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from identic.proofs import arbiter
from identic.proofs.transcript import TimedMove
from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.moves import SignedMove
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Dispute
from identic.protocol.encoding import encode
from identic.protocol.errors import Code, IllegalMove, ProtocolError
from identic.protocol.ids import Count, Digest, JobId, Millis
from identic.protocol.job.entries import DisputeOpened, Loser, Ruled
from identic.protocol.job.messages import DisputeId
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.plan import StepPlan


@dataclass(frozen=True)
class Case:
    """A dispute of the board."""

    id: DisputeId
    job: JobId
    opened: DisputeOpened
    dispute: Dispute
    moves: tuple[TimedMove, ...] = ()
    pauses: tuple[Pause, ...] = ()
    called: Millis | None = None
    """Unix time at which time was called, if that ended it."""
    bytes_exchanged: int = 0
    """Encoded length of all moves."""
    transcript: Digest | None = None
    """SHA-256 of the transcript, once the ruling is in the log."""
    void: bool = False
    """Whether it ended without a ruling, since one of its parties fell elsewhere."""

    @property
    def over(self) -> bool:
        """Whether the referee has ruled."""
        return self.dispute.ruling is not None

    @property
    def played(self) -> bool:
        """Whether moves are still made in it."""
        return not self.over and not self.void


def open_case(terms: JobTerms, plan: StepPlan, opened: DisputeOpened, at: Millis) -> Case:
    """Set a dispute up.

    Raises:
        IllegalMove: the claims cannot be disputed (DSP-2).
    """
    opening = Opening(
        opened.dispute,
        opened.defender,
        opened.challenger,
        opened.defender_head,
        opened.challenger_head,
        at,
        opened.step_ms,
        opened.load,
    )
    started = arbiter.start(Setup(terms, plan, opening))
    return Case(opened.dispute, opened.job, opened, started.dispute)


def after_move(case: Case, move: SignedMove, at: Millis) -> Case:
    """The dispute after a move, and after the referee if it was the last.

    Raises:
        ProtocolError: the move is not legal (DSP rules) or its evidence fails (REF rules); the
            dispute is void (JOB-18).
    """
    _check_played(case)
    progress = arbiter.apply(case.dispute, move, at)
    return replace(
        case,
        dispute=progress.dispute,
        moves=(*case.moves, TimedMove(at, move)),
        bytes_exchanged=case.bytes_exchanged + len(encode(move)),
    )


def after_time(case: Case, at: Millis) -> Case:
    """The dispute after time was called.

    Raises:
        IllegalMove: nobody is late (DSP-12), or the dispute is over or void (JOB-18).
    """
    _check_played(case)
    return replace(case, dispute=arbiter.call_time(case.dispute, at).dispute, called=at)


def _check_played(case: Case) -> None:
    # JOB-18: nothing is done any more in a dispute whose party fell in another.
    if case.void:
        raise IllegalMove("JOB-18", got=f"an event of {case.id.name}", want="one that is played")


def paused(case: Case, pause: Pause) -> Case:
    """The dispute after a time in which the coordinator was not at work."""
    dispute = arbiter.pause(case.dispute, pause).dispute
    return replace(case, dispute=dispute, pauses=(*case.pauses, pause))


def ruled(case: Case, attempt: int, transcript: Digest) -> Ruled:
    """The entry that tells the ruling of a dispute that is over."""
    ruling = case.dispute.ruling
    if ruling is None:
        raise RuntimeError("a dispute without a ruling")
    loser = Loser.NOBODY if ruling.loser is None else Loser(int(ruling.loser))
    return Ruled(case.id, case.job, Count(attempt), ruling.verdict, loser, ruling.rule, transcript)


def same_ruling(case: Case, said: Ruled) -> None:
    """Refuse a ruling that is not the referee's.

    Raises:
        ProtocolError: the dispute is not over, or ended otherwise (JOB-18).
    """
    # JOB-18: a ruling is what the referee found, told once.
    if not case.over or case.transcript is not None:
        raise IllegalMove("JOB-18", got=f"a ruling in {case.id.name}", want="one at its end")
    want = ruled(case, said.attempt, said.transcript)
    if said != want:
        raise ProtocolError("JOB-18", Code.MISMATCH, got=said, want=want)
