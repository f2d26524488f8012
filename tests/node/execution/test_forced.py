"""Deliberate errors: where they may be, and that each is found in a dispute between two runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from identic.node.execution.forced import ForcedError
from identic.node.execution.rerun import Rerun
from identic.node.worker.frames import OwnRun
from identic.proofs import arbiter
from identic.proofs.runlog import run_root
from identic.proofs.signatures import SigningKey
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.player import next_move
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Ruling
from identic.protocol.errors import LocalError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Millis
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.terms import job_id
from identic.protocol.ops.folds import Fold, Nested
from tests.helpers.programs import mlp, mlp_data, mlp_state
from tests.helpers.small_run import Run, small_run
from tests.node.execution.parts import Kept, forced_at, keep

KEYS = {Side.DEFENDER: SigningKey(bytes([1]) * 32), Side.CHALLENGER: SigningKey(bytes([2]) * 32)}
SMALL = small_run(shards=2, steps=4, cadence=2)


def wide() -> Run:
    """A run whose sums are long enough for folds inside folds."""
    program = mlp(rows=6, width=300, hidden=3, classes=70, batch=2, steps=3)
    return Run(program, mlp_state(program), mlp_data(program), steps=3, cadence=3)


WIDE = wide()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Run], Kept]:
    """Jobs of these tests, by their run."""
    folder = tmp_path_factory.mktemp("forced")
    made = {id(run): keep(folder / str(i), run) for i, run in enumerate((SMALL, WIDE))}
    return lambda run: made[id(run)]


# ---- positions ------------------------------------------------------------------------------

MATMUL = SMALL.value("matmul")
LOADS = len(SMALL.plan.loads)
OUTSIDE = {
    "a step after the last": forced_at(4, MATMUL, 0, (0,), 1),
    "a load": forced_at(0, LOADS - 1, 0, (0,), 1),
    "a value after the last": forced_at(0, SMALL.plan.values, 0, (0,), 1),
    "an element after the last": forced_at(0, MATMUL, SMALL.plan.type(MATMUL).elements, (0,), 1),
    "no path": forced_at(0, MATMUL, 0, (), 1),
    "an entry after the last": forced_at(0, MATMUL, 0, (3,), 1),
    "a path beyond a primitive step": forced_at(0, MATMUL, 0, (0, 0), 1),
    "bits of a wider result": forced_at(0, MATMUL, 0, (0,), 1 << 32),
    "bits of a truth value's neighbour": forced_at(0, SMALL.value("gt"), 0, (0,), 1 << 8),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_exe_6__a_position_outside_the_job_is_refused(
    kept: Callable[[Run], Kept], name: str
) -> None:
    with pytest.raises(LocalError) as refusal:
        kept(SMALL).trainer(OUTSIDE[name])
    assert refusal.value.remedy


def test_exe_6__a_path_that_ends_at_a_fold_is_refused(kept: Callable[[Run], Kept]) -> None:
    with pytest.raises(LocalError):
        kept(WIDE).trainer(forced_at(0, WIDE.value("matmul"), 0, (0,), 1))


# ---- disputes -------------------------------------------------------------------------------


def steps_of(fold: Fold) -> Iterator[tuple[int, ...]]:
    """Every primitive step of a fold."""
    for index in range(fold.length):
        entry = fold.entry(index)
        if isinstance(entry, Nested):
            for inner in steps_of(entry.fold):
                yield (index, *inner)
        else:
            yield (index,)


def error_in(run: Run, kept: Kept, op: str, honest: OwnRun) -> tuple[ForcedError, OwnRun]:
    """A forced error in an operator's result that reaches the state, and the run with it."""
    choose = random.Random(op)
    values = [len(run.plan.loads) + i for i, p in enumerate(run.plan.calls) if p.call.op.name == op]
    for _ in range(40):
        value = choose.choice(values)
        planned = run.plan.call(value)
        assert planned is not None
        element = choose.randrange(planned.call.output.elements)
        path = choose.choice(list(steps_of(planned.call.op.fold(planned.call, element))))
        bit = 30 if planned.call.output.dtype.size == 4 else 0
        forced = forced_at(choose.randrange(2), value, element, path, 1 << bit)
        false = kept.execute(forced)
        if false.roots != honest.roots:
            return forced, false
    raise AssertionError(f"no error in {op} reaches the state")


def disputed(kept: Kept, runs: dict[Side, OwnRun], players: dict[Side, Rerun]) -> Ruling:
    """Play a dispute with signed moves until the ruling."""
    terms, plan = kept.terms, players[Side.DEFENDER].plan
    heads = {
        side: RunHead(
            job_id(terms), Count(len(run.roots)), run_root(run.roots, terms.cadence, terms.steps)
        )
        for side, run in runs.items()
    }
    opening = Opening(
        sha256(b"dispute"),
        KEYS[Side.DEFENDER].party,
        KEYS[Side.CHALLENGER].party,
        heads[Side.DEFENDER],
        heads[Side.CHALLENGER],
        Millis(1_000),
        Millis(1),
        Count(1),
    )
    dispute = arbiter.start(Setup(terms, plan, opening)).dispute
    while dispute.ruling is None:
        side = dispute.due[-1]
        move = next_move(dispute, side, players[side])
        assert move is not None
        signed = arbiter.sign_move(KEYS[side], dispute, move)
        dispute = arbiter.apply(dispute, signed, Millis(dispute.now + 1)).dispute
    return dispute.ruling


def check_found(kept: Kept, honest: OwnRun, forced: ForcedError, false: OwnRun, liar: Side) -> None:
    """Play an honest run against one with an error, and expect exactly that error found."""
    runs = {liar: false, liar.other: honest}
    players = {liar: kept.rerun(false, forced), liar.other: kept.rerun(honest)}
    ruling = disputed(kept, runs, players)
    assert (ruling.verdict, ruling.loser, ruling.rule) == (Verdicts.WRONG, liar, "REF-12")
    place = (ruling.step, ruling.value, ruling.element)
    assert [int(at) for at in place if at is not None] == [
        int(forced.step),
        int(forced.value),
        int(forced.element),
    ]
    assert tuple(ruling.path) == tuple(forced.path)
    claimed = ruling.defender if liar is Side.DEFENDER else ruling.challenger
    inverted = int.from_bytes(claimed, "big") ^ int.from_bytes(ruling.computed, "big")
    assert inverted == forced.flip


NAMES = sorted({planned.call.op.name for planned in SMALL.plan.calls} - {"full", "iota"})


@pytest.mark.parametrize("op", NAMES)
def test_exe_6__an_error_in_any_operator_is_found(kept: Callable[[Run], Kept], op: str) -> None:
    job = kept(SMALL)
    honest = job.execute()
    forced, false = error_in(SMALL, job, op, honest)
    for liar in Side:
        check_found(job, honest, forced, false, liar)


LONG = ("matmul", "sum_last", "amax", "sum_first")


@pytest.mark.parametrize("op", LONG)
def test_exe_6__an_error_inside_a_long_sum_is_found(kept: Callable[[Run], Kept], op: str) -> None:
    job = kept(WIDE)
    honest = job.execute()
    forced, false = error_in(WIDE, job, op, honest)
    check_found(job, honest, forced, false, Side.DEFENDER)


def test_exe_6__two_errors_meet_and_the_defender_s_is_found(kept: Callable[[Run], Kept]) -> None:
    job = kept(SMALL)
    honest = job.execute()
    first, second = (error_in(SMALL, job, op, honest) for op in ("matmul", "exp"))
    runs = {Side.DEFENDER: first[1], Side.CHALLENGER: second[1]}
    players = {
        Side.DEFENDER: job.rerun(first[1], first[0]),
        Side.CHALLENGER: job.rerun(second[1], second[0]),
    }
    ruling = disputed(job, runs, players)
    earliest = min((first[0], second[0]), key=lambda f: (f.step, f.value))
    assert ruling.verdict is Verdicts.WRONG
    assert ruling.step == earliest.step
    assert int(ruling.value or 0) == earliest.value
