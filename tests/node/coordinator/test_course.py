"""The course of jobs at a coordinator: settled, disputed, late."""

from identic.proofs.receipt import from_json, verify_receipt
from identic.proofs.transcript import replay
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.messages import CallTime
from identic.protocol.job.state import Awaiting, Phase
from identic.protocol.settlement.ledger import Issued
from tests.node.coordinator.village import (
    CLOCKS,
    GRANT,
    KEYS,
    PRICES,
    Run,
    Village,
    party,
    posting,
)


def conserved(village: Village) -> bool:
    """Whether all money is accounted for."""
    board = village.host.board
    issued = -board.ledger.of(Issued()) == GRANT * len(board.known)
    return issued and sum(board.ledger.balances.values()) == 0


def test_an_honest_run_is_settled_and_has_a_receipt(village: Village, honest: Run) -> None:
    village.judged(honest)
    assert village.job.awaiting is Awaiting.WINDOW
    village.wait()
    job = village.job
    assert job.phase is Phase.SETTLED
    gains = {name: village.money(name) - GRANT for name in ("submitter", "solver", "anna", "bert")}
    assert gains == {"submitter": -180, "solver": 100, "anna": 40, "bert": 40}
    assert conserved(village)
    assert job.receipt is not None
    receipt = from_json(village.blobs.read(job.receipt, 1 << 24).decode())
    found = verify_receipt(
        receipt, file_digest=sha256(honest.model), coordinator=party("coordinator")
    )
    assert found.ok, found.report.failed


def test_the_verifiers_bind_the_beacon_to_themselves(village: Village, honest: Run) -> None:
    village.judged(honest)
    verdicts = [seat.verdict for seat in village.job.verifiers]
    works = {verdict.work for verdict in verdicts if verdict is not None}
    assert len(works) == 2


def test_a_lie_is_found_to_one_fused_multiply_add(
    village: Village, honest: Run, false: Run
) -> None:
    village.post().accept().commit(false, upto=3)
    village.challenge("anna", honest)
    assert village.job.phase is Phase.DISPUTED
    village.play({"solver": false, "anna": honest})
    job = village.job
    assert (job.phase, job.attempt) == (Phase.OPEN, Count(2))
    ruling = village.case.dispute.ruling
    assert ruling is not None
    assert (ruling.verdict, ruling.primitive, ruling.step) == (Verdicts.WRONG, "fma", 3)
    assert ruling.computed == ruling.challenger != ruling.defender
    assert village.money("solver") == GRANT - PRICES.solver_bond
    assert village.money("anna") == GRANT + PRICES.solver_bond // 2
    assert village.money("bert") == GRANT
    assert conserved(village)


def test_the_transcript_of_a_dispute_replays_to_its_ruling(
    village: Village, honest: Run, false: Run
) -> None:
    village.post().accept().commit(false).challenge("watcher", honest)
    village.play({"solver": false, "watcher": honest})
    transcript = village.case.transcript
    assert transcript is not None
    record = replay(village.blobs.read(transcript, 1 << 27), party("coordinator"))
    assert record.ruling == village.case.dispute.ruling


def test_after_a_liar_another_solver_finishes_the_job(
    village: Village, honest: Run, false: Run
) -> None:
    village.post().accept().commit(false, upto=3)
    village.challenge("anna", honest)
    village.play({"solver": false, "anna": honest})
    village.accept("second").commit(honest, "second").finish(honest, "second")
    village.seal_verdict("anna", honest).seal_verdict("bert", honest)
    village.tell_verdict("anna", honest).tell_verdict("bert", honest)
    village.wait()
    assert village.job.phase is Phase.SETTLED
    assert village.money("second") == GRANT + PRICES.solver_reward
    assert conserved(village)


def test_a_false_challenge_costs_its_bond(village: Village, honest: Run, false: Run) -> None:
    village.judged(honest).challenge("watcher", false)
    village.play({"solver": honest, "watcher": false})
    assert village.money("watcher") == GRANT - PRICES.challenger_bond
    assert village.job.awaiting is Awaiting.WINDOW
    village.wait()
    assert village.job.phase is Phase.SETTLED
    assert village.job.receipt is not None
    receipt = from_json(village.blobs.read(village.job.receipt, 1 << 24).decode())
    assert len(receipt.rulings) == 1
    assert verify_receipt(receipt, coordinator=party("coordinator")).ok


def test_job_18__verifiers_that_vouch_without_looking_fall_with_the_liar(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(false).challenge("watcher", honest)
    village.play({"solver": false, "watcher": honest})
    defenders = []
    while village.job.phase is Phase.DISPUTED:
        defenders = [case.opened.defender for case in village.played]
        village.wait()
    assert len(village.job.disputes) == 3
    assert party("solver") not in defenders
    assert village.job.phase is Phase.OPEN
    for name, bond in (("solver", PRICES.solver_bond), ("anna", PRICES.verifier_bond)):
        assert village.money(name) == GRANT - bond
    won = PRICES.solver_bond // 2 + 2 * (PRICES.verifier_bond // 2)
    assert village.money("watcher") == GRANT + won
    assert conserved(village)


def test_a_silent_challenger_loses_by_time(village: Village, honest: Run, false: Run) -> None:
    village.judged(honest).challenge("watcher", false)
    for name in ("solver", "anna", "bert"):
        village.move(name, honest, village.between(name, "watcher"))
    village.wait()
    told = [case for case in village.host.board.cases.values() if case.transcript]
    assert len(told) == 1
    ruling = told[0].dispute.ruling
    assert ruling is not None
    assert ruling.verdict is Verdicts.LATE
    won = PRICES.solver_reward + PRICES.challenger_bond // 2
    assert (village.job.phase, village.money("solver")) == (Phase.SETTLED, GRANT + won)
    transcript = told[0].transcript
    assert transcript is not None
    assert replay(village.blobs.read(transcript, 1 << 27)).ruling == ruling


def test_when_both_sides_are_silent_nobody_is_slashed(
    village: Village, honest: Run, false: Run
) -> None:
    village.judged(honest).challenge("watcher", false)
    village.wait()
    for name in ("solver", "anna", "bert"):
        ruling = village.between(name, "watcher").dispute.ruling
        assert ruling is not None
        assert ruling.verdict is Verdicts.CANNOT_TELL
    assert village.job.phase is Phase.SETTLED
    gains = [village.money(name) - GRANT for name in ("solver", "anna", "watcher")]
    assert gains == [PRICES.solver_reward, PRICES.verifier_reward, 0]


def test_anyone_may_call_time_in_a_dispute(village: Village, honest: Run, false: Run) -> None:
    village.judged(honest).challenge("watcher", false)
    village.clock.now = int(village.case.dispute.deadline) + 1
    village.say("bert", CallTime(village.case.id))
    assert village.case.over


def test_a_silent_solver_is_late_and_the_job_is_open_again(village: Village, honest: Run) -> None:
    village.post().accept().commit(honest, upto=3)
    village.wait(CLOCKS.move_ms + CLOCKS.rerun_ms - 1)
    assert village.job.phase is Phase.TRAINING
    village.wait(1)
    assert (village.job.phase, village.job.attempt) == (Phase.OPEN, Count(2))
    assert village.money("solver") == GRANT - PRICES.solver_bond // 8
    assert conserved(village)


def test_a_verifier_that_does_not_tell_its_verdict_loses_its_fee(
    village: Village, honest: Run
) -> None:
    village.post().accept().commit(honest).finish(honest)
    village.seal_verdict("anna", honest).seal_verdict("bert", honest)
    village.tell_verdict("anna", honest)
    village.wait()
    assert village.job.awaiting is Awaiting.WINDOW
    village.wait()
    assert village.job.phase is Phase.SETTLED
    assert village.money("bert") == GRANT
    assert village.money("submitter") == GRANT - 140


def test_without_enough_verifiers_a_finished_run_expires(village: Village, honest: Run) -> None:
    for data in posting().blobs.values():
        village.blobs.put(data)
    village.say("submitter", posting().said)
    village.accept().commit(honest).finish(honest)
    assert len(village.job.verifiers) == 0
    village.wait()
    village.wait()
    assert village.job.phase is Phase.EXPIRED
    assert [village.money(name) for name in ("submitter", "solver")] == [GRANT, GRANT]
    assert KEYS["anna"].party not in village.host.board.known
