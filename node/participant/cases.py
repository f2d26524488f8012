"""What a party reads from its mirror of the board (``node/mirror.py``).

The coordinator is not asked how a job stands. Every party applies the same entries with the
same function, referee included, and so notices a coordinator that breaks the rules.
"""

from __future__ import annotations

from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case
from identic.node.execution.playing import GameRecord, PlayedMove
from identic.proofs.arbiter import party_of
from identic.protocol.dispute.moves import Side
from identic.protocol.encoding import decode
from identic.protocol.ids import Digest, PartyId
from identic.protocol.job.entries import DisputeOpened, LogEntry


def program_of(encoded: bytes, board: Board) -> tuple[Digest, Digest] | None:
    """Blob and digest of the program that an entry needs, if the entry opens a dispute."""
    event = decode(LogEntry, encoded).event
    if isinstance(event, DisputeOpened):
        job = board.job(event.job)
        return job.artifacts.program, job.terms.program
    return None


def side_of(case: Case, party: PartyId) -> Side | None:
    """The side that ``party`` plays in a dispute, if any."""
    setup = case.dispute.setup
    return next((side for side in Side if party_of(setup, side) == party), None)


def record_of(case: Case) -> GameRecord:
    """A dispute's record, for a worker."""
    setup = case.dispute.setup
    sides = {party_of(setup, side): side for side in Side}
    moves = tuple(PlayedMove(m.at, sides[m.move.body.party], m.move.body.move) for m in case.moves)
    return GameRecord(setup.opening, moves, case.pauses)
