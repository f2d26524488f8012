"""What the coordinator refuses, each with its rule and without a trace."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from identic.node.coordinator import board as boards
from identic.node.coordinator import policy as policies
from identic.node.coordinator.policy import Policy
from identic.proofs import arbiter
from identic.proofs.envelope import seal
from identic.proofs.merkle import IncrementalTree
from identic.protocol.dispute.moves import Children
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, LocalError, ProtocolError
from identic.protocol.hashing import leaf_hash, sha256
from identic.protocol.ids import Count, Credits, Digest, Signature, Unsigned
from identic.protocol.job.entries import BeaconDrawn, Deposit, LogEntry, VerifiersAssigned
from identic.protocol.job.messages import (
    AcceptJob,
    CallTime,
    DisputeId,
    DisputeMove,
    Enrol,
    Finish,
    Leave,
    SignedMessage,
    Stored,
)
from identic.protocol.job.state import Phase
from identic.protocol.ops.base import Cost
from identic.protocol.program.plan import StepPlan
from tests.node.coordinator.village import KEYS, Run, Village, model_with, party, posting


def refusal(village: Village, attempt: Callable[[], object]) -> ProtocolError:
    """Assert that an attempt is refused and that board and log are as before."""
    before = (village.host.board.jobs, village.host.board.cases, village.host.board.ledger)
    with pytest.raises(ProtocolError) as refused:
        attempt()
    board = village.host.board
    assert (board.jobs, board.cases, board.ledger) == before
    assert village.host.log.size == village.storage.size()
    return refused.value


def test_job_2__a_job_is_posted_once(village: Village) -> None:
    village.post()
    refused = refusal(village, lambda: village.say("submitter", posting().said))
    assert (refused.rule, refused.code) == ("JOB-2", Code.ILLEGAL_MOVE)


def test_job_2__nothing_can_be_said_about_a_job_that_was_not_posted(village: Village) -> None:
    said = AcceptJob(posting().job, Count(1))
    village.host.welcome(party("solver"))
    assert refusal(village, lambda: village.say("solver", said)).code is Code.UNKNOWN


@pytest.mark.parametrize("missing", ["program", "state", "data 0", "data 2"])
def test_job_22__a_posting_without_its_blobs_is_refused(village: Village, missing: str) -> None:
    for name, data in posting().blobs.items():
        if name != missing:
            village.blobs.put(data)
    village.host.welcome(party("submitter"))
    refusal(village, lambda: village.say("submitter", posting().said))
    village.blobs.put(posting().blobs[missing])
    village.say("submitter", posting().said)


POLICIES = {
    "a move clock of 1000 ms": Policy(shortest_ms=1_001),
    "a rerun clock of 10000 ms": Policy(shortest_ms=999),
    "a budget clock of 9500 ms": Policy(shortest_ms=900),
    "to check": Policy(memory_bytes=1_000),
}


@pytest.mark.parametrize("got", POLICIES)
def test_job_22__a_posting_beyond_the_policy_is_refused_before_its_state_is_read(
    village: Village, got: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job whose clocks nobody can keep would take the bonds of whoever is drawn for it."""
    monkeypatch.setattr(policies, "cost", lambda _: Cost(flops=10_000_000_000, bytes=502_000_000))
    village.blobs.put(posting().blobs["program"])
    village.restart(POLICIES[got])
    village.host.welcome(party("submitter"))
    refused = refusal(village, lambda: village.say("submitter", posting().said))
    assert refused.rule == "JOB-22"
    assert got in refused.got


def test_job_22__a_policy_that_changes_leaves_the_log_as_it_is(village: Village) -> None:
    village.post().accept()
    village.restart(Policy(memory_bytes=1, shortest_ms=1 << 20))
    assert village.job.phase is Phase.TRAINING


@pytest.mark.parametrize("part", ["program", "state", "data"])
def test_job_22__blobs_that_are_not_the_terms_are_refused(village: Village, part: str) -> None:
    for data in posting().blobs.values():
        village.blobs.put(data)
    village.host.welcome(party("submitter"))
    said = posting().said
    wrong = bytearray(posting().blobs[part if part != "data" else "data 0"])
    wrong[-1] ^= 1
    blob = village.blobs.put(bytes(wrong))
    change = {part: blob} if part != "data" else {"data": (blob, *said.artifacts.data[1:])}
    bad = replace(said, artifacts=replace(said.artifacts, **change))
    refusal(village, lambda: village.say("submitter", bad))


def test_job_10__a_false_loss_cannot_be_posted(village: Village, honest: Run) -> None:
    village.post().accept()
    said = village.commitment(honest, 1)
    mark = said.marks[0]
    for wrong in (
        replace(mark, loss=Unsigned(mark.loss ^ 1)),
        replace(mark, path=mark.path[:-1]),
        replace(mark, path=(*mark.path[:-1], Digest(bytes(32)))),
    ):
        bad = replace(said, marks=(wrong,))
        refused = refusal(village, lambda said=bad: village.say("solver", said))  # type: ignore[misc]
        assert refused.rule == "JOB-10"
    village.say("solver", said)


def test_job_11__a_stored_state_is_the_committed_one(
    village: Village, honest: Run, false: Run
) -> None:
    village.post().accept()
    for index in (1, 2):
        village.say("solver", village.commitment(honest, index))

    def stored(blob: Digest) -> Callable[[], object]:
        return lambda: village.say("solver", Stored(posting().job, Count(1), Count(2), blob))

    refusal(village, stored(sha256(b"nowhere")))
    refusal(village, stored(village.blobs.put(false.states[2])))
    refusal(village, stored(village.blobs.put(honest.states[1])))
    refusal(village, stored(village.blobs.put(b"garbage")))
    stored(village.blobs.put(honest.states[2]))()


def test_job_12__the_model_is_the_last_state(village: Village, honest: Run, false: Run) -> None:
    village.post().accept().commit(honest)

    def finish(model: bytes, state: bytes) -> Callable[[], object]:
        files = (village.blobs.put(model), village.blobs.put(state))
        said = Finish(posting().job, Count(1), honest.head(), *files)
        return lambda: village.say("solver", said)

    marked = save(load(honest.model), metadata={"format": "pt", "more": "than the tensors"})
    for model in (model_with(honest, "out.bias"), false.model, marked, b"garbage", b""):
        refused = refusal(village, finish(model, honest.states[-1]))
        assert refused.rule == "JOB-12"
    refusal(village, finish(honest.model, false.states[-1]))
    finish(honest.model, honest.states[-1])()
    assert village.job.phase is Phase.VERIFYING


def test_job_6__a_move_is_made_by_its_own_party(village: Village, honest: Run, false: Run) -> None:
    village.judged(honest).challenge("watcher", false)
    dispute = village.case.dispute
    move = Children((Digest(bytes(32)),) * 5)
    signed = arbiter.sign_move(KEYS["watcher"], dispute, move)
    said = DisputeMove(village.case.id, signed)
    assert refusal(village, lambda: village.say("anna", said)).rule == "JOB-6"
    unknown = DisputeMove(DisputeId(bytes(32)), signed)
    assert refusal(village, lambda: village.say("watcher", unknown)).code is Code.UNKNOWN
    forged = replace(said, move=replace(signed, signature=Signature(bytes(64))))
    refusal(village, lambda: village.say("watcher", forged))


def test_job_13__job_15__what_the_coordinator_draws_is_checked(
    village: Village, honest: Run
) -> None:
    village.post().accept().commit(honest).finish(honest)
    village.seal_verdict("anna", honest).seal_verdict("bert", honest)
    board, tree = boards.Board(party("coordinator")), IncrementalTree()
    rules, plans = [], village.host._programs.plan
    for data in village.storage.read(0, 1_000):
        entry = decode(LogEntry, data)
        if isinstance(entry.event, VerifiersAssigned | BeaconDrawn):
            forged = replace(entry, event=replace(entry.event, seed=Digest(bytes(32))))
            with pytest.raises(ProtocolError) as refused:
                boards.apply(board, forged, tree.root, plans)
            rules.append(refused.value.rule)
        if isinstance(entry.event, VerifiersAssigned):
            turned = replace(entry.event, parties=entry.event.parties[::-1])
            with pytest.raises(ProtocolError) as refused:
                boards.apply(
                    board, replace(entry, event=turned), tree.root, village.host._programs.plan
                )
            rules.append(refused.value.rule)
        board = boards.apply(board, entry, tree.root, plans)
        tree.append(leaf_hash(data))
    assert rules == ["JOB-13", "JOB-13", "JOB-15"]


def test_job_13__who_left_is_not_drawn(village: Village) -> None:
    village.post()
    village.say("anna", Leave())
    village.accept()
    assert len(village.job.verifiers) == 0
    village.say("watcher", Enrol())
    drawn = {seat.party for seat in village.host.board.job(posting().job).verifiers}
    assert drawn == {party("bert"), party("watcher")}


def test_set_4__a_party_has_one_deposit_in_order(village: Village) -> None:
    village.host.welcome(party("anna"))
    board = village.host.board
    for number, name in ((0, "bert"), (1, "anna"), (2, "bert")):
        event = Deposit(Count(number), party(name), Credits(5))
        entry = LogEntry(Count(1), board.now, event)
        with pytest.raises(ProtocolError) as refused:
            boards.apply(board, entry, village.host.log.root, village.host._programs.plan)
        assert refused.value.rule == "SET-4"
    size = village.host.log.size
    village.host.welcome(party("anna"))
    assert village.host.log.size == size


def test_msg_1__a_message_for_another_network_is_refused(village: Village) -> None:
    signed = seal(KEYS["anna"], party("bert"), 0, Enrol())
    assert refusal(village, lambda: village.host.submit(signed)).rule == "MSG-1"


def test_msg_2__a_message_that_somebody_else_signed_is_refused(village: Village) -> None:
    signed = seal(KEYS["anna"], party("coordinator"), 0, Enrol())
    message = replace(signed.message, party=party("bert"))
    forged = replace(signed, message=message)
    for attempt in (village.host.inspect, village.host.submit):
        refused = refusal(village, lambda attempt=attempt: attempt(forged))  # type: ignore[misc]
        assert refused.code is Code.BAD_SIGNATURE


def test_msg_3__the_same_message_has_one_place(village: Village) -> None:
    signed = seal(KEYS["anna"], party("coordinator"), 0, Enrol())
    first = village.host.submit(signed)
    village.host.submit(seal(KEYS["anna"], party("coordinator"), 1, Leave()))
    assert village.host.submit(signed) == first
    assert village.host.log.size == 2
    assert party("anna") not in village.host.board.enrolled


def test_set_3__a_party_without_money_cannot_take_a_job(village: Village) -> None:
    village.post()
    poor = seal(KEYS["solver"], party("coordinator"), 0, AcceptJob(posting().job, Count(1)))
    refused = refusal(village, lambda: village.host.submit(poor))
    assert (refused.rule, refused.code) == ("SET-3", Code.INSUFFICIENT)


def test_job_20__time_is_not_called_early_for_a_job(village: Village) -> None:
    village.post().accept()
    refused = refusal(village, lambda: village.say("anna", CallTime(posting().job)))
    assert refused.rule == "JOB-20"


def test_a_disk_that_fails_changes_nothing(
    village: Village, honest: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    village.post().accept()
    said = village.commitment(honest, 1)
    before = village.host.board

    def full(entry: bytes, key: Digest) -> None:
        del entry, key
        raise LocalError("the disk is full", remedy="make room")

    with monkeypatch.context() as patch:
        patch.setattr(village.storage, "append", full)
        with pytest.raises(LocalError):
            village.say("solver", said)
    assert village.host.board == before
    village.say("solver", said)


@given(at=st.integers(0, 100_000), byte=st.integers(1, 255), cut=st.booleans())
def test_damaged_messages_are_refused_and_never_a_fault(at: int, byte: int, cut: bool) -> None:
    data = bytearray(encode(seal(KEYS["submitter"], party("coordinator"), 0, posting().said)))
    data[at % len(data)] ^= byte
    damaged = bytes(data[: at % len(data)] if cut else data)
    with pytest.raises(ProtocolError):
        _judge(damaged)


def _judge(message: bytes) -> None:
    board = boards.Board(party("coordinator"))
    entry = LogEntry(Count(0), board.now, decode(SignedMessage, message))
    boards.apply(board, entry, Digest(bytes(32)), _no_plan)


def _no_plan(blob: Digest, program: Digest) -> StepPlan:
    raise AssertionError(f"nobody asks for {program} in {blob}")
