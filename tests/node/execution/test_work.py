"""What a dispute costs a party: how many steps are executed, and how much is hashed."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.kernels.executor import Observer
from identic.node.execution import rerun as reruns
from identic.node.execution import states
from identic.node.execution.rerun import Rerun
from identic.node.execution.shelf import Shelf
from identic.node.execution.states import Arrays
from identic.node.execution.training import Trainer
from identic.proofs.tensors import root_digest, tensor_digest
from tests.helpers.small_run import small_run
from tests.node.execution.parts import Kept, keep

RUN = small_run(shards=1, steps=12, cadence=4)
AMPLE = 1 << 30


class Counted(Trainer):
    """A trainer that counts what it executes."""

    executed: Counter[tuple[int, bool]]

    def step(
        self,
        state: Arrays,
        step: int,
        observer: Observer | None = None,
        *,
        give: bool = False,
    ) -> Arrays:
        """Count the step, and whether its values are looked at."""
        self.executed[step, observer is not None] += 1
        return super().step(state, step, observer, give=give)


class Watched:
    """A rerun and what it has done."""

    def __init__(self, kept: Kept, room_bytes: int, every: int = 1) -> None:
        plain = kept.trainer()
        self.trainer = Counted(plain.job, plain.executor)
        self.trainer.executed = Counter()
        run = kept.execute(every=every)
        stored = {int(s.mark): s.blob for s in run.stored}
        self.rerun = Rerun(self.trainer, kept.blobs, run.roots, stored, room_bytes)

    def ask(self, mark: int, step: int, value: int) -> None:
        """Everything that one dispute asks about, in the order of its levels."""
        rerun, element = self.rerun, 0
        rerun.run_leaves()
        rerun.interval_roots(mark)
        rerun.trace_leaves(step)
        rerun.state_digests(step + 1)
        rerun.chunk_hashes(step, value)
        rerun.chunk(step, value, 0)
        rerun.entries(step, value, element, ())
        planned = RUN.plan.call(value)
        assert planned is not None
        for operand in planned.inputs:
            rerun.trace_leaves(step)
            rerun.chunk(step, operand, 0)
            rerun.chunk_path(step, operand, 0)
        rerun.state_digests(step)
        rerun.state_path(step, 0)

    @property
    def steps(self) -> int:
        """Steps executed."""
        return self.trainer.executed.total()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The job of these tests."""
    return keep(tmp_path_factory.mktemp("work") / "blobs", RUN)


VALUE = RUN.value("matmul")


def test_exe_11__a_dispute_executes_its_interval_once_and_its_step_once_more(kept: Kept) -> None:
    watched = Watched(kept, AMPLE)
    watched.ask(2, 6, VALUE)
    interval = Counter({(step, False): 1 for step in range(4, 8)})
    assert watched.trainer.executed == interval + Counter({(6, True): 1})
    watched.ask(2, 6, VALUE)
    assert watched.steps == 5


def test_exe_11__execution_starts_from_the_nearest_stored_state(kept: Kept) -> None:
    # Only every second mark is stored: to get to step 9, it goes on from that after step 8.
    watched = Watched(kept, AMPLE, every=2)
    watched.rerun.trace_leaves(9)
    assert watched.trainer.executed == Counter({(8, False): 1, (9, True): 1})


def test_exe_11__disputes_in_turns_share_what_was_computed(kept: Kept) -> None:
    """Three teams claim different things; the party answers each as its turn comes."""
    watched, chance = Watched(kept, AMPLE), random.Random(3)
    for _ in range(12):
        mark = chance.randint(1, 3)
        watched.ask(mark, 4 * mark - 2, chance.choice([VALUE, RUN.value("add")]))
    assert watched.steps <= 12 + 3
    assert max(watched.trainer.executed.values()) == 1


def test_exe_11__without_memory_to_spare_each_level_starts_from_a_stored_state(kept: Kept) -> None:
    watched = Watched(kept, 0)
    watched.ask(2, 6, VALUE)
    observed = sum(n for (_, looked), n in watched.trainer.executed.items() if looked)
    # For the digests of the step, and for the bytes of the value with its operands.
    assert observed == 2
    # The interval, and the way to the step for its digests; for the bytes it is still there.
    assert watched.steps - observed <= 4 + 2


def test_exe_11__as_many_states_of_an_interval_are_kept_as_fit_evenly_spread(kept: Kept) -> None:
    size = sum(v.type.nbytes for v in RUN.program.state)
    watched = Watched(kept, 2 * 2 * size)
    watched.rerun.interval_roots(2)
    executed = watched.steps
    assert executed == 4
    watched.rerun.trace_leaves(7)
    # The states after steps 6 and 8 are there.
    assert watched.steps - executed == 2


def test_exe_11__only_what_is_asked_for_is_hashed(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, hashed = Watched(kept, AMPLE), Counter[str]()

    def value(*tensor: object, **more: object) -> object:
        hashed["value"] += 1
        return tensor_digest(*tensor, **more)  # type: ignore[arg-type]

    def variable(*tensor: object, **more: object) -> object:
        hashed["variable"] += 1
        return root_digest(*tensor, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(reruns, "tensor_digest", value)
    monkeypatch.setattr(states, "root_digest", variable)
    variables = len(RUN.program.state)
    watched.rerun.interval_roots(2)
    # The stored state that it starts from, and the four of the interval.
    assert hashed == Counter(variable=5 * variables)
    watched.rerun.trace_leaves(6)
    # Each value of the step, and the loss before it, which is no value.
    assert hashed == Counter(variable=5 * variables + 1, value=RUN.plan.values)
    watched.ask(2, 6, VALUE)
    assert hashed == Counter(variable=5 * variables + 1, value=RUN.plan.values)


def test_exe_11__answers_are_the_same_with_and_without_memory(kept: Kept) -> None:
    ample, none = Watched(kept, AMPLE).rerun, Watched(kept, 0, every=3).rerun
    for step, value in itertools.product((0, 5, 6, 11), (VALUE, RUN.value("sum_last"))):
        assert ample.trace_leaves(step) == none.trace_leaves(step)
        assert ample.state_digests(step) == none.state_digests(step)
        assert ample.state_digests(step + 1) == none.state_digests(step + 1)
        assert ample.chunk(step, value, 0) == none.chunk(step, value, 0)
        assert ample.entries(step, value, 0, ()) == none.entries(step, value, 0, ())
    for mark in (3, 1, 2):
        assert list(ample.interval_roots(mark)) == list(none.interval_roots(mark))


@given(
    room=st.integers(0, 50),
    puts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=40),
)
def test_a_shelf_keeps_within_its_room_what_was_used_last(
    room: int, puts: list[tuple[int, int]]
) -> None:
    shelf, order = Shelf[int, str](room), list[int]()
    for key, size in puts:
        assert shelf.put(key, f"{key}", size) == f"{key}"
        order = [k for k in order if k != key] + [key]
        kept = list(shelf)
        assert kept == order[-len(kept) :]
        assert shelf.used_bytes <= room or len(kept) == 1
        if kept[0] != key:
            assert shelf.get(kept[0]) == f"{kept[0]}"
            order = [k for k in order if k != kept[0]] + [kept[0]]
        order = [k for k in order if k in shelf]
