"""The ledger and its transactions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Count, Credits, Digest, JobId, PartyId
from identic.protocol.settlement.ledger import (
    Account,
    Balance,
    Bond,
    Burned,
    Escrow,
    Issued,
    Ledger,
    Posting,
    Reason,
    Transaction,
    TransactionId,
    post,
)
from identic.protocol.settlement.movements import (
    charge_late,
    issue,
    lock_bond,
    refund,
    release_bond,
    reward,
    slash_bond,
    take_escrow,
)
from identic.protocol.settlement.prices import LEAST_REWARD, suggest_prices

ANNA, BERT = PartyId(b"a" * 32), PartyId(b"b" * 32)
JOB = JobId(b"j" * 32)


def rich(amount: int = 1_000) -> Ledger:
    """A ledger in which Anna has money."""
    return post(Ledger(), issue(0, ANNA, amount))


def refused(ledger: Ledger, transaction: Transaction) -> tuple[str, Code]:
    """Post what must be refused; return rule and code."""
    with pytest.raises(ProtocolError) as error:
        post(ledger, transaction)
    return error.value.rule, error.value.code


def named(number: int, *postings: tuple[Account, int]) -> Transaction:
    """A transaction of any content."""
    name = TransactionId(Reason.REWARD, Digest(bytes(32)), Count(number), ANNA)
    return Transaction(name, tuple(Posting(account, amount) for account, amount in postings))


def test_set_1__postings_that_do_not_sum_to_zero_are_refused() -> None:
    wrong = named(0, (Balance(ANNA), -5), (Balance(BERT), 4))
    assert refused(rich(), wrong) == ("SET-1", Code.MISMATCH)


def test_set_2__posting_again_changes_nothing_and_a_name_is_taken_once() -> None:
    ledger = post(rich(), lock_bond(JOB, 1, ANNA, Credits(10)))
    assert post(ledger, lock_bond(JOB, 1, ANNA, Credits(10))) is ledger
    assert refused(ledger, lock_bond(JOB, 1, ANNA, Credits(11))) == ("SET-2", Code.MISMATCH)
    assert post(ledger, lock_bond(JOB, 2, ANNA, Credits(11))).at_risk(ANNA) == 21


def test_set_3__no_account_goes_below_zero() -> None:
    assert refused(rich(), lock_bond(JOB, 1, ANNA, Credits(1_001))) == ("SET-3", Code.INSUFFICIENT)
    assert refused(rich(), release_bond(JOB, 1, ANNA, Credits(1))) == ("SET-3", Code.INSUFFICIENT)
    assert refused(rich(), reward(JOB, 1, ANNA, Credits(1))) == ("SET-3", Code.INSUFFICIENT)


def test_set_3__money_passing_through_in_one_transaction_is_no_debt() -> None:
    through = named(0, (Balance(BERT), -5), (Balance(ANNA), -5), (Balance(BERT), 10))
    assert post(rich(), through).balance(BERT) == 5


def test_set_4__a_deposit_of_a_number_occurs_once() -> None:
    ledger = rich()
    assert post(ledger, issue(0, ANNA, 1_000)) is ledger
    assert refused(ledger, issue(0, ANNA, 1)) == ("SET-2", Code.MISMATCH)
    assert post(ledger, issue(1, ANNA, 1)).of(Issued()) == -1_001


def test_set_5__the_escrow_pays_rewards_and_the_rest_returns() -> None:
    ledger = post(rich(), take_escrow(JOB, ANNA, Credits(300)))
    ledger = post(ledger, reward(JOB, 1, BERT, Credits(100)))
    ledger = post(ledger, refund(JOB, ANNA, 200))
    assert (ledger.balance(ANNA), ledger.balance(BERT), ledger.of(Escrow(JOB))) == (900, 100, 0)
    assert refused(ledger, refund(JOB, ANNA, 1)) == ("SET-2", Code.MISMATCH)


def test_set_6__a_bond_is_locked_and_released_whole() -> None:
    ledger = post(rich(), lock_bond(JOB, 1, ANNA, Credits(400)))
    assert (ledger.balance(ANNA), ledger.at_risk(ANNA)) == (600, 400)
    assert ledger.of(Bond(JOB, Count(1), ANNA)) == 400
    ledger = post(ledger, release_bond(JOB, 1, ANNA, Credits(400)))
    assert (ledger.balance(ANNA), ledger.at_risk(ANNA)) == (1_000, 0)


@pytest.mark.parametrize(("bond", "won"), [(1, 0), (400, 200), (401, 200)])
def test_set_7__half_a_slashed_bond_goes_to_the_winner(bond: int, won: int) -> None:
    ledger = post(rich(), lock_bond(JOB, 1, ANNA, Credits(bond)))
    ledger = post(ledger, slash_bond(JOB, 1, ANNA, Credits(bond), BERT))
    assert (ledger.balance(BERT), ledger.of(Burned())) == (won, bond - won)
    assert ledger.at_risk(ANNA) == 0


def test_set_8__a_late_solver_leaves_an_eighth() -> None:
    ledger = post(rich(), lock_bond(JOB, 1, ANNA, Credits(401)))
    ledger = post(ledger, charge_late(JOB, 1, ANNA, Credits(401), BERT))
    assert (ledger.balance(ANNA), ledger.balance(BERT)) == (950, 50)


def test_a_bond_has_one_end() -> None:
    ledger = post(rich(), lock_bond(JOB, 1, ANNA, Credits(100)))
    ledger = post(ledger, slash_bond(JOB, 1, ANNA, Credits(100), BERT))
    assert refused(ledger, release_bond(JOB, 1, ANNA, Credits(100)))[0] == "SET-3"


@given(operations=st.integers(0, 10**16), steps=st.integers(1, 10**6))
def test_set_9__prices_grow_with_the_work(operations: int, steps: int) -> None:
    prices = suggest_prices(operations, steps, 1, 1)
    assert prices.solver_reward >= LEAST_REWARD
    assert prices.solver_bond == 5 * prices.solver_reward
    assert suggest_prices(operations + 1, steps, 1, 1).solver_reward >= prices.solver_reward


accounts = st.one_of(
    st.builds(Balance, st.sampled_from([ANNA, BERT])),
    st.builds(Escrow, st.just(JOB)),
    st.builds(Bond, st.just(JOB), st.builds(Count, st.integers(0, 2)), st.just(ANNA)),
    st.just(Burned()),
    st.just(Issued()),
)
transactions = st.builds(
    Transaction,
    st.builds(
        TransactionId,
        st.sampled_from(Reason),
        st.just(JOB),
        st.builds(Count, st.integers(0, 5)),
        st.sampled_from([ANNA, BERT]),
    ),
    st.lists(st.builds(Posting, accounts, st.integers(-50, 50)), max_size=3).map(tuple),
)


def balanced(transaction: Transaction) -> Transaction:
    """The transaction with one more posting that brings its sum to zero."""
    total = sum(p.amount for p in transaction.postings)
    return Transaction(transaction.id, (*transaction.postings, Posting(Issued(), -total)))


@given(st.lists(st.one_of(transactions, transactions.map(balanced)), max_size=30))
def test_set_1__set_3__whatever_is_posted_money_is_conserved(posted: list[Transaction]) -> None:
    ledger, accepted = rich(), []
    for transaction in posted:
        try:
            ledger = post(ledger, transaction)
        except ProtocolError:
            continue
        accepted.append(transaction)
        assert sum(ledger.balances.values()) == 0
        assert all(v > 0 for a, v in ledger.balances.items() if a != Issued())
        assert decode(Transaction, encode(transaction)) == transaction
    again = ledger
    for transaction in accepted:
        again = post(again, transaction)
    assert again is ledger
