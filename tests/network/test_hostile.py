"""What an honest network refuses, from strangers and from known peers, and stays up."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from io import BufferedReader
from pathlib import Path

import pytest

from identic.node.blobs import Blobs
from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case
from identic.node.identity import Identity
from identic.node.rpc.client import Connection
from identic.node.rpc.remote import Remote
from identic.node.submission import Prepared, post
from identic.node.views import RoleState
from identic.proofs.arbiter import sign_move
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.player import next_move
from identic.protocol.dtypes import DType
from identic.protocol.encoding import encode
from identic.protocol.errors import Code, IllegalMove, LocalError, ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, Signature
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.messages import Challenge, DisputeMove, Enrol, Leave
from identic.protocol.program.codec import program_digest
from identic.protocol.program.types import Program
from identic.protocol.settlement.ledger import Burned, Reason
from identic.protocol.tensors import TensorType
from tests.network.town import (
    PRICES,
    PROGRAM,
    Ask,
    Town,
    expected,
    prepared,
)
from tests.node.execution.parts import Kept, forced_at

pytestmark = pytest.mark.xdist_group("honest network")


@pytest.fixture(autouse=True)
async def stays_up(town: Town) -> AsyncIterator[None]:
    """After each of these tests every node runs as before."""
    yield
    for name, member in town.net.members.items():
        async with town.remote(name) as remote:
            status = await remote.status()
        assert [(r.name, r.state) for r in status.roles] == [(member.role, RoleState.RUNNING)]


# ---- strangers ------------------------------------------------------------------------------


async def test_net_3__an_unknown_peer_is_refused_and_told_why(town: Town, tmp_path: Path) -> None:
    stranger = Identity.create(tmp_path, "stranger")
    for name in ("hub", "ann"):
        card = town.net.identity(name).card
        async with Connection(town.net.address(name), stranger, card) as connection:
            with pytest.raises(LocalError) as refusal:
                await Remote(connection).status()
        assert "does not know this identity" in refusal.value.problem


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\0" * 4096, b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x40\x00" + b"\xff" * 16384],
    ids=["nothing", "zeros", "http", "a broken handshake"],
)
def test_garbage_at_the_port_harms_nobody(town: Town, garbage: bytes) -> None:
    for name in ("hub", "sol"):
        host, _, port = town.net.address(name).rpartition(":")
        with socket.create_connection((host, int(port))) as plain:
            plain.sendall(garbage)
            plain.shutdown(socket.SHUT_WR)
            try:
                while plain.recv(4096):
                    pass
            except ConnectionError:
                continue


# ---- known peers ----------------------------------------------------------------------------


class FalseBlobs(Blobs):
    """A store that gives out other bytes than it says."""

    def open_at(self, digest: Digest, offset: int) -> tuple[BufferedReader, int]:
        """Open another blob."""
        del digest
        return super().open_at(self.put(b"other bytes"), offset)


async def test_net_8__bytes_with_another_digest_are_refused(town: Town, tmp_path: Path) -> None:
    digest = Digest(sha256(b"these bytes"))
    async with town.remote() as remote:
        with pytest.raises(ProtocolError) as refusal:
            await remote.blobs.upload(FalseBlobs(tmp_path, 1 << 20), digest)
        assert (refusal.value.rule, refusal.value.code) == ("NET-8", Code.MISMATCH)
        (there,) = await remote.blobs.has([digest])
    assert not there.present


async def test_msg_4__a_message_that_is_too_long_is_refused(town: Town) -> None:
    async with town.remote() as remote:
        with pytest.raises(ProtocolError) as refusal:
            await remote.log.append(bytes((4 << 20) + 1))
        assert refusal.value.rule == "MSG-4"
        with pytest.raises(ProtocolError) as refusal:
            await remote.log.append(bytes(9 << 20))
        assert refusal.value.rule == "NET-4"


async def test_msg_2__a_message_with_another_signature_is_refused(town: Town) -> None:
    forged = replace(town.seal(Enrol()), signature=Signature(bytes(64)))
    async with town.remote() as remote:
        with pytest.raises(ProtocolError) as refusal:
            await remote.log.append(encode(forged))
    assert refusal.value.code is Code.BAD_SIGNATURE


async def test_msg_3__a_message_counts_once_however_often_it_is_sent(town: Town) -> None:
    message = encode(town.seal(Leave()))
    async with town.remote() as remote:
        first = await remote.log.append(message)
        assert [await remote.log.append(message) for _ in range(3)] == [first] * 3


async def submitted(town: Town, made: Prepared) -> ProtocolError:
    """Post a job that must be refused; returns the refusal."""
    async with town.remote() as remote:
        with pytest.raises(ProtocolError) as refusal:
            await post(remote, town.net.identity("client"), town.blobs, made)
        with pytest.raises(ProtocolError):
            await remote.jobs.get(made.job)
    return refusal.value


def with_program(town: Town, program: Program) -> Prepared:
    """The tests' job with another program, its terms changed to fit."""
    made = prepared(town.blobs, town.party("client"), Ask())
    terms = replace(made.terms, program=program_digest(program))
    return replace(
        made,
        terms=terms,
        artifacts=replace(made.artifacts, program=town.blobs.put(encode(program))),
    )


def changed(number: int, **fields: object) -> Program:
    """The tests' program with one instruction of its gradient changed."""
    section = PROGRAM.gradient
    instructions = list(section.instructions)
    instructions[number] = replace(instructions[number], **fields)  # type: ignore[arg-type]
    return replace(PROGRAM, gradient=replace(section, instructions=tuple(instructions)))


async def test_prg_5__a_program_with_an_unknown_operator_is_refused(town: Town) -> None:
    refusal = await submitted(town, with_program(town, changed(3, op="execute")))
    assert refusal.rule.startswith("PRG-")
    assert "execute" in refusal.got


async def test_a_program_with_a_wrong_shape_is_refused(town: Town) -> None:
    shape = TensorType.of(DType.FLOAT32, (9, 9))
    refusal = await submitted(town, with_program(town, changed(3, output=shape)))
    assert refusal.rule.startswith("PRG-")


async def test_exe_3__a_state_that_is_not_the_terms_is_refused(town: Town) -> None:
    made = prepared(town.blobs, town.party("client"), Ask())
    other = replace(made, terms=replace(made.terms, initial_state=Digest(bytes(32))))
    assert (await submitted(town, other)).rule == "EXE-3"


async def test_a_blob_that_was_never_sent_is_missed(town: Town) -> None:
    made = prepared(town.blobs, town.party("client"), Ask())
    absent = Digest(sha256(b"never sent"))
    artifacts = replace(made.artifacts, data=(absent, *made.artifacts.data[1:]))
    other, client = replace(made, artifacts=artifacts), town.net.identity("client")
    async with town.remote() as remote:
        with pytest.raises(ProtocolError) as refusal:
            await post(remote, client, town.blobs, other)
    assert refusal.value.rule == "NET-8"


# ---- a false challenge ----------------------------------------------------------------------

WRONG = forced_at(5, 44, 0, (2,), 1 << 30)


async def test_a_false_challenge_loses_its_bond(town: Town) -> None:
    ask = Ask(window_ms=60_000)
    made = prepared(town.blobs, town.party("client"), ask)
    kept = Kept(town.blobs.folder, made.terms, made.artifacts, PROGRAM)
    false = kept.execute(WRONG)
    pairs = zip(false.roots, expected(ask), strict=True)
    marks = 1 + next(mark for mark, (a, b) in enumerate(pairs) if a != b)
    async with town.remote() as remote:
        await post(remote, town.net.identity("client"), town.blobs, made)
    job = await town.until_job(made.job, lambda now: len(now.marks) >= marks)
    assert job.solver is not None
    before = (await town.board()).ledger
    mark = marks - 1
    await town.say(Challenge(made.job, job.attempt, Count(mark), false.roots[mark]))
    await play(town, made, kept, false.roots)
    board = await town.board()
    # A verifier that tells its agreement meanwhile has a dispute of its own, which ends with this.
    cases = [board.cases[name] for name in board.jobs[made.job].disputes]
    ruling = next(case.dispute.ruling for case in cases if case.dispute.ruling is not None)
    assert (ruling.verdict, ruling.loser) == (Verdicts.WRONG, Side.CHALLENGER)
    assert (ruling.rule, ruling.step, ruling.value) == ("REF-12", 5, 44)
    bond, half = int(PRICES.challenger_bond), int(PRICES.challenger_bond) // 2
    assert board.ledger.at_risk(town.party("client")) == 0
    assert board.ledger.of(Burned()) - before.of(Burned()) == bond - half
    slashes = [
        t
        for t in board.ledger.transactions
        if t.reason is Reason.SLASH and t not in before.transactions
    ]
    assert [t.party for t in slashes] == [town.party("client")]
    # The run goes on with the solver that was accused.
    after = await town.until_job(made.job, lambda now: bool(now.disputes) and not now.contest)
    assert (after.attempt, after.solver) == (1, job.solver)


def news(made: Prepared, seen: set[int]) -> Callable[[Board], Case | None]:
    """Finds the job's dispute when it is over, or the challenger is due in a new round."""

    def found(board: Board) -> Case | None:
        case = next((c for c in board.cases.values() if c.job == made.job), None)
        if case is None:
            return None
        due = Side.CHALLENGER in case.dispute.due and int(case.dispute.turn) not in seen
        return case if case.over or due else None

    return found


async def play(town: Town, made: Prepared, kept: Kept, claimed: tuple[Digest, ...]) -> None:
    """Play the client's false claim as well as it can be played, to the ruling."""
    rerun = kept.rerun(replace(kept.start, roots=claimed), WRONG)
    key = town.net.identity("client").signing_key
    seen: set[int] = set()
    while not (case := await town.until(news(made, seen))).over:
        move = next_move(case.dispute, Side.CHALLENGER, rerun)
        assert move is not None
        seen.add(int(case.dispute.turn))
        # The other side may have given the evidence first.
        with contextlib.suppress(IllegalMove):
            await town.say(DisputeMove(case.id, sign_move(key, case.dispute, move)))
