"""A lie in any element of any operator's result is found, down to the primitive step.

For each operator: small cases whose every element and every partial sum is lied about, and
random larger ones; the honest party on either side. The liars claim a flipped bit, a NaN, or
lie inside a chain from some partial sum on; deeper liars publish other partial sums than they
computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.protocol.dispute.elements import FoldLevel
from identic.protocol.dispute.moves import Entries, Move, Side
from identic.protocol.dispute.state import Dispute
from identic.protocol.dtypes import DType
from identic.protocol.ids import Unsigned
from identic.protocol.ops import TABLE
from identic.protocol.ops.folds import Fold, Nested
from identic.protocol.ops.primitives import PRIMITIVES
from identic.protocol.tensors import TensorType
from tests.helpers.calls import BUILDERS, Case, Maker, calls, case
from tests.helpers.duel import Ended, duel
from tests.helpers.effort import examples
from tests.helpers.execution import Lie, MemoryExecution, full_path
from tests.helpers.game import Strategy, honest
from tests.helpers.one_operator import Job, job_of

SMALL = 400
"""Most arithmetic steps of a case in which everything is lied about."""

NANS = (0x7FC00000, 0xFFC00001, 0x7F800001)


def paths(fold: Fold) -> Iterator[tuple[int, ...]]:
    """Every primitive step of a fold."""
    for index in range(fold.length):
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            for inner in paths(entry.fold):
                yield (index, *inner)
        else:
            yield (index,)


def small_case(name: str) -> Case:
    """The first case of an operator with a few elements and a few steps."""
    for seed in range(2000):
        found = BUILDERS[name](Maker(seed, finite=True))
        call = found.call
        small = 1 <= call.output.elements <= 6 and call.op.cost(call).flops <= SMALL
        if small and all(kind.elements for kind in call.inputs):
            return found
    raise AssertionError(f"no small case of {name}")


def words_at(job: Job, element: int, path: tuple[int, ...]) -> int:
    """The honest word of an entry."""
    return job.good.entries(0, job.value, element, path[:-1])[path[-1]]


def tell(job: Job, liar: MemoryExecution, side: Side, strategy: Strategy | None = None) -> Ended:
    """Play a liar on ``side`` against the honest run."""
    return duel(job).liar(side, liar, strategy).play()


def found_at(ended: Ended, job: Job, side: Side, lie: Lie) -> None:
    """Check that the ruling names exactly the lie of ``side``."""
    ruling = ended.wrong(side, "REF-12", 0, job.value).ruling
    call = job.plan.calls[0].call
    path = full_path(call.op.fold(call, lie.element), lie.path)
    assert ruling.element == lie.element
    assert tuple(ruling.path) == path
    assert int.from_bytes(ruling.computed, "big") == words_at(job, lie.element, path)


def lies_about(job: Job) -> Iterator[Lie]:
    """A lie at every primitive step of every element of a small result."""
    call = job.plan.calls[0].call
    top = (1 << 8 * call.output.dtype.size) - 1
    for element in range(call.output.elements):
        for path in paths(call.op.fold(call, element)):
            yield Lie(0, job.value, element, path, words_at(job, element, path) ^ 1)
        last = words_at(job, element, full_path(call.op.fold(call, element), ()))
        yield Lie(0, job.value, element, (), last ^ top)
        if call.output.dtype is DType.FLOAT32:
            for word in NANS:
                yield Lie(0, job.value, element, (), word)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_ref_12__every_lie_about_a_small_result_is_found(name: str) -> None:
    job = job_of(small_case(name))
    found = 0
    for number, lie in enumerate(lies_about(job)):
        liar = job.lying(lie)
        if liar.run_leaves() == job.good.run_leaves():
            # A wrong partial result that the rest of the fold makes good again is no lie.
            continue
        side = Side.DEFENDER if number % 2 else Side.CHALLENGER
        found_at(tell(job, liar, side), job, side, lie)
        found += 1
    assert found >= job.plan.calls[0].call.output.elements


@pytest.mark.parametrize("name", sorted(TABLE))
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data(), side=st.sampled_from(Side))
def test_ref_12__a_lie_about_any_result_is_found(
    name: str, data: st.DataObject, side: Side
) -> None:
    made = data.draw(calls(name).filter(lambda c: 0 < c.call.output.elements <= 300))
    job = job_of(made)
    call = job.plan.calls[0].call
    element = data.draw(st.integers(0, call.output.elements - 1))
    path: tuple[int, ...] = ()
    fold = call.op.fold(call, element)
    while data.draw(st.booleans()):
        index = data.draw(st.integers(0, fold.length - 1))
        path, entry = (*path, index), fold.entry(index)
        if not isinstance(entry, Nested):
            break
        fold = entry.fold
    path = full_path(call.op.fold(call, element), path)
    right = words_at(job, element, path)
    bits = 8 * call.output.dtype.size
    word = data.draw(st.integers(0, (1 << bits) - 1).filter(lambda w: w != right))
    lie = Lie(0, job.value, element, path, word)
    liar = job.lying(lie)
    if liar.run_leaves() != job.good.run_leaves():
        found_at(tell(job, liar, side), job, side, lie)


class Deeper:
    """A liar that has a wrong result, and publishes any partial sums that end in it."""

    def __init__(self, good: MemoryExecution, bad: MemoryExecution, data: st.DataObject) -> None:
        self.good, self.bad, self.data = good, bad, data

    def __call__(self, dispute: Dispute, side: Side) -> Move | None:
        """Honest words up to some entry, other ones from there."""
        level = dispute.level
        if not isinstance(level, FoldLevel):
            return honest(self.bad)(dispute, side)
        at = level.at
        words = list(self.good.entries(at.step, at.value, at.element, at.path))
        first = self.data.draw(st.integers(0, len(words) - 1))
        other = st.integers(0, 2**64 - 1)
        words[first:] = [self.data.draw(other) for _ in words[first:]]
        return Entries(tuple(Unsigned(w) for w in (*words[:-1], level.claims.of(side))))


@pytest.mark.parametrize("name", ["matmul", "sum_last", "sum_first", "add_rows", "argmax", "amax"])
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data(), side=st.sampled_from(Side))
def test_ref_12__lies_about_partial_results_are_found(
    name: str, data: st.DataObject, side: Side
) -> None:
    job = job_of(small_case(name))
    call = job.plan.calls[0].call
    element = data.draw(st.integers(0, call.output.elements - 1))
    right = words_at(job, element, full_path(call.op.fold(call, element), ()))
    liar = job.lying(Lie(0, job.value, element, (), right ^ 1))
    ended = tell(job, liar, side, Deeper(job.good, liar, data))
    assert ended.wrong(side, "REF-12", 0, job.value).ruling.element == element


def long_cases() -> dict[str, Case]:
    """Cases whose folds nest several times."""
    make = Maker(5, finite=True)
    f32 = DType.FLOAT32
    long = {
        "matmul": [TensorType.of(f32, (1, 4500)), TensorType.of(f32, (4500, 1))],
        "sum_last": [TensorType.of(f32, (4500,))],
        "sum_first": [TensorType.of(f32, (1500, 1))],
        "amax": [TensorType.of(f32, (2500,))],
        "argmax": [TensorType.of(f32, (2500,))],
    }
    return {name: case(name, kinds, [make.words(k) for k in kinds]) for name, kinds in long.items()}


@pytest.mark.parametrize("name", sorted(long_cases()))
def test_ref_12__a_lie_deep_in_a_long_fold_is_found(name: str) -> None:
    job = job_of(long_cases()[name])
    call = job.plan.calls[0].call
    every = list(paths(call.op.fold(call, 0)))
    found = 0
    for number in (0, 1, len(every) // 3, len(every) // 2, len(every) - 2, len(every) - 1):
        path = every[number]
        lie = Lie(0, job.value, 0, path, words_at(job, 0, path) ^ 0x00400000)
        liar = job.lying(lie)
        if liar.run_leaves() != job.good.run_leaves():
            side = Side.DEFENDER if number % 2 else Side.CHALLENGER
            ended = tell(job, liar, side)
            found_at(ended, job, side, lie)
            assert ended.ruling.read_bytes < 13_000
            found += 1
    assert found >= 1


def test_the_operators_ruled_on_are_those_of_the_table() -> None:
    ruled = set()
    for name in TABLE:
        job = job_of(small_case(name))
        lie = next(lies_about(job))
        last = Lie(0, lie.value, 0, (), job.good.values[0][job.value][0] ^ 1)
        ruling = tell(job, job.lying(last), Side.CHALLENGER).ruling
        assert ruling.value is not None
        planned = job.plan.call(ruling.value)
        assert planned is not None
        assert ruling.rule == "REF-12"
        ruled.add(planned.call.op.name)
    assert ruled == set(TABLE) == set(BUILDERS)


def test_the_folds_of_the_table_use_every_primitive() -> None:
    used: set[str] = set()
    seeds = iter(range(400))
    while used != set(PRIMITIVES):
        seed = next(seeds)
        for name in TABLE:
            call = BUILDERS[name](Maker(seed)).call
            if 1 <= call.output.elements <= 100 and call.op.cost(call).flops <= SMALL:
                fold = call.op.fold(call, 0)
                used |= {step_at(fold, path) for path in paths(fold)}
        assert used <= set(PRIMITIVES)


def step_at(fold: Fold, path: tuple[int, ...]) -> str:
    """Name of the primitive step at a path."""
    entry = fold.entry(path[0])
    return step_at(entry.fold, path[1:]) if isinstance(entry, Nested) else entry.primitive
