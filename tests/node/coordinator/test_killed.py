"""Either side or the coordinator is killed at every move; the ruling stays the same.

A party that was killed knows what the log and its disk say, and nothing else: it reads the log
again into a new mirror, and a new worker answers from the stored run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from identic.node.blobs import Blobs
from identic.node.mirror import Mirror
from identic.node.participant.cases import record_of, side_of
from identic.node.worker.frames import (
    Answer,
    Answered,
    Assignment,
    Bounds,
    OwnRun,
    StoredState,
)
from identic.node.worker.session import Session
from identic.proofs.signatures import sign
from identic.proofs.transcript import replay
from identic.protocol.dispute.moves import Move, MoveBody, SignedMove
from identic.protocol.dispute.state import Ruling
from identic.protocol.errors import IllegalMove
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, Digest
from identic.protocol.job.messages import DisputeMove
from identic.protocol.job.state import Phase
from identic.protocol.program.validate import Limits
from tests.node.coordinator.village import KEYS, Run, Village, posting

AWAY = 3_000
"""Time for which the coordinator is away after each move, in milliseconds."""


@dataclass
class Party:
    """A party as its process has it: a mirror of the log, and a worker with its run."""

    name: str
    run: Run
    folder: Path
    village: Village
    mirror: Mirror | None = None
    session: Session | None = None

    def kill(self) -> None:
        """Forget everything but the log and the disk."""
        self.mirror = self.session = None

    def move(self) -> Move | None:
        """The move that is due now, or nothing."""
        host = self.village.host
        if self.mirror is None:
            self.mirror = Mirror(KEYS["coordinator"].party, host._programs.plan)
        for data in host.log.read(self.mirror.size, 10_000):
            self.mirror.take(data)
        if self.session is None:
            self.session = Session(self._assignment())
        case = list(self.mirror.board.cases.values())[-1]
        side = side_of(case, KEYS[self.name].party)
        if side is None or side not in case.dispute.due:
            return None
        own = OwnRun(tuple(self.run.roots), self._stored())
        reply = self.session.answer(Answer(record_of(case), side, own))
        assert isinstance(reply, Answered)
        return None if reply.move is None else reply.move.move

    def _stored(self) -> tuple[StoredState, ...]:
        states = enumerate(self.run.states)
        return tuple(StoredState(Count(mark), sha256(state)) for mark, state in states)

    def _assignment(self) -> Assignment:
        blobs = Blobs(self.folder, 1 << 30)
        for data in (*self.run.states, *posting().blobs.values()):
            blobs.put(data)
        said = posting().said
        return Assignment(
            blobs=str(self.folder),
            terms=said.terms,
            artifacts=said.artifacts,
            threads=Count(1),
            vector_path="auto",
            device="auto",
            keep_every=Count(2),
            disk_bytes=Count(1 << 30),
            bounds=Bounds.of(Limits(max_bytes=1 << 28)),
            forced=self.run.forced,
        )


def hand_in(village: Village, name: str, move: Move) -> None:
    """Sign a move for the present round and hand it in."""
    case = village.case
    body = MoveBody(Digest(case.id), case.dispute.turn, KEYS[name].party, move)
    signed = SignedMove(body, sign(KEYS[name], Domain.MOVE, body))
    village.say(name, DisputeMove(case.id, signed))


def played(
    village: Village, folder: Path, honest: Run, false: Run, killed: str
) -> tuple[Ruling, list[Move]]:
    """Play a dispute in which somebody is killed before and after every move."""
    village.post().accept().commit(false, upto=3)
    village.challenge("anna", honest)
    parties = [
        Party("solver", false, folder / "solver", village),
        Party("anna", honest, folder / "anna", village),
    ]
    moves: list[Move] = []
    for party in itertools.cycle(parties):
        if village.case.over:
            break
        if killed == "coordinator":
            village.clock.now += AWAY
            village.restart()
        if killed == party.name:
            party.kill()
        move = party.move()
        if move is None:
            continue
        hand_in(village, party.name, move)
        moves.append(move)
        if killed == party.name and not village.case.over:
            # It was killed before it heard that the move counts: it makes it once more.
            party.kill()
            _again(village, party, move)
    ruling = village.case.dispute.ruling
    assert ruling is not None
    assert village.job.phase is Phase.OPEN
    return ruling, moves


def _again(village: Village, party: Party, move: Move) -> None:
    """A move that is repeated after a restart changes nothing; the log says that it was made."""
    size = village.host.log.size
    with pytest.raises(IllegalMove):
        hand_in(village, party.name, move)
    assert village.host.log.size == size
    due = village.case.dispute.due
    now = party.move()
    assert (now is None) == (KEYS[party.name].party not in _parties(village, due))


def _parties(village: Village, due: tuple[int, ...]) -> set[object]:
    opened = village.case.opened
    return {opened.defender if side == 1 else opened.challenger for side in due}


def test_exe_10__killed_at_every_move_either_side_and_the_coordinator_come_to_the_same_ruling(
    tmp_path: Path, honest: Run, false: Run
) -> None:
    rulings: dict[str, Ruling] = {}
    made: dict[str, list[Move]] = {}
    for killed in ("nobody", "solver", "anna", "coordinator"):
        village = Village(tmp_path / killed)
        rulings[killed], made[killed] = played(
            village, tmp_path / killed / "parties", honest, false, killed
        )
        pauses = village.case.pauses
        assert len(pauses) == (len(made[killed]) if killed == "coordinator" else 0)
        assert all(pause.length_ms == AWAY for pause in pauses)
        assert village.case.dispute.clock.reserves.defender == 9_500
        transcript = village.case.transcript
        assert transcript is not None
        assert replay(village.blobs.read(transcript, 1 << 27)).ruling == rulings[killed]
        village.close()
    want = rulings["nobody"]
    assert len(made["nobody"]) == 2 * len(want.rounds) + 1
    for killed, ruling in rulings.items():
        assert replace(ruling, at=want.at) == want
        assert made[killed] == made["nobody"]
