"""Disputes with real signatures, through the arbiter, and their transcripts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from identic.proofs import arbiter
from identic.proofs.report import Report
from identic.proofs.runlog import run_root
from identic.proofs.signatures import SigningKey
from identic.proofs.transcript import VERSION, TimedMove, Transcript
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.moves import Side, SignedMove
from identic.protocol.dispute.player import Execution, next_move
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Dispute
from identic.protocol.encoding import encode
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, Millis
from identic.protocol.job.terms import job_id
from tests.helpers.small_run import Run

KEYS = {Side.DEFENDER: SigningKey(bytes([1]) * 32), Side.CHALLENGER: SigningKey(bytes([2]) * 32)}
COORDINATOR = SigningKey(bytes([3]) * 32)
STRANGER = SigningKey(bytes([4]) * 32)


@dataclass
class Played:
    """A dispute and the record of it."""

    run: Run
    dispute: Dispute
    moves: tuple[TimedMove, ...] = ()
    pauses: tuple[Pause, ...] = ()
    called: Millis | None = None
    report: Report | None = None

    def transcript(self) -> Transcript:
        """What the coordinator would sign."""
        assert self.dispute.ruling is not None
        return Transcript(
            version=Count(VERSION),
            terms=self.run.terms,
            program=encode(self.run.program),
            opening=self.dispute.setup.opening,
            moves=self.moves,
            pauses=self.pauses,
            called=self.called,
            ruling=self.dispute.ruling,
            coordinator=COORDINATOR.party,
        )


def head_of(run: Run, states: list[Digest]) -> RunHead:
    """Run head over the states at the marks."""
    root = run_root(states, run.terms.cadence, run.terms.steps)
    return RunHead(job_id(run.terms), Count(len(states)), root)


def opened(run: Run, defender: list[Digest], challenger: list[Digest], tag: bytes = b"") -> Played:
    """A dispute between the two keys."""
    opening = Opening(
        dispute=sha256(b"dispute" + tag),
        defender=KEYS[Side.DEFENDER].party,
        challenger=KEYS[Side.CHALLENGER].party,
        defender_head=head_of(run, defender),
        challenger_head=head_of(run, challenger),
        at=Millis(1_700_000_000_000),
        step_ms=Millis(5),
        load=Count(1),
    )
    return Played(run, arbiter.start(Setup(run.terms, run.plan, opening)).dispute)


def signed(played: Played, side: Side, execution: Execution) -> SignedMove:
    """The move that the side makes now."""
    move = next_move(played.dispute, side, execution)
    assert move is not None
    return arbiter.sign_move(KEYS[side], played.dispute, move)


def paused(played: Played, length_ms: int) -> Played:
    """The coordinator is away for a time, after the last event."""
    absence = Pause(Millis(played.dispute.now + 5), Millis(played.dispute.now + 5 + length_ms))
    dispute = arbiter.pause(played.dispute, absence).dispute
    return replace(played, dispute=dispute, pauses=(*played.pauses, absence))


def finish(played: Played, defender: Execution, challenger: Execution) -> Played:
    """Play on to the ruling."""
    executions = {Side.DEFENDER: defender, Side.CHALLENGER: challenger}
    while played.dispute.ruling is None:
        side = played.dispute.due[-1]
        at = Millis(played.dispute.now + 40)
        move = signed(played, side, executions[side])
        progress = arbiter.apply(played.dispute, move, at)
        played = replace(
            played,
            dispute=progress.dispute,
            moves=(*played.moves, TimedMove(at, move)),
            report=progress.report,
        )
    return played


def late(played: Played) -> Played:
    """End by a call for time."""
    at = Millis(played.dispute.deadline + 1)
    progress = arbiter.call_time(played.dispute, at)
    return replace(played, dispute=progress.dispute, called=at)
