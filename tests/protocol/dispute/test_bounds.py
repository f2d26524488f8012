"""What a dispute takes is known before it is played, and played games take that and no more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from identic.protocol.dispute.bounds import (
    Course,
    Fault,
    ReadIndex,
    Worst,
    below_run,
    course,
    over_run,
    worst,
)
from identic.protocol.dispute.clocks import allowance_ms
from identic.protocol.dispute.moves import MAX_EVIDENCE_BYTES, NO_EVIDENCE, WIDTH, Move, Side
from identic.protocol.dispute.state import Dispute
from identic.protocol.encoding import encode
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count
from identic.protocol.ops import TABLE
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.program.plan import StepPlan
from tests.helpers.calls import BUILDERS, Maker, case
from tests.helpers.duel import Ended, duel
from tests.helpers.execution import Lie, MemoryExecution, StateLie
from tests.helpers.game import honest
from tests.helpers.one_operator import Job, job_of
from tests.helpers.small_run import Run, small_run
from tests.helpers.transformers import GPT2, LLAMA, Sizes, f32, large_call, transformer

RUN = small_run()
WIDTHS = (4, WIDTH)


def within(found: Course, most: Worst) -> bool:
    """Whether a dispute stays below the bounds, level by level."""
    for name in {exchange.level for exchange in found.rounds}:
        here = [exchange for exchange in found.rounds if exchange.level == name]
        bound = most.levels[name]
        if len(here) > bound.rounds or sum(e.nbytes for e in here) > bound.nbytes:
            return False
        if max(e.items for e in here) > bound.items:
            return False
    total = most.total
    return (
        len(found.rounds) <= total.rounds
        and found.nbytes <= total.nbytes
        and found.evidence <= total.evidence
    )


def reader(plan: StepPlan, good: MemoryExecution, step: int) -> ReadIndex:
    """Words of a step's values."""

    def read(value: int, element: int) -> int:
        kind = plan.type(value)
        size = kind.dtype.size
        return kind.dtype.word(good.values[step][value][element * size : (element + 1) * size])

    return read


def check(ended: Ended, fault: Fault, good: MemoryExecution, width: int) -> None:
    """Compare a played game with what was known before it."""
    setup, ruling = ended.game.dispute.setup, ended.ruling
    read = None if fault.step is None else reader(setup.plan, good, fault.step)
    found = course(setup.terms, setup.plan, fault, marks=setup.marks, width=width, read=read)
    played = [(line.level, line.compared, line.defender_bytes) for line in ruling.rounds]
    assert played == [(e.level, e.items, e.nbytes) for e in found.rounds]
    assert all(line.defender_bytes == line.challenger_bytes for line in ruling.rounds)
    nothing = len(encode(NO_EVIDENCE))
    assert ruling.read_bytes == (found.evidence or nothing)
    assert within(found, worst(setup.terms, setup.plan, width=width))


@pytest.mark.parametrize("width", WIDTHS)
def test_dsp_20__a_game_about_any_value_takes_what_was_computed(width: int) -> None:
    played = 0
    for value in range(width % 3, RUN.plan.values, 3):
        if not RUN.plan.type(value).elements:
            continue
        element = RUN.plan.type(value).elements - 1
        liar = RUN.lying(RUN.flipped(1, value, element))
        if liar.run_leaves() == RUN.good.run_leaves():
            continue
        side = Side.DEFENDER if value % 2 else Side.CHALLENGER
        ended = duel(RUN).liar(side, liar).at_width(width).play()
        check(ended, Fault(1, value, element=element), RUN.good, width)
        played += 1
    assert played > RUN.plan.values // 6


@pytest.mark.parametrize("width", WIDTHS)
def test_dsp_20__a_game_about_the_state_takes_what_was_computed(width: int) -> None:
    # A liar about the header has nothing to publish where blocks of leaves are asked for.
    for part in range(0 if width == WIDTH else 1, 1 + len(RUN.plan.outputs)):
        liar = RUN.lying(StateLie(3, part - 1, sha256(b"other")))
        ended = duel(RUN).liar(Side.DEFENDER, liar).at_width(width).play()
        check(ended, Fault(3, part=part), RUN.good, width)


@pytest.mark.parametrize("width", [2, *WIDTHS])
def test_dsp_20__a_game_about_the_start_takes_what_was_computed(width: int) -> None:
    liar = RUN.lying()
    liar.roots[0] = sha256(b"pretrained")
    ended = duel(RUN).liar(Side.DEFENDER, liar).at_width(width).play()
    check(ended, Fault(), RUN.good, width)


LONG_SUM = job_of(case("sum_last", [f32(40_000)], [[0] * 40_000]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("subject", "lie", "long"),
    [
        (RUN, RUN.flipped(3, RUN.value("matmul", 2)), False),
        (LONG_SUM, Lie(0, LONG_SUM.value, 0, (), 1), True),
    ],
    ids=["matmul", "long sum"],
)
def test_dsp_20__rounds_that_need_re_execution_have_its_allowance(
    subject: Run | Job, lie: Lie, long: bool, width: int
) -> None:
    liar = subject.lying(lie)
    plays = honest(liar)
    seen: dict[int, int] = {}

    def spy(dispute: Dispute, side: Side) -> Move | None:
        seen[int(dispute.turn)] = int(dispute.clock.allowance)
        return plays(dispute, side)

    ended = duel(subject).liar(Side.DEFENDER, liar, spy).at_width(width).play()
    setup = ended.game.dispute.setup
    fault = Fault(lie.step, lie.value, path=tuple(ended.ruling.path))
    found = course(setup.terms, setup.plan, fault, marks=setup.marks, width=width)
    asked = [*(e.again for e in found.rounds), *([None] if found.evidence else [])]
    assert list(seen.values()) == [allowance_ms(setup, again) for again in asked]
    assert (0 in asked) == long
    assert found.again == sum(again or 0 for again in asked)


def paths(fold: Fold) -> Iterator[tuple[int, ...]]:
    """Every way down to a primitive step."""
    for index in range(fold.length):
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            yield from ((index, *rest) for rest in paths(entry.fold))
        else:
            yield (index,)


def cases(name: str, count: int) -> Iterator[Job]:
    """Jobs about one operator whose results have elements."""
    seed = found = 0
    while found < count:
        seed += 1
        made = BUILDERS[name](Maker(seed))
        small = sum(t.elements for t in (*made.call.inputs, made.call.output)) < 700
        if made.call.output.elements and small:
            found += 1
            yield job_of(made)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_dsp_20__a_game_about_any_operator_takes_what_was_computed(name: str) -> None:
    draw = random.Random(name)
    for job in cases(name, 3):
        call = job.plan.calls[0].call
        element = draw.randrange(call.output.elements)
        path = draw.choice(list(paths(call.op.fold(call, element))))
        honest = job.good.entries(0, job.value, element, path[:-1])[path[-1]]
        lie = Lie(0, job.value, element, path, honest ^ 1)
        liar = job.lying(lie)
        if liar.run_leaves() == job.good.run_leaves():
            continue
        width = draw.choice((2, 4, WIDTH))
        ended = duel(job).liar(Side.CHALLENGER, liar).at_width(width).play()
        fault = Fault(0, job.value, element=element, path=path)
        if tuple(ended.ruling.path) == path:
            check(ended, fault, job.good, width)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_dsp_20__no_place_of_any_operator_takes_more_than_the_most(name: str) -> None:
    draw = random.Random(name)
    for job in cases(name, 6):
        call = job.plan.calls[0].call
        for width in (2, WIDTH):
            most = worst(job.terms, job.plan, width=width)
            elements = range(call.output.elements)
            for element in draw.sample(elements, min(len(elements), 40)):
                ways = list(paths(call.op.fold(call, element)))
                for path in draw.sample(ways, min(len(ways), 20)):
                    fault = Fault(0, job.value, element=element, path=path)
                    assert within(course(job.terms, job.plan, fault, width=width), most)
            assert most.total.evidence <= MAX_EVIDENCE_BYTES


MILLION = 1_000_000


def test_dsp_20__no_value_of_a_plan_of_any_length_takes_more_than_the_most() -> None:
    call = replace(RUN.plan.calls[-1], inputs=(0,) * len(RUN.plan.calls[-1].inputs))
    for count in (*range(1, 40), 63, 64, 65, 200):
        plan = replace(RUN.plan, calls=(call,) * count, outputs=(0,) * len(RUN.plan.outputs))
        for width in (2, 4):
            most = worst(RUN.terms, plan, width=width)
            for value in range(plan.values):
                fault = Fault(1, value)
                assert within(course(RUN.terms, plan, fault, width=width), most)


@pytest.mark.parametrize("sizes", [GPT2, LLAMA], ids=["gpt2", "llama"])
def test_dsp_20__a_million_steps_of_20_000_operators_take_at_most_12_rounds(sizes: Sizes) -> None:
    plan = transformer(sizes, [large_call(name) for name in sorted(TABLE)])
    assert len(plan.calls) >= 20_000
    below = below_run(plan)
    for cadence in (1, 2, 488, 489, 2048):
        terms = replace(RUN.terms, steps=Count(MILLION), cadence=Count(cadence))
        most = over_run(terms, below)
        assert most.total.rounds <= 12
        assert all(m.items <= WIDTH for name, m in most.levels.items() if name != "chunk")
        assert most.total.evidence <= MAX_EVIDENCE_BYTES
