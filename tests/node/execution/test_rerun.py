"""What is answered from stored states is what the run gave, down to each partial result."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from identic.node.execution.forced import ForcedError
from identic.node.execution.rerun import Rerun
from identic.protocol.dispute.player import Execution
from identic.protocol.ops.folds import Fold, Nested
from tests.helpers.execution import Lie, MemoryExecution
from tests.helpers.small_run import Run, small_run
from tests.node.execution.parts import Kept, forced_at, keep

RUN = small_run(shards=1, steps=4, cadence=2)
FLIP = 1 << 30


def lie_of(run: Run, forced: ForcedError) -> Lie:
    """The same wrong step for an execution in memory."""
    step, value, element = int(forced.step), int(forced.value), int(forced.element)
    path = tuple(int(entry) for entry in forced.path)
    honest = run.good.entries(step, value, element, path[:-1])[path[-1]]
    return Lie(step, value, element, path, honest ^ int(forced.flip))


def paths(fold: Fold) -> Iterator[tuple[int, ...]]:
    """Every fold inside a fold, itself included."""
    yield ()
    for index in range(fold.length):
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            for inner in paths(entry.fold):
                yield (index, *inner)


def questions(run: Run, step: int) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Everything that can be asked about a step, by name of the method."""
    plan, terms = run.plan, run.terms
    yield "run_leaves", ()
    yield "trace_leaves", (step,)
    yield "state_digests", (step,)
    yield "state_digests", (step + 1,)
    for mark in range(1, terms.marks):
        yield "interval_roots", (mark,)
        yield "run_path", (mark, 0, terms.marks)
    for index in range(len(plan.outputs)):
        yield "state_path", (step, index)
    for value in range(plan.values):
        kind = plan.type(value)
        yield "chunk_hashes", (step, value)
        yield "trace_path", (step, value, 0, plan.values)
        for chunk in range(kind.chunks):
            yield "chunk", (step, value, chunk)
            yield "chunk_path", (step, value, chunk)
        planned = plan.call(value)
        if planned is not None:
            for element in range(kind.elements):
                for path in paths(planned.call.op.fold(planned.call, element)):
                    yield "entries", (step, value, element, path)


def answer(execution: Execution, name: str, arguments: tuple[object, ...]) -> object:
    """Ask one question."""
    found = getattr(execution, name)(*arguments)
    return found if isinstance(found, bytes) else tuple(found)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The job of these tests."""
    return keep(tmp_path_factory.mktemp("rerun") / "blobs", RUN)


ERRORS = [
    None,
    forced_at(2, RUN.value("matmul"), 3, (0,), FLIP),
    forced_at(1, RUN.value("sum_first"), 0, (0,), FLIP),
    forced_at(1, RUN.value("add"), 1, (0,), FLIP),
]


@pytest.mark.parametrize("forced", ERRORS)
def test_exe_5__every_answer_is_that_of_the_run(kept: Kept, forced: ForcedError | None) -> None:
    want: MemoryExecution = RUN.good if forced is None else RUN.lying(lie_of(RUN, forced))
    rerun = kept.rerun(kept.execute(forced), forced)
    steps = (0, 3) if forced is None else (int(forced.step), 3)
    for name, arguments in itertools.chain(*(questions(RUN, step) for step in steps)):
        assert answer(rerun, name, arguments) == answer(want, name, arguments), (name, arguments)


def test_exe_5__answers_do_not_depend_on_what_was_asked_before(kept: Kept) -> None:
    forced = ERRORS[1]
    assert forced is not None
    want = RUN.lying(lie_of(RUN, forced))
    asked = list(itertools.chain.from_iterable(questions(RUN, step) for step in range(4)))
    rerun = kept.rerun(kept.execute(forced, every=2), forced)
    for name, arguments in random.Random(7).choices(asked, k=150):
        assert answer(rerun, name, arguments) == answer(want, name, arguments), (name, arguments)


def test_exe_5__a_run_from_its_start_alone_answers_alike(kept: Kept) -> None:
    own = kept.execute()
    few: Rerun = kept.rerun(type(own)(own.roots, own.stored[:1]))
    many = kept.rerun(own)
    for step in (3, 0, 2, 1):
        assert few.trace_root(step) == many.trace_root(step)
        assert few.state_digests(step + 1) == many.state_digests(step + 1)
