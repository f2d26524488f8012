"""Contests over the job machine, rule by rule."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from identic.protocol.ids import Count, JobId, PartyId
from identic.protocol.job.entries import DisputeOpened, Loser, Settled, Verdicts
from identic.protocol.job.messages import Challenge, DisputeId
from identic.protocol.job.state import Awaiting, Phase
from tests.protocol.job.world import (
    ANNA,
    BERT,
    CLOCKS,
    FALSE,
    FUNDS,
    HONEST,
    JOB,
    PRICES,
    SECOND,
    SOLVER,
    SUBMITTER,
    TERMS,
    WATCHER,
    World,
    digest,
    head_of,
    judged,
    refusal,
    trained,
)

OTHER = JobId(digest("other"))


def test_job_16__a_challenge_claims_another_state_at_a_committed_mark() -> None:
    world = World().accept().commit(FALSE, 4)
    good = Challenge(JOB, Count(1), Count(3), HONEST[3])

    def claims(name: PartyId, **change: Any) -> Callable[[], object]:
        return lambda: world.say(name, replace(good, **change))

    refusal("JOB-16", claims(SOLVER), world)
    refusal("JOB-16", claims(WATCHER, mark=Count(4)), world)
    refusal("JOB-16", claims(WATCHER, mark=Count(0)), world)
    refusal("JOB-16", claims(WATCHER, job=OTHER), world)
    refusal("JOB-16", claims(WATCHER, root=FALSE[3]), world)
    refusal("JOB-7", claims(WATCHER, attempt=Count(2)), world)
    claims(WATCHER)()
    assert world.job.phase is Phase.DISPUTED
    assert world.ledger.at_risk(WATCHER) == PRICES.challenger_bond


def test_job_16__who_vouches_for_the_run_does_not_challenge_it() -> None:
    world = judged()
    refusal("JOB-16", lambda: world.challenge(ANNA, FALSE), world)


def test_job_16__a_claim_is_the_solvers_run_up_to_one_mark() -> None:
    world = World().accept().commit(FALSE)
    world.challenge(WATCHER, HONEST, 3)
    opened = world.contest.claims[1]
    assert opened.solver == head_of(FALSE, 4)
    # The mark before is the solver's, though an honest run has another there.
    assert opened.head == head_of((*FALSE[:3], HONEST[3]), 4) != head_of(HONEST, 4)


def test_job_17__a_dispute_is_set_up_once_about_the_claims_made() -> None:
    world = World().accept().commit(FALSE, 4)
    world.say(WATCHER, world.claim(), "first")
    assert world.due() is DisputeOpened
    opening = world.opening()
    assert (opening.defender, opening.challenger) == (SOLVER, WATCHER)
    assert (opening.defender_head, opening.challenger_head) == (
        head_of(FALSE, 3),
        head_of(HONEST, 3),
    )
    refusal("JOB-17", lambda: world.enter(replace(opening, challenger=ANNA)), world)
    refusal("JOB-17", lambda: world.enter(replace(opening, defender_head=head_of(FALSE, 4))), world)
    refusal("JOB-17", lambda: world.enter(replace(opening, dispute=DisputeId(OTHER))), world)
    refusal("JOB-17", lambda: world.enter(replace(opening, load=Count(2))), world)
    refusal("JOB-17", lambda: world.rule_by(opening.dispute), world)
    world.enter(opening)
    refusal("JOB-17", lambda: world.enter(opening), world)
    assert world.job.disputes == (opening.dispute,)


def test_job_17__claims_enter_for_as_long_as_the_window() -> None:
    world = World().accept().commit(FALSE).challenge(WATCHER)
    world.wait(CLOCKS.window_ms - 1).challenge(ANNA, FALSE[::-1], 1)
    world.wait(1)
    refusal("JOB-17", lambda: world.challenge(BERT), world)


def test_job_17__a_party_stands_for_one_claim_at_a_time() -> None:
    world = World().accept().commit(FALSE).challenge(WATCHER)
    refusal("JOB-17", lambda: world.challenge(WATCHER), world)
    refusal("JOB-17", lambda: world.challenge(WATCHER, FALSE[::-1], 1), world)
    world.challenge(ANNA).loses(WATCHER, SOLVER).challenge(WATCHER)
    assert len(world.contest.claims[1].standing) == 2


def test_job_17__a_contest_stops_the_clocks_and_the_run_may_go_on() -> None:
    world = World().accept().commit(upto=3).challenge(WATCHER, FALSE)
    world.wait(1_000_000)
    assert world.due() is None
    world.commit().finish().seal(ANNA).seal(BERT).draw().reveal(ANNA).set_up()
    assert world.job.phase is Phase.DISPUTED
    world.loses(WATCHER, SOLVER)
    assert (world.job.phase, world.job.awaiting) == (Phase.VERIFYING, Awaiting.REVEALS)
    assert world.job.deadline == world.now + CLOCKS.rerun_ms + CLOCKS.move_ms
    world.reveal(BERT).settle()
    assert world.money(SOLVER) == FUNDS + 100 + PRICES.challenger_bond // 2


def test_job_17__a_window_that_comes_during_a_contest_is_still_to_come() -> None:
    world = trained().seal(ANNA).seal(BERT).draw().reveal(ANNA).challenge(WATCHER, FALSE)
    world.reveal(BERT).set_up().loses(WATCHER, SOLVER)
    assert (world.job.phase, world.job.awaiting) == (Phase.VERIFYING, Awaiting.WINDOW)
    assert world.job.deadline == world.now + CLOCKS.window_ms


def test_job_25__after_a_contest_of_the_window_no_other_window_follows() -> None:
    world = judged().wait(CLOCKS.window_ms - 1).challenge(WATCHER, FALSE).wait(50_000)
    world.loses(WATCHER, SOLVER, Verdicts.LATE)
    assert (world.job.phase, world.job.deadline) == (Phase.VERIFYING, world.now)
    assert world.due() is Settled


def test_job_25__what_is_left_of_the_entry_is_waited_for_and_never_renewed() -> None:
    world = judged()
    until = world.now + CLOCKS.window_ms
    for _ in range(3):
        world.challenge(WATCHER, FALSE).wait(1_000).loses(WATCHER, SOLVER)
        assert world.job.deadline == until
    world.wait(2_000)
    refusal("JOB-17", lambda: world.challenge(WATCHER, FALSE), world)
    assert world.settle().job.phase is Phase.SETTLED


def test_job_23__everybody_who_vouches_for_a_lie_answers_at_once() -> None:
    world = judged(FALSE).challenge(WATCHER)
    assert len(world.job.disputes) == 3
    for name in (ANNA, SOLVER, BERT):
        assert world.job.attempt == 1
        world.loses(name, WATCHER, Verdicts.LATE)
    assert len(set(world.ledger.transactions)) == len(world.ledger.transactions)
    assert (world.job.phase, world.job.attempt, world.job.solver) == (Phase.OPEN, 2, None)
    assert world.money(SOLVER) == FUNDS - PRICES.solver_bond
    assert world.money(ANNA) == world.money(BERT) == FUNDS - PRICES.verifier_bond
    won = PRICES.solver_bond // 2 + 2 * (PRICES.verifier_bond // 2)
    assert world.money(WATCHER) == FUNDS + won
    assert world.job.marks[1:] == ()
    world.accept(SECOND).commit().finish()


def test_job_23__a_friend_that_loses_on_purpose_takes_nobody_along() -> None:
    world = judged().challenge(WATCHER, FALSE).loses(SOLVER, WATCHER)
    assert world.job.attempt == 1
    world.loses(WATCHER, ANNA)
    assert (world.job.phase, world.job.attempt) == (Phase.OPEN, 2)
    assert world.money(SOLVER) == FUNDS - PRICES.solver_bond
    assert world.money(ANNA) == FUNDS + PRICES.challenger_bond // 2
    assert world.money(BERT) == FUNDS


def test_job_23__a_friend_in_the_honest_team_takes_nobody_along() -> None:
    world = judged(FALSE).challenge(SUBMITTER).challenge(WATCHER)
    assert len(world.contest.claims) == 2
    world.loses(SUBMITTER, SOLVER)
    assert [member.party for member in world.contest.claims[1].standing] == [WATCHER]
    for name in (SOLVER, ANNA, BERT):
        world.loses(name, WATCHER)
    assert world.job.attempt == 2
    assert world.money(SUBMITTER) + TERMS.escrow == FUNDS - PRICES.challenger_bond
    assert world.money(WATCHER) > FUNDS


def test_job_23__a_fallen_claim_stands_again_with_whoever_joins_it() -> None:
    world = World().accept().commit(FALSE).challenge(SUBMITTER).challenge(SECOND, FALSE[::-1], 1)
    world.loses(SUBMITTER, SOLVER).loses(SECOND, SOLVER)
    assert world.job.contest is None
    world.challenge(SUBMITTER).challenge(SECOND, FALSE[::-1], 1).loses(SUBMITTER, SOLVER)
    world.challenge(WATCHER)
    assert len(world.contest.claims) == 3
    world.loses(SECOND, SOLVER).loses(SOLVER, WATCHER)
    assert (world.job.attempt, world.money(WATCHER)) == (2, FUNDS + PRICES.solver_bond // 2)


def test_job_23__who_vouches_during_a_contest_faces_the_claims_that_stand() -> None:
    world = trained().seal(ANNA).seal(BERT).draw().challenge(WATCHER, FALSE)
    world.reveal(ANNA)
    assert world.due() is DisputeOpened
    assert world.opening().defender == ANNA
    world.set_up().loses(SOLVER, WATCHER)
    assert world.job.awaiting is Awaiting.NOTHING
    refusal("JOB-5", lambda: world.reveal(BERT), world)
    world.loses(WATCHER, ANNA)
    assert world.job.attempt == 2


def test_job_14__who_claims_another_run_does_not_vouch_for_the_solvers() -> None:
    world = trained().seal(ANNA).seal(BERT).draw().challenge(ANNA, FALSE)
    refusal("JOB-14", lambda: world.reveal(ANNA), world)
    world.reveal(BERT).set_up().loses(ANNA, BERT).reveal(ANNA)


def test_job_18__a_verifier_that_sealed_but_did_not_tell_keeps_its_bond() -> None:
    world = trained(FALSE).seal(ANNA, FALSE).challenge(BERT).loses(SOLVER, BERT)
    assert world.job.phase is Phase.OPEN
    assert world.money(ANNA) == FUNDS
    assert world.money(BERT) == FUNDS + PRICES.solver_bond // 2


def test_job_18__an_attester_that_falls_does_not_hold_the_others_up() -> None:
    world = trained().seal(ANNA).seal(BERT).draw().reveal(ANNA)
    world.challenge(WATCHER, FALSE).reveal(BERT).set_up()
    world.loses(ANNA, WATCHER, Verdicts.LATE).loses(WATCHER, BERT)
    assert (world.job.phase, world.job.awaiting) == (Phase.VERIFYING, Awaiting.WINDOW)
    assert world.money(ANNA) == FUNDS - PRICES.verifier_bond
    world.settle()
    assert world.money(BERT) == FUNDS + 40 + PRICES.challenger_bond // 2
    assert world.money(SOLVER) == FUNDS + 100
    assert world.money(SUBMITTER) == FUNDS - 140


def test_job_18__who_fell_plays_no_more() -> None:
    world = judged().challenge(WATCHER, FALSE)
    other = world.game(WATCHER, BERT).id
    world.loses(WATCHER, SOLVER)
    assert world.job.contest is None
    refusal("JOB-5", lambda: world.rule_by(other), world)
    world.challenge(SECOND, FALSE)
    refusal("JOB-17", lambda: world.rule_by(other), world)


def test_job_18__when_nobody_can_tell_nobody_pays() -> None:
    world = judged().challenge(WATCHER, FALSE)
    refusal("JOB-18", lambda: world.rule(Verdicts.CANNOT_TELL, Loser.DEFENDER), world)
    refusal("JOB-18", lambda: world.rule(Verdicts.WRONG, Loser.NOBODY), world)
    for _ in range(3):
        world.rule(Verdicts.CANNOT_TELL, Loser.NOBODY)
    assert world.money(WATCHER) == FUNDS
    assert world.ledger.at_risk(WATCHER) == 0
    world.settle()
    assert world.money(SOLVER) == FUNDS + 100


def test_job_18__who_could_not_be_told_by_a_friend_still_answers_the_others() -> None:
    world = judged().challenge(WATCHER, FALSE)
    world.rule(Verdicts.CANNOT_TELL, Loser.NOBODY, WATCHER, ANNA)
    assert world.contest.doubts(WATCHER)
    world.loses(WATCHER, SOLVER, Verdicts.LATE)
    assert world.job.contest is None
    assert world.money(WATCHER) == FUNDS - PRICES.challenger_bond


def test_job_18__two_challengers_that_nobody_can_tell_both_leave() -> None:
    world = judged().challenge(WATCHER, FALSE).challenge(SUBMITTER, FALSE[::-1], 1)
    world.challenge(SECOND, FALSE[::-1], 3)
    assert len(world.job.disputes) == 4
    world.rule(Verdicts.CANNOT_TELL, Loser.NOBODY, SUBMITTER, SECOND)
    assert [world.ledger.at_risk(name) for name in (SUBMITTER, SECOND)] == [0, 0]
    world.loses(WATCHER, BERT)
    assert world.settle().job.phase is Phase.SETTLED
