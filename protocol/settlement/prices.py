"""The price model: from the work of a job to the prices its submitter offers.

A submitter may offer other prices; these are the ones that the client suggests. Work is in
weighted floating-point operations (PRG cost rules), money in millionths of a credit.

Spec: docs/spec/settlement.md (SET-9).
"""

from __future__ import annotations

from identic.protocol.ids import Credits
from identic.protocol.job.terms import MAX_PRICE, Prices

MICRO_PER_TERAFLOP = 1_000
"""Price of 10^12 operations."""
LEAST_REWARD = 10_000
BOND_FACTOR = 5
"""Bonds are this many times the reward: a liar must be caught once in six times or more to lose."""


def suggest_prices(operations_per_step: int, steps: int) -> Prices:
    """Prices for a job of ``steps`` steps of ``operations_per_step`` weighted operations each.

    A verifier does the same work as the solver and is offered the same; a challenger risks
    one reward.
    """
    work = operations_per_step * steps
    # SET-9: a reward is the work at the unit price, rounded up, within the limits.
    price = -(-work * MICRO_PER_TERAFLOP // 10**12)
    value = min(max(price, LEAST_REWARD), MAX_PRICE // BOND_FACTOR)
    bond = Credits(value * BOND_FACTOR)
    return Prices(Credits(value), Credits(value), bond, bond, Credits(value))
