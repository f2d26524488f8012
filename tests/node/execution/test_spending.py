"""What an honest party executes again in a whole dispute: no more than what challengers pay for."""

from __future__ import annotations

import pytest

from identic.node.execution.rerun import Rerun
from identic.proofs.runlog import run_root
from identic.protocol.commitments import RunHead
from identic.protocol.dispute.machine import MoveMade, open_dispute, step
from identic.protocol.dispute.moves import Side
from identic.protocol.dispute.player import next_move
from identic.protocol.dispute.setup import Opening, Setup
from identic.protocol.dispute.state import Phase
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count, Digest, Millis, PartyId
from identic.protocol.job.terms import job_id
from identic.protocol.ops.folds import Nested
from identic.protocol.settlement.prices import steps_again
from tests.helpers.small_run import small_run
from tests.node.execution.parts import Kept, forced_at, keep

STEPS, CADENCE, CHECKPOINT = 24, 4, 2
RUN = small_run(shards=1, steps=STEPS, cadence=CADENCE)
FLIP = 1 << 30


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The job of these tests, with a state stored every eight steps."""
    return keep(tmp_path_factory.mktemp("spending") / "blobs", RUN, CHECKPOINT)


def setup_of(kept: Kept, claims: dict[Side, tuple[Digest, ...]]) -> Setup:
    """A dispute between two runs."""
    terms = kept.terms
    ours, theirs = (
        RunHead(job_id(terms), Count(len(roots)), run_root(roots, terms.cadence, terms.steps))
        for roots in (claims[Side.DEFENDER], claims[Side.CHALLENGER])
    )
    one, other = PartyId(sha256(b"defender")), PartyId(sha256(b"challenger"))
    nothing, name = Millis(0), Digest(sha256(b"dispute"))
    opening = Opening(name, one, other, ours, theirs, nothing, nothing, Count(1))
    return Setup(terms, RUN.plan, opening)


def played(setup: Setup, players: dict[Side, Rerun]) -> None:
    """Play a dispute up to the evidence, which the defender gives."""
    dispute, _ = open_dispute(setup)
    while dispute.phase is not Phase.AWAIT_EVIDENCE:
        for side in dispute.due:
            move = next_move(dispute, side, players[side])
            assert move is not None
            dispute, _ = step(dispute, MoveMade(Millis(0), side, move))
    assert next_move(dispute, Side.DEFENDER, players[Side.DEFENDER]) is not None


def counted(rerun: Rerun) -> list[int]:
    """The steps that a party executes from now on."""
    executed: list[int] = []
    trainer, plain = rerun._trainer, rerun._trainer.step

    def step_and_count(state: object, at: int, *rest: object, give: bool = False) -> object:
        executed.append(at)
        return plain(state, at, *rest, give=give)  # type: ignore[arg-type]

    trainer.step = step_and_count  # type: ignore[method-assign, assignment]
    return executed


def last_entry(value: int) -> list[int]:
    """Path of the last primitive step of a value's first element."""
    planned = RUN.plan.call(value)
    assert planned is not None
    fold, path = planned.call.op.fold(planned.call, 0), []
    while True:
        path.append(fold.length - 1)
        entry = fold.entry(path[-1])
        if not isinstance(entry, Nested):
            return path
        fold = entry.fold


@pytest.mark.parametrize("at", [0, 3, 7, 8, 14, 15, STEPS - 1])
def test_set_10__an_honest_side_executes_no_more_than_a_challenge_pays_for(
    kept: Kept, at: int
) -> None:
    # A tensor of the new state, so that the lie shows at the next mark.
    value = next(n for n in RUN.plan.outputs if RUN.plan.call(n) is not None)
    lie = forced_at(at, value, 0, last_entry(value), FLIP)
    honest, false = kept.execute(every=CHECKPOINT), kept.execute(lie, every=CHECKPOINT)
    mark = next(i for i, (a, b) in enumerate(zip(honest.roots, false.roots, strict=True)) if a != b)
    claims = {Side.DEFENDER: honest.roots[: mark + 1], Side.CHALLENGER: false.roots[: mark + 1]}
    players = {Side.DEFENDER: kept.rerun(honest), Side.CHALLENGER: kept.rerun(false, lie)}
    executed = counted(players[Side.DEFENDER])
    played(setup_of(kept, claims), players)
    assert at in executed
    assert len(executed) <= steps_again(STEPS, CADENCE * CHECKPOINT)
