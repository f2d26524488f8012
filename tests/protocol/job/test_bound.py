"""However many liars there are, a job is settled in the time that JOB-26 states."""

from __future__ import annotations

import math

import pytest

from identic.protocol.settlement.ledger import Bond
from tests.helpers.knockout import WINDOW, Course, Entry, Liars, Way, course
from tests.protocol.job.world import ANNA, BERT, FUNDS, PRICES, SOLVER, World


def bound_ms(found: Course) -> int:
    """What JOB-26 says."""
    return 2 * WINDOW + math.ceil(math.log2(found.claims + 1)) * found.longest_ms


@pytest.mark.parametrize("claims", [1, 2, 3, 4, 7, 8, 21])
def test_job_26__however_liars_play_and_enter_the_job_is_settled_in_time(claims: int) -> None:
    for way in Way:
        for entry in Entry:
            found = course(claims, way, entry)
            assert found.matches <= claims
            assert found.took_ms <= bound_ms(found)


@pytest.mark.parametrize(("way", "entry"), [(Way.SLOW, Entry.LAST), (Way.ANY, Entry.SPREAD)])
def test_job_26__nor_do_256_liars_delay_it_longer(way: Way, entry: Entry) -> None:
    found = course(256, way, entry)
    assert found.took_ms <= bound_ms(found)
    # One after the other they would take 256 disputes.
    assert found.after <= 9


def test_job_26__slow_teams_that_enter_at_the_end_need_the_whole_logarithm() -> None:
    """As many friends in each team as vouch for the run: all disputes last alike."""
    found = course(15, Way.SLOW, Entry.LAST, team=3)
    assert bound_ms(found) - found.took_ms <= WINDOW


def test_job_26__every_liar_that_is_told_loses_its_bond_and_nobody_else_any() -> None:
    liars = Liars(40, Way.ANY, Entry.SPREAD)
    liars.run()
    world: World = liars.world
    lost = 40 * PRICES.challenger_bond
    assert sum(world.ledger.balances.values()) == 0
    assert not [account for account in world.ledger.balances if isinstance(account, Bond)]
    rewards = {SOLVER: 100, ANNA: 40, BERT: 40}
    won = {name: world.money(name) - FUNDS - reward for name, reward in rewards.items()}
    assert all(gain >= 0 for gain in won.values())
    assert 0 < sum(won.values()) <= lost // 2
