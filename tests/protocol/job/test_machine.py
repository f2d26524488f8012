"""The job machine, rule by rule."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from identic.protocol.errors import Code
from identic.protocol.hashing import fold
from identic.protocol.ids import Count, Digest, JobId, StepIndex, Unsigned
from identic.protocol.job.draws import draw_beacon, draw_verifiers
from identic.protocol.job.entries import (
    BeaconDrawn,
    Settled,
    TimeCalled,
    VerifiersAssigned,
)
from identic.protocol.job.machine import TRANSITIONS, transition_table
from identic.protocol.job.messages import (
    Abandon,
    AcceptJob,
    CallTime,
    CancelJob,
    CommitVerdict,
    Finish,
    Stored,
    verdict_digest,
)
from identic.protocol.job.run import Frontier
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
    party,
    refusal,
    terms_with,
    trained,
)

SPEC = Path(__file__).parents[3] / "docs" / "spec" / "jobs.md"


OTHER = JobId(digest("other"))


# ---- the table ------------------------------------------------------------------------------


def test_job_5__the_specification_prints_the_table() -> None:
    assert transition_table() in SPEC.read_text(encoding="utf-8")


def test_job_5__no_event_is_possible_after_the_end() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0].over]


def test_job_5__what_the_job_does_not_await_is_refused() -> None:
    world = trained()
    refusal("JOB-5", lambda: world.reveal(ANNA), world)
    refusal("JOB-5", world.draw, world)
    world = World().accept()
    refusal("JOB-5", lambda: world.seal(ANNA), world)


# ---- the usual course -----------------------------------------------------------------------


def test_job_21__an_honest_run_is_settled_and_everybody_is_paid() -> None:
    world = judged()
    assert world.job.awaiting is Awaiting.WINDOW
    world.settle()
    assert world.job.phase is Phase.SETTLED
    assert world.job.receipt == digest("receipt")
    gains = {name: world.money(name) - FUNDS for name in (SOLVER, ANNA, BERT, SUBMITTER)}
    assert gains == {SOLVER: 100, ANNA: 40, BERT: 40, SUBMITTER: -180}
    assert all(world.ledger.at_risk(name) == 0 for name in gains)


def test_job_21__settlement_waits_for_the_window() -> None:
    world = judged()
    refusal("JOB-20", lambda: world.enter(Settled(JOB, Count(1), digest("r"))), world)
    assert world.due() is None
    world.wait(CLOCKS.window_ms)
    assert world.due() is Settled
    refusal("JOB-21", lambda: world.enter(TimeCalled(JOB)), world)


def test_job_21__without_an_attester_a_run_expires_and_nobody_is_slashed() -> None:
    world = trained().expire_clock()
    assert world.job.awaiting is Awaiting.WINDOW
    world.wait(CLOCKS.window_ms)
    refusal("JOB-21", lambda: world.enter(Settled(JOB, Count(1), digest("r"))), world)
    assert world.due() is TimeCalled
    world.expire_clock()
    assert world.job.phase is Phase.EXPIRED
    assert [world.money(name) for name in (SUBMITTER, SOLVER, ANNA, BERT)] == [FUNDS] * 4


def test_a_posted_job_can_be_taken_back_until_it_is_taken() -> None:
    world = World()
    refusal("JOB-6", lambda: world.say(ANNA, CancelJob(JOB)), world)
    world.say(SUBMITTER, CancelJob(JOB))
    assert world.job.phase is Phase.EXPIRED
    assert world.ledger.balance(SUBMITTER) == FUNDS
    world = World().accept()
    refusal("JOB-5", lambda: world.say(SUBMITTER, CancelJob(JOB)), world)


# ---- training -------------------------------------------------------------------------------


def test_job_3__a_head_is_the_root_over_all_marks() -> None:
    world = World().accept()
    honest = world.commitment(HONEST, 3)
    for head in (head_of(HONEST, 2), head_of(FALSE, 3), replace(honest.head, job=OTHER)):
        wrong = replace(honest, head=head)
        refusal("JOB-3", partial(world.say, SOLVER, wrong), world)
    world.say(SOLVER, honest)
    assert world.job.head == head_of(HONEST, 3)


def test_job_3__a_growing_tree_has_the_root_over_its_leaves() -> None:
    frontier = Frontier()
    leaves: list[Digest] = []
    for i in range(131):
        assert (frontier.root, frontier.size) == (fold(leaves), i)
        leaves.append(digest(str(i)))
        frontier = frontier.append(leaves[-1])


def test_job_6__the_solver_alone_speaks_for_its_run() -> None:
    world = World().accept().commit(upto=3)
    statements = [
        world.commitment(),
        Stored(JOB, Count(1), Count(2), digest("blob")),
        Finish(JOB, Count(1), world.job.head, digest("m"), digest("s")),
        Abandon(JOB, Count(1)),
    ]
    for said in statements:
        assert refusal("JOB-6", partial(world.say, ANNA, said), world).code is Code.FORBIDDEN


def test_job_6__a_verdict_comes_from_a_seat() -> None:
    world = trained()
    refusal("JOB-6", lambda: world.seal(WATCHER), world)
    world.seal(ANNA).expire_clock()
    world.draw()
    refusal("JOB-6", lambda: world.reveal(BERT), world)


def test_job_7__another_attempt_is_refused() -> None:
    world = World()
    refusal("JOB-7", lambda: world.say(SOLVER, AcceptJob(JOB, Count(2))), world)
    world.accept()
    refusal(
        "JOB-7", lambda: world.say(SOLVER, replace(world.commitment(), attempt=Count(2))), world
    )


def test_job_8__neither_the_submitter_nor_who_failed_solves_the_job() -> None:
    world = World()
    refusal("JOB-8", lambda: world.accept(SUBMITTER), world)
    world.accept().expire_clock()
    assert (world.job.phase, world.job.attempt) == (Phase.OPEN, 2)
    refusal("JOB-8", lambda: world.accept(SOLVER), world)
    world.accept(SECOND)


def test_job_9__commitments_follow_each_other() -> None:
    world = World().accept().commit(upto=3)
    good = world.commitment()
    refusal("JOB-9", lambda: world.say(SOLVER, replace(good, first_mark=Count(2))), world)
    refusal("JOB-9", lambda: world.say(SOLVER, replace(good, first_mark=Count(4))), world)
    refusal("JOB-9", lambda: world.say(SOLVER, replace(good, marks=())), world)
    refusal("JOB-9", lambda: world.say(SOLVER, replace(good, marks=good.marks * 2)), world)
    shifted = replace(good.marks[0], step=StepIndex(5))
    refusal("JOB-9", lambda: world.say(SOLVER, replace(good, marks=(shifted,))), world)
    large = replace(good.marks[0], loss=Unsigned(1 << 32))
    refusal("JOB-9", lambda: world.say(SOLVER, replace(good, marks=(large,))), world)
    world.say(SOLVER, good)
    assert [record.state_root for record in world.job.marks] == list(HONEST)


def test_job_11__a_checkpoint_is_stored_once_after_its_mark() -> None:
    world = World().accept()
    stored = Stored(JOB, Count(1), Count(2), digest("blob"))
    refusal("JOB-11", lambda: world.say(SOLVER, stored), world)
    world.commit()
    refusal("JOB-11", lambda: world.say(SOLVER, replace(stored, mark=Count(1))), world)
    refusal("JOB-11", lambda: world.say(SOLVER, replace(stored, mark=Count(4))), world)
    world.say(SOLVER, stored)
    refusal("JOB-11", lambda: world.say(SOLVER, stored), world)


def test_job_12__a_run_is_finished_when_it_is_complete_and_stored() -> None:
    world = World().accept().commit(upto=4)
    finish = Finish(JOB, Count(1), world.job.head, digest("m"), digest("s"))
    refusal("JOB-12", lambda: world.say(SOLVER, finish), world)
    world.commit()
    finish = replace(finish, head=world.job.head)
    refusal("JOB-12", lambda: world.say(SOLVER, finish), world)
    world.say(SOLVER, Stored(JOB, Count(1), Count(2), digest("checkpoint")))
    refusal("JOB-3", lambda: world.say(SOLVER, replace(finish, head=head_of(FALSE))), world)
    world.say(SOLVER, finish)
    assert world.job.phase is Phase.VERIFYING


def test_job_11__a_run_of_most_marks_is_judged_at_once() -> None:
    long = terms_with(steps=Count((1 << 20) - 1), cadence=Count(1), checkpoint=Count(1))
    world = World(long)
    name = world.job.id
    world.say(SOLVER, AcceptJob(name, Count(1)))
    stored = Stored(name, Count(1), Count(1 << 19), digest("blob"))
    refusal("JOB-11", lambda: world.say(SOLVER, stored), world)
    finish = Finish(name, Count(1), world.job.head, digest("m"), digest("s"))
    refusal("JOB-12", lambda: world.say(SOLVER, finish), world)


def test_job_19__after_eight_failed_attempts_a_job_expires() -> None:
    world = World()
    for number in range(8):
        assert world.job.attempt == number + 1
        name = (SOLVER, SECOND, WATCHER)[number % 3]
        world.job = replace(world.job, barred=())
        world.accept(name).expire_clock()
    assert world.job.phase is Phase.EXPIRED
    assert world.ledger.balance(SUBMITTER) == FUNDS + 8 * (PRICES.solver_bond // 8)


def test_job_20__anyone_calls_time_but_never_early() -> None:
    world = World().accept()
    assert world.job.deadline == world.now + CLOCKS.move_ms + CLOCKS.rerun_ms
    world.wait(CLOCKS.move_ms + CLOCKS.rerun_ms - 1)
    refusal("JOB-20", lambda: world.say(WATCHER, CallTime(JOB)), world)
    assert world.due() is None
    world.wait(1)
    assert world.due() is TimeCalled
    world.say(WATCHER, CallTime(JOB))
    assert world.job.phase is Phase.OPEN


def test_job_20__what_comes_late_but_before_time_is_called_counts() -> None:
    world = World().accept().wait(1_000_000).commit(upto=2)
    refusal("JOB-20", lambda: world.enter(TimeCalled(JOB)), world)


def test_job_20__verifiers_have_twice_the_time_of_the_training() -> None:
    world = World().accept().wait(3_000).commit().finish()
    assert world.job.deadline == world.now + CLOCKS.rerun_ms + 6_000


def test_a_solver_that_gives_up_is_late_at_once() -> None:
    world = World().accept()
    world.say(SOLVER, Abandon(JOB, Count(1)))
    assert world.job.phase is Phase.OPEN
    assert world.money(SOLVER) == FUNDS - PRICES.solver_bond // 8
    assert world.money(ANNA) == FUNDS
    assert world.ledger.at_risk(ANNA) == 0


# ---- verdicts -------------------------------------------------------------------------------


def test_job_13__as_many_verifiers_as_the_terms_say_sit_down_once() -> None:
    world = World()
    world.say(SOLVER, AcceptJob(JOB, Count(1)))
    assert world.due(can_draw=False) is None
    assert world.due(can_draw=True) is VerifiersAssigned
    for parties in (
        (ANNA,),
        (ANNA, ANNA),
        (ANNA, SOLVER),
        (ANNA, SUBMITTER),
        (ANNA, BERT, WATCHER),
    ):
        entry = VerifiersAssigned(JOB, Count(1), digest("log"), parties)
        refusal("JOB-13", partial(world.enter, entry), world)
    entry = VerifiersAssigned(JOB, Count(1), digest("log"), (ANNA, BERT))
    world.enter(entry)
    refusal("JOB-13", lambda: world.enter(entry), world)


def test_job_13__the_draw_follows_from_the_log_and_favours_nobody() -> None:
    pool = [party(f"p{i}") for i in range(10)]
    drawn = [draw_verifiers(digest(f"log {i}"), JOB, 1, pool, 3) for i in range(600)]
    assert drawn[0] == draw_verifiers(digest("log 0"), JOB, 1, reversed(pool), 3)
    counts = [sum(name in three for three in drawn) for name in pool]
    assert all(120 <= count <= 240 for count in counts)
    assert len(draw_verifiers(digest("log"), JOB, 1, pool[:2], 3)) == 2


def test_job_14__a_verdict_is_sealed_once_and_told_as_sealed() -> None:
    world = trained().seal(ANNA)
    refusal("JOB-14", lambda: world.seal(ANNA), world)
    world.seal(BERT).draw()
    said = world.revelation(ANNA)
    refusal("JOB-14", lambda: world.say(ANNA, replace(said, salt=digest("other"))), world)
    refusal("JOB-14", lambda: world.say(BERT, said), world)
    world.say(ANNA, said)
    refusal("JOB-14", lambda: world.say(ANNA, said), world)


def test_job_14__a_verdict_agrees_exactly_when_its_log_is_the_solvers() -> None:
    world = trained(FALSE)
    lie = replace(world.verdict(ANNA, HONEST), agrees=True)
    world.say(ANNA, CommitVerdict(JOB, Count(1), verdict_digest(lie)))
    world.seal(BERT, FALSE).draw()
    said = replace(world.revelation(ANNA, HONEST), agrees=True)
    refusal("JOB-14", lambda: world.say(ANNA, said), world)


def test_job_15__the_beacon_follows_from_the_log() -> None:
    world = trained().seal(ANNA)
    assert world.due() is None
    world.seal(BERT)
    assert world.due() is BeaconDrawn
    seed = digest("log")
    step = draw_beacon(seed, JOB, 1, TERMS.steps)
    other = StepIndex((step + 1) % TERMS.steps)
    refusal("JOB-15", lambda: world.enter(BeaconDrawn(JOB, Count(1), seed, other)), world)
    world.enter(BeaconDrawn(JOB, Count(1), seed, step))
    assert world.job.awaiting is Awaiting.REVEALS


def test_a_verifier_that_does_not_tell_loses_its_fee_and_nothing_else() -> None:
    world = trained().seal(ANNA).seal(BERT).draw().reveal(ANNA).expire_clock()
    assert world.job.awaiting is Awaiting.WINDOW
    world.settle()
    assert world.money(BERT) == FUNDS
    assert world.money(ANNA) == FUNDS + 40
    assert world.money(SUBMITTER) == FUNDS - 140


def test_a_verdict_that_disagrees_without_a_challenge_changes_nothing() -> None:
    world = trained().seal(ANNA).seal(BERT, FALSE).draw().reveal(ANNA).reveal(BERT, FALSE).settle()
    assert world.money(BERT) == FUNDS
    assert world.money(SOLVER) == FUNDS + 100
