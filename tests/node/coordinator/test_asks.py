"""States that the coordinator's blob store has lost: asked for, stored again, or missed in time."""

from __future__ import annotations

import pytest

from identic.protocol.errors import ProtocolError
from identic.protocol.hashing import sha256
from identic.protocol.ids import Count
from identic.protocol.job.messages import Ask, Served, Statement
from identic.protocol.job.state import Phase
from tests.node.coordinator.village import GRANT, PRICES, Run, Village, posting

CHECKPOINT, LAST = 2, 4


def ask(mark: int) -> Ask:
    """Ask for the state of a mark."""
    return Ask(posting().job, Count(1), Count(mark))


def served(mark: int) -> Served:
    """Say that the state of a mark is stored again."""
    return Served(posting().job, Count(1), Count(mark))


def refusal(village: Village, name: str, said: Statement) -> str:
    """Rule by which a statement is refused; nothing has changed then."""
    board, size = village.host.board, village.host.log.size
    with pytest.raises(ProtocolError) as refused:
        village.say(name, said)
    assert (village.host.board, village.host.log.size) == (board, size)
    return refused.value.rule


def damage(village: Village, run: Run, mark: int) -> None:
    """Change one byte of the stored state of a mark."""
    path = village.blobs.path(sha256(run.states[mark]))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_job_30__a_state_that_is_there_is_not_asked_for(village: Village, honest: Run) -> None:
    village.judged(honest)
    village.host.welcome(village.job.terms.submitter)
    for mark in (CHECKPOINT, LAST):
        assert refusal(village, "anna", ask(mark)) == "JOB-30"
    assert village.job.asked == ()


@pytest.mark.parametrize("mark", [CHECKPOINT, LAST])
@pytest.mark.parametrize("lost", [True, False])
def test_job_30__job_31__a_lost_or_damaged_state_is_stored_again(
    village: Village, honest: Run, mark: int, lost: bool
) -> None:
    village.judged(honest)
    if lost:
        village.blobs.remove(sha256(honest.states[mark]))
    else:
        damage(village, honest, mark)
    village.say("anna", ask(mark))
    # Saying so is not enough: the bytes must be there.
    assert refusal(village, "solver", served(mark)) == "NET-8"
    village.blobs.put(honest.states[mark])
    village.say("solver", served(mark))
    assert village.job.ask is None
    village.wait()
    assert village.job.phase is Phase.SETTLED
    assert village.money("solver") == GRANT + PRICES.solver_reward


def test_job_31__the_coordinator_calls_time_for_a_state_that_is_withheld(
    village: Village, honest: Run
) -> None:
    village.judged(honest)
    village.blobs.remove(sha256(honest.states[CHECKPOINT]))
    village.say("anna", ask(CHECKPOINT))
    village.restart()
    village.wait()
    assert (village.job.phase, village.job.attempt) == (Phase.OPEN, 2)
    assert village.money("solver") == GRANT - PRICES.solver_bond // 8
    assert village.money("anna") == village.money("bert") == GRANT
