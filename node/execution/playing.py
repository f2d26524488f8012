"""The record of a dispute, and the dispute after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

from identic.protocol.dispute.clocks import Pause
from identic.protocol.dispute.machine import MoveMade, open_dispute, step
from identic.protocol.dispute.moves import Move, Side
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Dispute
from identic.protocol.ids import Millis
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.plan import StepPlan


@dataclass(frozen=True)
class PlayedMove:
    """A move that was accepted."""

    at: Millis
    """Unix time of its entry in the log."""
    side: Side
    move: Move


@dataclass(frozen=True)
class GameRecord:
    """A dispute so far, as the log tells it."""

    opening: Opening
    moves: tuple[PlayedMove, ...]
    pauses: tuple[Pause, ...]
    """Times in which the coordinator could take no move."""


def replayed(record: GameRecord, terms: JobTerms, plan: StepPlan) -> Dispute:
    """The dispute after all moves of the record.

    Raises:
        ProtocolError: a move of the record is not legal (DSP-*).
    """
    dispute, _ = open_dispute(Setup(terms, plan, record.opening))
    moves = (MoveMade(played.at, played.side, played.move) for played in record.moves)
    events: Iterator[MoveMade | Pause] = merge(record.pauses, moves, key=lambda event: event.at)
    for event in events:
        dispute, _ = step(dispute, event)
    return dispute
