"""Applies signed moves to a dispute: signatures, the game, and the referee.

The coordinator and every replay of a transcript run exactly this code.

Spec: docs/spec/dispute.md (DSP-14).
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.proofs.referee import judge
from identic.proofs.report import Report
from identic.proofs.signatures import SigningKey, sign, verify
from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.machine import (
    Judge,
    Judged,
    MoveMade,
    TimeCalled,
    open_dispute,
    step,
)
from identic.protocol.dispute.moves import Move, MoveBody, Side, SignedMove
from identic.protocol.dispute.setup import Setup
from identic.protocol.dispute.state import Dispute, Phase
from identic.protocol.errors import IllegalMove
from identic.protocol.hashing import Domain
from identic.protocol.ids import Millis, PartyId


@dataclass(frozen=True)
class Progress:
    """A dispute after an event."""

    dispute: Dispute
    report: Report | None
    """The referee's checks, when it was asked."""


def start(setup: Setup) -> Progress:
    """Open a dispute.

    Raises:
        IllegalMove: the claims cannot be disputed (DSP-2).
    """
    dispute, _ = open_dispute(setup)
    return Progress(dispute, None)


def party_of(setup: Setup, side: Side) -> PartyId:
    """Who plays a side."""
    opening = setup.opening
    return opening.defender if side is Side.DEFENDER else opening.challenger


def sign_move(key: SigningKey, dispute: Dispute, move: Move) -> SignedMove:
    """Sign a move for the round that the dispute is in."""
    body = MoveBody(dispute.setup.opening.dispute, dispute.turn, key.party, move)
    return SignedMove(body, sign(key, Domain.MOVE, body))


def apply(dispute: Dispute, signed: SignedMove, at: Millis) -> Progress:
    """Apply a move that arrived at Unix time ``at``, and let the referee answer if it can.

    Raises:
        IllegalMove: wrong dispute, round or move, or evidence that fails a check.
        ProtocolError: the signature is not the party's (COM-9).
    """
    side = _side(dispute, signed)
    verify(signed.body.party, Domain.MOVE, signed.body, signed.signature)
    return _judged(*step(dispute, MoveMade(at, side, signed.body.move)), at)


def call_time(dispute: Dispute, at: Millis) -> Progress:
    """Rule against who is late at Unix time ``at``.

    Raises:
        IllegalMove: nobody is.
    """
    after, _ = step(dispute, TimeCalled(at))
    return Progress(after, None)


def pause(dispute: Dispute, absence: Pause) -> Progress:
    """Move the clocks on by a time in which the coordinator took no move.

    Raises:
        IllegalMove: the pause is none, or began before the last event (DSP-18).
    """
    after, _ = step(dispute, absence)
    return Progress(after, None)


def _side(dispute: Dispute, signed: SignedMove) -> Side:
    body, opening = signed.body, dispute.setup.opening
    # DSP-14: a move names its dispute, its round and a party of the dispute, which signed it.
    if body.dispute != opening.dispute:
        raise IllegalMove("DSP-14", got=body.dispute, want=opening.dispute)
    if body.turn != dispute.turn:
        raise IllegalMove("DSP-14", got=f"round {body.turn}", want=f"round {dispute.turn}")
    for side in Side:
        if body.party == party_of(dispute.setup, side):
            return side
    raise IllegalMove("DSP-14", got=f"party {body.party.short}", want="a side of the dispute")


def _judged(dispute: Dispute, commands: tuple[object, ...], at: Millis) -> Progress:
    """Have the referee answer when the machine asks."""
    asked = next((c for c in commands if isinstance(c, Judge)), None)
    if asked is None or dispute.phase is not Phase.JUDGING:
        return Progress(dispute, None)
    judgement = judge(dispute.setup, asked.question, asked.evidence)
    if judgement.finding is None:
        bad = judgement.report.failed
        if bad is None:
            raise RuntimeError("the referee refused evidence without a failed check")
        raise IllegalMove(bad.rule, got=f"{bad.what}: {bad.got}", want=bad.want)
    after, _ = step(dispute, Judged(at, judgement.finding))
    return Progress(after, judgement.report)
