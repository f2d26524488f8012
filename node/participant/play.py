"""Playing a dispute: whenever the record has grown, ask the worker for the move that is due."""

from __future__ import annotations

from functools import partial

from identic.node.coordinator.cases import Case
from identic.node.execution.forced import ForcedError
from identic.node.participant.base import Participant
from identic.node.participant.cases import record_of, side_of
from identic.node.participant.runs import assignment
from identic.node.worker.frames import Answer, Answered, ChosenMove, OwnRun
from identic.node.worker.handle import Worker
from identic.proofs.signatures import sign
from identic.protocol.dispute.moves import MoveBody, SignedMove
from identic.protocol.hashing import Domain
from identic.protocol.ids import Digest
from identic.protocol.job.messages import DisputeId, DisputeMove
from identic.protocol.job.state import Job


async def play(
    party: Participant, job: Job, dispute: DisputeId, own: OwnRun, forced: ForcedError | None = None
) -> None:
    """Play a dispute to its ruling, as the side that ``party`` is.

    Args:
        party: who plays.
        job: the job, as it was when the run was made.
        dispute: opened, with ``party`` as a side.
        own: the run that is defended, over at least the marks that were claimed.
        forced: the deliberate error of that run, if it had one.
    """
    await party.fetch_job(job)
    seen = -1
    async with Worker(assignment(party.context, job, forced)) as worker:
        while True:
            case = await party.until(partial(_news, party, dispute, seen))
            if case.over:
                return
            side = side_of(case, party.party)
            if side is None:
                raise RuntimeError("playing somebody else's dispute")
            seen = len(case.moves)
            if side in case.dispute.due:
                # An answer that came too late, or twice after a restart, changes nothing.
                reply = await worker.ask(Answer(record_of(case), side, own))
                if isinstance(reply, Answered) and reply.move is not None:
                    await _move(party, case, reply.move)


def _news(party: Participant, dispute: DisputeId, seen: int) -> Case | None:
    """The dispute once it has more moves than ``seen``, or a ruling."""
    case = party.mirror.board.cases.get(dispute)
    return case if case is not None and (case.over or len(case.moves) > seen) else None


async def _move(party: Participant, case: Case, chosen: ChosenMove) -> None:
    """Sign a move and make it; one that came too late changes nothing."""
    body = MoveBody(Digest(case.id), chosen.turn, party.party, chosen.move)
    key = party.context.identity.signing_key
    signed = SignedMove(body, sign(key, Domain.MOVE, body))
    await party.try_to_say(DisputeMove(case.id, signed))
