"""Contests at a coordinator: disputes in parallel, void ones, and the order of rulings."""

from __future__ import annotations

import pytest

from identic.node.coordinator.board import apply
from identic.node.coordinator.cases import Case, ruled
from identic.node.coordinator.duties import next_deadline, owed
from identic.proofs.receipt import from_json, verify_receipt
from identic.protocol.errors import IllegalMove, ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, Millis
from identic.protocol.job.entries import Event, LogEntry, Ruled, TimeCalled, Verdicts
from identic.protocol.job.messages import CallTime, Challenge
from identic.protocol.job.state import Phase
from tests.node.coordinator.village import (
    GRANT,
    PRICES,
    Run,
    Village,
    party,
    posting,
)

VOUCHERS = ("solver", "anna", "bert")


def claims(village: Village, name: str, mark: int, word: bytes) -> None:
    """Somebody claims a state that no run has."""
    root = Digest(sha256(word))
    village.say(name, Challenge(posting().job, village.job.attempt, Count(mark), root))


def test_job_23__all_who_vouch_are_asked_at_once_each_in_its_own_dispute(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(false).challenge("watcher", honest)
    opened = [case.opened for case in village.played]
    assert {o.defender for o in opened} == {party(name) for name in VOUCHERS}
    assert len({o.dispute for o in opened}) == 3
    assert [int(o.load) for o in opened] == [3] * 3
    assert next_deadline(village.host.board) == min(c.dispute.deadline for c in village.played) + 1


def test_job_18__nothing_is_done_any_more_in_a_dispute_whose_party_fell_in_another(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(honest).challenge("watcher", false)
    runs = {"solver": honest, "watcher": false}
    village.play(runs)
    assert village.between("solver", "watcher").transcript is not None
    left = village.between("anna", "watcher")
    assert left.void
    assert left.dispute.ruling is None
    with pytest.raises(IllegalMove) as refused:
        village.move("anna", honest, left)
    assert refused.value.rule == "JOB-18"
    village.clock.now = int(left.dispute.deadline) + 1
    with pytest.raises(IllegalMove) as refused:
        village.say("bert", CallTime(left.id))
    assert refused.value.rule == "JOB-18"
    assert not [duty for duty in owed(village.host.board, village.clock.now) if duty.case]
    village.wait(1)
    assert village.money("anna") == village.money("bert") == GRANT + PRICES.verifier_reward


def test_job_18__rulings_are_told_in_the_order_in_which_disputes_ended(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(honest).challenge("watcher", false)
    for name in ("bert", "anna"):
        village.move(name, honest, village.between(name, "watcher"))
    # The coordinator is slow: both disputes end before a ruling is told.
    village.clock.now = int(village.played[0].dispute.deadline) + 1
    board = village.host.board
    for name in ("bert", "anna"):
        called = entry(village, TimeCalled(Digest(village.between(name, "watcher").id)))
        board = apply(board, called, village.host.log.root, village.host._programs.plan)
    second, first = (board.case(village.between(name, "watcher").id) for name in ("anna", "bert"))
    assert board.ended == (first.id, second.id)
    with pytest.raises(ProtocolError) as refused:
        apply(board, told(village, second), village.host.log.root, village.host._programs.plan)
    assert refused.value.rule == "JOB-18"
    after = apply(board, told(village, first), village.host.log.root, village.host._programs.plan)
    assert after.ended == ()
    assert after.case(second.id).void


def told(village: Village, case: Case) -> LogEntry:
    """The entry that tells a ruling."""
    return entry(village, ruled(case, village.job.attempt, sha256(b"transcript")))


def entry(village: Village, event: Event) -> LogEntry:
    """An entry that comes next."""
    return LogEntry(Count(village.host.log.size), Millis(village.clock.now), event)


def test_job_24__liars_meet_each_other_while_the_solver_meets_one(
    village: Village, honest: Run
) -> None:
    village.post().accept().commit(honest)
    for number, name in enumerate(("watcher", "second", "eve", "mallory", "trudy")):
        claims(village, name, 1 + number % 4, name.encode())
    pairs = [{c.opened.defender, c.opened.challenger} for c in village.played]
    assert pairs == [
        {party("solver"), party("watcher")},
        {party("second"), party("eve")},
        {party("mallory"), party("trudy")},
    ]
    # Of two claims the later one stands for the solver's marks before it.
    assert village.between("second", "eve").opened.defender == party("eve")
    head = village.between("second", "eve").opened.defender_head
    assert head == honest.head(int(head.marks))
    village.play({"solver": honest}).wait()
    # The others kept silent, so that nobody can tell: they are in the way no longer.
    assert (village.job.phase, village.job.attempt) == (Phase.TRAINING, 1)
    assert village.money("solver") == GRANT + PRICES.challenger_bond // 2


def test_job_4__a_coordinator_killed_in_a_contest_goes_on(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(honest).challenge("watcher", false)
    claims(village, "eve", 2, b"eve")
    village.move("solver", honest, village.between("solver", "watcher"))
    before = village.host.board
    village.restart()
    after = village.host.board
    assert (after.jobs, after.ledger, after.ended) == (before.jobs, before.ledger, before.ended)
    runs = {**dict.fromkeys(VOUCHERS, honest), "watcher": false}
    while village.job.phase is Phase.DISPUTED:
        village.restart()
        village.play(runs)
        village.wait()
    assert village.money("watcher") == village.money("eve") == GRANT - PRICES.challenger_bond


def test_rcp_10__a_receipt_lists_the_rulings_that_the_solver_was_in(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(honest).challenge("watcher", false)
    claims(village, "eve", 2, b"eve")
    claims(village, "mallory", 3, b"mallory")
    runs = {**dict.fromkeys(VOUCHERS, honest), "watcher": false}
    while village.job.phase is not Phase.SETTLED:
        village.play(runs)
        village.wait()
    assert village.job.receipt is not None
    receipt = from_json(village.blobs.read(village.job.receipt, 1 << 24).decode())
    solver = party("solver")
    cases = village.host.board.cases.values()
    wanted = {c.id for c in cases if c.transcript is not None and c.opened.defender == solver}
    listed = [included.entry.event for included in receipt.rulings]
    assert {r.dispute for r in listed if isinstance(r, Ruled)} == wanted
    assert verify_receipt(receipt, coordinator=party("coordinator")).ok
    assert any(c.void for c in cases)


def test_both_silent_challengers_leave_and_the_job_goes_on(village: Village, honest: Run) -> None:
    village.post().accept().commit(honest)
    for number, name in enumerate(("watcher", "second", "eve")):
        claims(village, name, 1 + number, name.encode())
    village.play({"solver": honest}).wait()
    rulings = [case.dispute.ruling for case in village.host.board.cases.values()]
    verdicts = {ruling.verdict for ruling in rulings if ruling is not None}
    assert verdicts == {Verdicts.LATE, Verdicts.CANNOT_TELL}
    assert village.job.phase is Phase.TRAINING
    lost = [GRANT - village.money(name) for name in ("watcher", "second", "eve")]
    assert lost == [PRICES.challenger_bond, 0, 0]
    assert village.job.contests[0].decided
