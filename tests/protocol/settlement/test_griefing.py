"""What a false challenge costs its author, against what it makes others spend."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from identic.protocol.dispute.bounds import Fault, course
from identic.protocol.ids import Count
from identic.protocol.job.terms import MAX_CADENCE, MAX_PRICE, MAX_VERIFIERS
from identic.protocol.program.unroll import unroll
from identic.protocol.settlement.prices import (
    GRIEFING_RATIO,
    price_of,
    steps_again,
    steps_spent,
    suggest_prices,
)
from tests.helpers.programs import mlp
from tests.protocol.job.world import TERMS

PLAN = unroll(mlp())


@given(
    operations=st.integers(0, 10**14),
    steps=st.integers(1, 10**6),
    kept=st.integers(1, 10**6),
    verifiers=st.integers(1, MAX_VERIFIERS),
)
def test_set_10__a_false_challenge_costs_twice_what_all_vouchers_spend(
    operations: int, steps: int, kept: int, verifiers: int
) -> None:
    prices = suggest_prices(operations, steps, kept, verifiers)
    spent = (1 + verifiers) * price_of(operations * steps_spent(steps, kept))
    assert prices.challenger_bond >= min(GRIEFING_RATIO * spent, MAX_PRICE)
    assert prices.challenger_bond >= prices.solver_reward
    if prices.challenger_bond < MAX_PRICE:
        # The half that goes to one of them is no less than what all of them spent.
        assert prices.challenger_bond // 2 >= spent


@given(
    steps=st.integers(1, 5_000),
    cadence=st.integers(1, MAX_CADENCE),
    checkpoint=st.integers(1, 100),
    data=st.data(),
)
def test_set_10__no_dispute_makes_a_side_execute_more(
    steps: int, cadence: int, checkpoint: int, data: st.DataObject
) -> None:
    terms = replace(TERMS, steps=Count(steps), cadence=Count(cadence), checkpoint=Count(checkpoint))
    last = PLAN.values - 1
    fault = Fault(data.draw(st.integers(0, steps - 1)), last, PLAN.type(last).elements - 1)
    again = course(terms, PLAN, fault).again
    assert again <= steps_again(steps, cadence * checkpoint)


def test_set_10__with_the_usual_conditions_a_challenge_costs_about_a_reward() -> None:
    """Ten stored states and two verifiers: a challenge is no luxury for honest parties."""
    prices = suggest_prices(10**12, 1_000, 100, 2)
    assert prices.solver_reward <= prices.challenger_bond <= 2 * prices.solver_reward
    assert prices.challenger_bond < prices.solver_bond // 2
