"""Moves out of place: repeated, out of order, malformed, too large, too slow, or not made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import ClassVar

from identic.node.execution.rerun import Rerun
from identic.proofs.envelope import seal
from identic.proofs.signatures import sign
from identic.protocol.dispute.clocks import longest_ms, reserve_ms
from identic.protocol.dispute.moves import (
    NO_EVIDENCE,
    Children,
    Chunk,
    ChunkOpening,
    Entries,
    Evidence,
    Move,
    MoveBody,
    Side,
    SignedMove,
)
from identic.protocol.dispute.state import Dispute, Phase
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, Digest, TraceIndex, Unsigned
from identic.protocol.job.entries import LogEntry
from identic.protocol.job.messages import DisputeMove, SignedMessage
from tests.adversaries.adversary import Adversary, Cost, listed
from tests.adversaries.lies import SkippedSteps, WrongElement, wrong_element
from tests.helpers.arena import Arena, as_it_is, tale
from tests.helpers.wire import served
from tests.node.coordinator.village import KEYS, party


class Meddler(Adversary):
    """A solver with one wrong element, that does something else besides its moves."""

    cost = Cost.BOND

    def attack(self, arena: Arena) -> None:
        """Play the false run, and meddle before each move of anybody."""
        false = tale(arena.blobs, wrong_element)
        arena.post().accept().commit(false, upto=4)
        arena.challenge("anna", arena.honest)
        arena.duel({"solver": false, "anna": arena.honest}, between=lambda: self.meddle(arena))

    def meddle(self, arena: Arena) -> None:
        """Try something in the present round."""
        raise NotImplementedError


def signed(who: str, dispute: Digest, turn: int, move: Move) -> SignedMove:
    """A move signed for any dispute and round."""
    body = MoveBody(dispute, Count(turn), KEYS[who].party, move)
    return SignedMove(body, sign(KEYS[who], Domain.MOVE, body))


# ---- repeated and out of order --------------------------------------------------------------


@listed
class ReplayedMoves(Meddler):
    """Says again what was said."""

    name = "replayed moves"
    tries = "It sends its old moves and the other side's again, and messages byte for byte."
    stopped = ("DSP-14", "JOB-6", "REF-12 at primitive")

    def meddle(self, arena: Arena) -> None:
        """Repeat the moves of the last rounds."""
        case, size = arena.case, arena.host.log.size
        for timed in case.moves[-4:]:
            if timed.move.body.turn < case.dispute.turn:
                arena.attempt("solver", DisputeMove(case.id, timed.move))
        entry = decode(LogEntry, arena.host.log.read(size - 1, 1)[0])
        if isinstance(entry.event, SignedMessage):
            # The same message has the same place.
            assert arena.host.submit(entry.event) == size - 1
            assert arena.host.log.size == size


@listed
class ReorderedMoves(Meddler):
    """Moves when it is not its turn."""

    name = "reordered moves"
    tries = "It moves for the next round before this one is over, and twice in a round."
    stopped = ("DSP-14", "DSP-4", "REF-12 at primitive")

    def meddle(self, arena: Arena) -> None:
        """Move ahead, and once more."""
        case, dispute = arena.case, arena.case.dispute
        move = dispute.pending or NO_EVIDENCE
        ahead = signed("solver", case.id, int(dispute.turn) + 1, move)
        arena.attempt("solver", DisputeMove(case.id, ahead))
        if dispute.phase is Phase.AWAIT_CHALLENGER:
            again = signed("solver", case.id, int(dispute.turn), move)
            arena.attempt("solver", DisputeMove(case.id, again))


@listed
class OtherDispute(Adversary):
    """Moves of one dispute in another."""

    name = "moves of another dispute"
    tries = (
        "It makes the same false challenge twice and plays the moves of one dispute in the other."
    )
    stopped = ("DSP-14", "DSP-1", "REF-12 at primitive", "REF-12 at primitive")
    cost = Cost.BOND
    liars = ("watcher",)

    def attack(self, arena: Arena) -> None:
        """Lose a dispute, and use its moves in the next one."""
        false = tale(arena.blobs, wrong_element)
        arena.post().accept().commit(arena.honest, upto=4)
        runs = {"watcher": false, "solver": arena.honest}
        arena.challenge("watcher", false)
        arena.duel(runs)
        before = arena.case

        def meddle() -> None:
            for timed in before.moves:
                if timed.move.body.party == party("watcher"):
                    arena.attempt("watcher", DisputeMove(arena.case.id, timed.move))
                    arena.attempt("watcher", DisputeMove(before.id, timed.move))

        arena.challenge("watcher", false)
        arena.duel(runs, between=meddle)

    def expected(self, arena: Arena, liar: str) -> int:
        """Two challenges, two bonds."""
        return 2 * arena.bond(liar)


# ---- malformed and too large ----------------------------------------------------------------


@listed
class OversizedMoves(WrongElement):
    """Moves that are too long, or of another kind."""

    name = "oversized moves"
    tries = (
        "Each time it first makes moves with too many items, of the wrong kind, and "
        "evidence of more than 64 KiB."
    )
    stopped = ("DSP-5", "REF-1", "REF-12 at primitive")

    def strategy(self, dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
        """All that is too much, then the move."""
        many = (sha256(b"child"),) * 3000
        piece = ChunkOpening(TraceIndex(0), Count(0), bytes(4096), ())
        large = Evidence((), (), (piece,) * 17)
        words = (Unsigned(0),) * 3000
        bad = (Children(many), Chunk(bytes(5000)), Entries(words), large)
        return (*bad, *as_it_is(dispute, side, execution))


@listed
class MalformedMoves(Adversary):
    """Bytes that are no messages."""

    name = "malformed moves"
    tries = (
        "Over the wire it sends garbage, moves cut off and with a bit flipped, and messages"
        " of more than 4 and 8 MiB."
    )
    stopped = ("ENC-1", "ENC-7", "COM-9", "MSG-4", "NET-4", "REF-12 at primitive")
    cost = Cost.BOND

    def attack(self, arena: Arena) -> None:
        """Send what is no move, then play."""
        false = tale(arena.blobs, wrong_element)
        arena.post().accept().commit(false, upto=4)
        arena.challenge("anna", arena.honest)
        board, size = arena.host.board, arena.host.log.size
        arena.refused += asyncio.run(refusals(arena, list(malformed(false_move(arena)))))
        assert (arena.host.log.size, arena.host.board) == (size, board)
        arena.duel({"solver": false, "anna": arena.honest})


def false_move(arena: Arena) -> bytes:
    """A message with the solver's first move."""
    false = arena.execution(tale(arena.blobs, wrong_element))
    (move,) = as_it_is(arena.case.dispute, Side.DEFENDER, false)
    said = DisputeMove(arena.case.id, signed("solver", arena.case.id, 0, move))
    return encode(seal(KEYS["solver"], party("coordinator"), 10_000, said))


def malformed(message: bytes) -> Iterator[bytes]:
    """Bytes that are not a message of the solver."""
    yield b""
    yield bytes(1000)
    for part in range(1, 8):
        yield message[: len(message) * part // 8]
    for part in range(16):
        at = len(message) * part // 16
        yield message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]
    yield message + b"\0"
    yield bytes((4 << 20) + 1)
    yield bytes(9 << 20)


async def refusals(arena: Arena, messages: Sequence[bytes]) -> list[str]:
    """Rules by which the services refuse messages."""
    found = []
    async with served(arena, arena.folder / "wire") as remote:
        for message in messages:
            try:
                await remote.disputes.move(message)
            except ProtocolError as refusal:
                found.append(refusal.rule)
            else:
                raise AssertionError("a malformed message was taken")
        status = await remote.jobs.list()
        assert len(status) == 1
    return found


# ---- too slow -------------------------------------------------------------------------------


@listed
class SlowDrip(Adversary):
    """Moves at the last moment, each time."""

    name = "slow-drip moves"
    tries = "It makes each move in the last millisecond of its clock, and so uses up its reserve."
    stopped = ("REF-12 at primitive",)
    cost = Cost.BOND

    def attack(self, arena: Arena) -> None:
        """Wait until just before the deadline."""
        false = tale(arena.blobs, wrong_element)
        arena.post().accept().commit(false, upto=4)
        arena.challenge("anna", arena.honest)
        began = arena.clock.now

        def late(dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
            deadline = arena.host.next_deadline()
            assert deadline is not None
            arena.clock.now = int(deadline) - 1
            return as_it_is(dispute, side, execution)

        ruling = arena.duel({"anna": arena.honest, "solver": false}, {"solver": late})
        # The reserve goes in the first round; afterwards the allowances are all that is left.
        setup = arena.case.dispute.setup
        assert arena.clock.now - began < longest_ms(setup, len(ruling.rounds))
        assert ruling.at - began >= reserve_ms(setup)


class Silence(WrongElement):
    """Says nothing at one level."""

    level: ClassVar[str]

    def strategy(self, dispute: Dispute, side: Side, execution: Rerun) -> Sequence[Move]:
        """Nothing at the level, before that what the run gives."""
        here = "evidence" if dispute.level is None else dispute.level.name
        return () if here == self.level else as_it_is(dispute, side, execution)


@listed
class SilenceAtRun(Silence):
    """Does not publish its marks."""

    name = "silence at the run"
    tries = "It does not answer at all once the dispute is open."
    level = "run"
    stopped = ("DSP-12 at run",)


@listed
class SilenceAtInterval(Silence):
    """Does not publish its states."""

    name = "silence at the interval"
    tries = "It does not publish the states between two marks."
    level = "interval"
    stopped = ("DSP-12 at interval",)


@listed
class SilenceAtStep(Silence):
    """Does not publish a trace."""

    name = "silence at the step"
    tries = "It does not publish the values of the step."
    level = "step"
    stopped = ("DSP-12 at step",)


@listed
class SilenceAtState(SkippedSteps, Silence):
    """Does not open its state."""

    name = "silence at the state"
    tries = "It does not open the state that it claims after a step whose values are agreed."
    level = "state"
    stopped = ("DSP-12 at state",)


@listed
class SilenceAtOutput(Silence):
    """Does not publish chunks."""

    name = "silence at the result"
    tries = "It does not publish the chunks of a result."
    level = "output"
    stopped = ("DSP-12 at output",)


@listed
class SilenceAtChunk(Silence):
    """Does not publish bytes."""

    name = "silence at the chunk"
    tries = "It does not open the bytes of a chunk."
    level = "chunk"
    stopped = ("DSP-12 at chunk",)


@listed
class SilenceAtFold(Silence):
    """Does not publish partial results."""

    name = "silence at the element"
    tries = "It does not publish the partial results of an element."
    level = "fold"
    stopped = ("DSP-12 at fold",)


@listed
class SilenceAtEvidence(Silence):
    """Gives no evidence."""

    name = "silence at the evidence"
    tries = "It gives no evidence for the last question; the other side does."
    level = "evidence"
    stopped = ("REF-12 at primitive",)
