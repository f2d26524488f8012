"""Stored states that are asked for, and verifiers that cannot tell."""

from collections.abc import Callable

import pytest

from identic.protocol.dispute.clocks import Pause
from identic.protocol.ids import Count, Millis, PartyId
from identic.protocol.job.asks import MAX_ASKS, MAX_ASKS_OF_PARTY
from identic.protocol.job.entries import Settled, TimeCalled, VerifiersAssigned
from identic.protocol.job.messages import Ask, CannotTell, Served
from identic.protocol.job.pauses import after_pause
from identic.protocol.job.state import Awaiting, Phase
from tests.protocol.job.world import (
    ANNA,
    BERT,
    CLOCKS,
    FALSE,
    FUNDS,
    JOB,
    PRICES,
    SECOND,
    SOLVER,
    SUBMITTER,
    WATCHER,
    World,
    digest,
    judged,
    party,
    refusal,
    trained,
)

SILENCE = int(CLOCKS.move_ms + CLOCKS.rerun_ms)


def ask(world: World, name: PartyId = WATCHER, mark: int = 2) -> World:
    """A party asks for a state."""
    world.say(name, Ask(JOB, world.job.attempt, Count(mark)))
    return world


def serve(world: World, mark: int = 2) -> World:
    """The solver stores it again."""
    world.say(world.solver, Served(JOB, world.job.attempt, Count(mark)))
    return world


def refused(rule: str, world: World, name: PartyId, mark: int = 2) -> None:
    """Check that asking is refused by a rule."""
    refusal(rule, lambda: ask(world, name, mark), world)


# ---- asking ---------------------------------------------------------------------------------


def test_job_30__what_was_stored_can_be_asked_for_by_anybody_but_the_solver() -> None:
    world = judged()
    for mark, name in ((2, WATCHER), (4, ANNA), (4, SUBMITTER)):
        serve(ask(world, name, mark), mark)
    refused("JOB-30", world, SOLVER)
    for mark in (0, 1, 3, 5):
        refused("JOB-30", world, WATCHER, mark)


def test_job_30__a_state_that_is_not_stored_yet_cannot_be_asked_for() -> None:
    refused("JOB-30", World().accept().commit(upto=4), WATCHER)


def test_job_30__one_state_is_asked_for_at_a_time_and_none_in_a_contest() -> None:
    world = ask(judged())
    refused("JOB-30", world, ANNA, 4)
    serve(world).challenge(WATCHER, FALSE)
    refused("JOB-5", world, ANNA, 4)


def test_job_32__asking_has_an_end_for_each_party_and_for_all() -> None:
    world = judged()
    for _ in range(MAX_ASKS_OF_PARTY):
        serve(ask(world))
    refused("JOB-32", world, WATCHER)
    for number in range(MAX_ASKS - MAX_ASKS_OF_PARTY):
        serve(ask(world, party(f"friend {number}")))
    refused("JOB-32", world, ANNA)


def test_job_32__the_next_attempt_begins_anew() -> None:
    world = ask(serve(ask(trained()))).expire_clock()
    assert (world.job.attempt, world.job.asked) == (2, ())
    ask(world.accept(SECOND).commit(upto=4).store())
    assert world.job.asked == (WATCHER,)


# ---- serving --------------------------------------------------------------------------------


def test_job_31__only_what_was_asked_for_is_served_and_by_the_solver() -> None:
    world = judged()
    refusal("JOB-31", lambda: serve(world), world)
    ask(world)
    refusal("JOB-31", lambda: serve(world, 4), world)
    refusal("JOB-6", lambda: world.say(ANNA, Served(JOB, Count(1), Count(2))), world)
    serve(world)
    refusal("JOB-31", lambda: serve(world), world)


@pytest.mark.parametrize("scene", [trained, judged, lambda: trained().seal(ANNA).seal(BERT).draw()])
def test_job_31__a_solver_that_withholds_a_state_is_late(scene: Callable[[], World]) -> None:
    world = ask(scene().wait(1_000))
    asked = world.now
    assert world.due() is None
    refusal("JOB-20", lambda: world.enter(TimeCalled(JOB)), world)
    world.expire_clock()
    assert world.now == asked + SILENCE
    assert (world.job.phase, world.job.attempt, world.job.ask) == (Phase.OPEN, 2, None)
    assert world.money(SOLVER) == FUNDS - PRICES.solver_bond // 8
    assert world.money(ANNA) == world.money(BERT) == FUNDS


def test_job_31__nothing_is_settled_while_a_state_is_asked_for() -> None:
    world = ask(judged().wait(int(CLOCKS.window_ms) - 1)).wait(SILENCE - 1)
    assert world.due() is None
    world.wait(1)
    assert world.due() is TimeCalled
    refusal("JOB-31", lambda: world.enter(Settled(JOB, Count(1), digest("receipt"))), world)


@pytest.mark.parametrize("taken", [0, 1, SILENCE, SILENCE + 5_000])
def test_job_31__deadlines_move_by_the_time_that_was_waited(taken: int) -> None:
    world = judged().wait(1_000)
    before = world.job.deadline
    assert before is not None
    serve(ask(world).wait(taken))
    assert world.job.deadline == before + min(taken, SILENCE)
    world.settle()
    assert world.money(SOLVER) == FUNDS + PRICES.solver_reward


def test_job_31__the_solvers_own_clock_for_marks_runs_on() -> None:
    world = World().accept().commit(upto=4).store()
    due = world.job.deadline
    ask(world.wait(1_000))
    assert world.job.due_at == due
    serve(world.wait(500))
    assert world.job.due_at == due
    world.expire_clock()
    assert world.job.phase is Phase.OPEN


def test_job_31__a_contest_does_not_end_an_ask_but_time_for_it_waits() -> None:
    world = ask(judged()).challenge(WATCHER, FALSE).wait(10 * SILENCE)
    assert world.due() is None
    refusal("JOB-5", lambda: world.enter(TimeCalled(JOB)), world)
    serve(world)
    for voucher in (SOLVER, ANNA, BERT):
        if world.job.contest is not None:
            world.loses(WATCHER, voucher)
    world.settle()
    assert world.job.phase is Phase.SETTLED


def test_job_31__a_state_withheld_over_a_contest_is_called_for_after_it() -> None:
    world = ask(judged()).challenge(WATCHER, FALSE).wait(10 * SILENCE).loses(WATCHER, SOLVER)
    assert world.due() is TimeCalled
    world.expire_clock()
    assert world.money(SOLVER) == FUNDS - PRICES.solver_bond // 8 + PRICES.challenger_bond // 2


def test_job_27__job_31__a_pause_of_the_coordinator_is_nobodys_time() -> None:
    world = ask(judged()).wait(1_000)
    before = world.job
    assert before.ask is not None
    assert before.deadline is not None
    pause = Pause(Millis(world.now), Millis(world.now + 70_000))
    world.job = after_pause(before, pause)
    world.now += 70_000
    assert world.job.due_at == before.ask.deadline + 70_000
    serve(world.wait(500))
    # What the solver took is what it took while the coordinator was there.
    assert world.job.deadline == before.deadline + 70_000 + 1_500


# ---- verifiers that cannot tell -------------------------------------------------------------


def cannot_tell(world: World, name: PartyId) -> World:
    """A verifier gives its seat back."""
    world.say(name, CannotTell(JOB, world.job.attempt))
    return world


def drawn_anew(world: World, *names: PartyId) -> World:
    """Others take the seats."""
    world.enter(VerifiersAssigned(JOB, world.job.attempt, digest("log"), names))
    return world


def test_job_33__a_verifier_that_cannot_tell_has_its_bond_and_no_fee() -> None:
    world = cannot_tell(trained(), ANNA)
    assert [seat.party for seat in world.job.verifiers] == [BERT]
    assert (world.job.recused, world.ledger.at_risk(ANNA)) == ((ANNA,), 0)
    assert world.due(can_draw=True) is None
    world.seal(BERT).draw().reveal(BERT).settle()
    assert world.money(ANNA) == FUNDS
    assert world.money(BERT) == FUNDS + PRICES.verifier_reward
    # Its fee is the submitter's again.
    spent = PRICES.solver_reward + PRICES.verifier_reward
    assert world.money(SUBMITTER) == FUNDS - spent


def test_job_33__the_last_one_waited_for_brings_the_beacon() -> None:
    world = cannot_tell(trained().seal(BERT), ANNA)
    assert world.job.awaiting is Awaiting.BEACON


def test_job_33__when_all_give_their_seats_back_others_are_drawn_once() -> None:
    world = cannot_tell(cannot_tell(trained(), ANNA), BERT)
    assert world.due(can_draw=True) is VerifiersAssigned
    refusal("JOB-13", lambda: drawn_anew(world, ANNA, SECOND), world)
    drawn_anew(world.wait(2_000), SECOND, WATCHER)
    assert world.job.deadline == world.now + CLOCKS.rerun_ms + 2 * world.job.trained_ms
    cannot_tell(cannot_tell(world, SECOND), WATCHER)
    assert world.due(can_draw=True) is None
    refusal("JOB-13", lambda: drawn_anew(world, party("eve"), party("mallory")), world)
    world.expire_clock().expire_clock()
    assert world.job.phase is Phase.EXPIRED
    assert world.money(SOLVER) == world.money(SECOND) == world.money(SUBMITTER) == FUNDS


def test_job_33__who_has_fixed_a_verdict_or_has_no_seat_could_tell() -> None:
    world = trained().seal(ANNA)
    refusal("JOB-33", lambda: cannot_tell(world, ANNA), world)
    refusal("JOB-6", lambda: cannot_tell(world, WATCHER), world)
    world.seal(BERT).draw()
    refusal("JOB-5", lambda: cannot_tell(world, ANNA), world)
    other = cannot_tell(trained(), ANNA)
    refusal("JOB-6", lambda: cannot_tell(other, ANNA), other)
    refusal("JOB-6", lambda: other.seal(ANNA), other)


def test_job_33__a_seat_is_given_back_while_the_run_is_trained_or_disputed() -> None:
    world = cannot_tell(World().accept().commit(upto=3), ANNA)
    assert world.job.phase is Phase.TRAINING
    world.challenge(WATCHER, FALSE)
    cannot_tell(world, BERT)
    assert world.job.recused == (ANNA, BERT)


def test_job_31__whoever_waited_for_a_state_may_still_enter_its_claim() -> None:
    """A friend of the solver lets the time of entry run down while the state is withheld."""
    world = ask(judged(FALSE), WATCHER)
    world.challenge(SECOND, FALSE[::-1], 1).loses(SECOND, SOLVER)
    world.wait(CLOCKS.window_ms)
    refusal("JOB-17", lambda: world.challenge(WATCHER), world)
    refusal("JOB-20", lambda: world.enter(Settled(JOB, Count(1), digest("r"))), world)
    serve(world).challenge(WATCHER)
    for name in (SOLVER, ANNA, BERT):
        world.loses(name, WATCHER)
    assert world.job.attempt == 2


def test_job_31__a_state_served_in_a_contest_gives_time_to_enter_it() -> None:
    world = ask(judged(FALSE), WATCHER).challenge(SECOND, FALSE[::-1], 1)
    until = world.contest.entry_until
    world.wait(CLOCKS.window_ms)
    serve(world)
    assert world.contest.entry_until == world.job.entry_until == until + CLOCKS.window_ms
    world.challenge(WATCHER)
