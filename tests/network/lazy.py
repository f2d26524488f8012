"""A node whose verifier looks at nothing: ``python -m tests.network.lazy --config FILE``.

It seals and tells whatever the solver claims. When it has to answer for that, it repeats the
moves with which the solver defended the same claim, which it reads in the log.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from identic.node.config import Config
from identic.node.coordinator.cases import Case
from identic.node.daemon import run
from identic.node.participant.base import Participant
from identic.node.role import Context, Role
from identic.proofs.signatures import sign
from identic.protocol.dispute.moves import Move, MoveBody, SignedMove
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Digest
from identic.protocol.job.messages import (
    CommitVerdict,
    DisputeId,
    DisputeMove,
    Enrol,
    RevealVerdict,
    Verdict,
    verdict_digest,
)
from identic.protocol.job.state import Awaiting, Job


class LazyVerifier(Participant):
    """Vouches for every run."""

    name = "verifier"

    def react(self) -> None:
        """Enrol, seal, tell, and answer with another's moves."""
        if self.party not in self.mirror.board.enrolled:
            self.begin("enrol", partial(self._say_once, Enrol()))
        for job in self.mirror.board.jobs.values():
            if job.seat(self.party) is not None and not job.phase.over:
                self._vouch(job)
        self.play_as(lambda opened: opened.defender, "defend", self._defend)

    def _vouch(self, job: Job) -> None:
        salt = sha256(job.id)
        if job.awaiting is Awaiting.VERDICTS:
            verdict = Verdict(job.id, job.attempt, self.party, job.head, agrees=True, salt=salt)
            said = CommitVerdict(job.id, job.attempt, verdict_digest(verdict))
            self.begin(("seal", job.id, job.attempt), partial(self._say_once, said))
        elif job.awaiting is Awaiting.REVEALS:
            told = RevealVerdict(job.id, job.attempt, job.head, True, salt, sha256(b"no work"))
            self.begin(("tell", job.id, job.attempt), partial(self._say_once, told))

    async def _say_once(self, said: Enrol | CommitVerdict | RevealVerdict) -> None:
        await self.try_to_say(said)

    async def _defend(self, job: Job, dispute: DisputeId) -> None:
        turn = -1
        while True:
            case, move = await self.until(partial(self._newer, job, dispute, turn))
            if move is None:
                return
            turn = int(case.dispute.turn)
            body = MoveBody(Digest(dispute), case.dispute.turn, self.party, move)
            signed = SignedMove(body, sign(self.context.identity.signing_key, Domain.MOVE, body))
            await self.try_to_say(DisputeMove(dispute, signed))

    def _newer(self, job: Job, dispute: DisputeId, turn: int) -> tuple[Case, Move | None] | None:
        """The dispute with the solver's move of a new round, once there is one; or its end."""
        case = self.mirror.board.cases[dispute]
        if case.over or case.void:
            return case, None
        move = self._solver_s(job, case) if case.dispute.turn > turn else None
        return None if move is None else (case, move)

    def _solver_s(self, job: Job, case: Case) -> Move | None:
        """What the solver said in this round of its own dispute about the same claims."""
        for other in self.mirror.board.cases.values():
            same = other.opened.defender_head == case.opened.defender_head
            if other.job == job.id and same and other.id != case.id:
                for made in other.moves:
                    body = made.move.body
                    if body.party == other.opened.defender and body.turn == case.dispute.turn:
                        return body.move
        return None


def make(context: Context) -> Role:
    """Make the role."""
    return LazyVerifier(context)


if __name__ == "__main__":
    run(Config.load(Path(sys.argv[sys.argv.index("--config") + 1])), {"verifier": make})
