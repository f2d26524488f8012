"""The price model: from the work of a job to the prices its submitter offers.

A submitter may offer other prices; these are the ones that the client suggests. Work is in
weighted floating-point operations (PRG cost rules), money in millionths of a credit.

Spec: docs/spec/settlement.md (SET-9, SET-10).
"""

from __future__ import annotations

from identic.protocol.dispute.clocks import LOOKED
from identic.protocol.ids import Credits
from identic.protocol.job.terms import MAX_PRICE, Prices

MICRO_PER_TERAFLOP = 1_000
"""Price of 10^12 operations."""
LEAST_REWARD = 10_000
BOND_FACTOR = 5
"""Bonds are this many times the reward: a liar must be caught once in six times or more to lose."""
GRIEFING_RATIO = 2
"""A false challenge costs its author this many times what it makes the others spend, or more."""


def suggest_prices(operations_per_step: int, steps: int, kept: int, verifiers: int) -> Prices:
    """Prices for a job of ``steps`` steps of ``operations_per_step`` weighted operations each.

    A verifier does the same work as the solver and is offered the same.

    Args:
        operations_per_step: weighted operations of a step (PRG-16).
        steps: of the run.
        kept: steps between two states that are stored.
        verifiers: how many re-execute the run.
    """
    # SET-9: a reward is the work at the unit price, rounded up, within the limits.
    price = price_of(operations_per_step * steps)
    value = min(max(price, LEAST_REWARD), MAX_PRICE // BOND_FACTOR)
    bond = Credits(value * BOND_FACTOR)
    again = price_of(operations_per_step * steps_spent(steps, kept))
    # SET-10: a challenger risks a reward, and twice what all that vouch spend on its dispute.
    risk = max(value, GRIEFING_RATIO * (1 + verifiers) * again)
    return Prices(Credits(value), Credits(value), bond, bond, Credits(min(risk, MAX_PRICE)))


def price_of(operations: int) -> int:
    """Unit price of weighted operations, rounded up, in millionths of a credit."""
    return -(-operations * MICRO_PER_TERAFLOP // 10**12)


def steps_again(steps: int, kept: int) -> int:
    """Most steps that a side of a dispute executes again (DSP-10).

    From a stored state to the end of the interval in dispute; from there again to the step, for
    its trace; and the step, for the bytes of one value.
    """
    return 2 * min(kept, steps) + 1


def steps_spent(steps: int, kept: int) -> int:
    """Plain steps that take as long as all that a side of a dispute does, at most.

    Twice the values of a step are looked at: for its trace, and for the bytes of one of them.
    """
    return steps_again(steps, kept) + 2 * LOOKED
