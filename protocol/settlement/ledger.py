"""The ledger: accounts, and transactions whose postings sum to zero.

* Only ``Issued`` may be negative: its balance is minus all money there is.
* A transaction has a name that follows from what it is about; posting it again changes
  nothing, and another transaction of that name is refused.
* Nothing here calls anybody: a payment cannot fail because of its receiver.

Spec: docs/spec/settlement.md (SET-1 to SET-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import ClassVar

from identic.protocol.errors import Code, ProtocolError
from identic.protocol.ids import Count, Credits, Digest, JobId, PartyId


@dataclass(frozen=True)
class Balance:
    """Money that a party can spend."""

    TAG: ClassVar[int] = 1
    party: PartyId


@dataclass(frozen=True)
class Escrow:
    """Money set aside by a submitter for a job's rewards."""

    TAG: ClassVar[int] = 2
    job: JobId


@dataclass(frozen=True)
class Bond:
    """Money of a party that is lost if it lies."""

    TAG: ClassVar[int] = 3
    subject: Digest
    """The job, or the message of the challenge for a challenger's bond."""
    number: Count
    """Attempt at the job; 0 for a challenge."""
    party: PartyId


@dataclass(frozen=True)
class Burned:
    """Money that nobody has any more."""

    TAG: ClassVar[int] = 4


@dataclass(frozen=True)
class Issued:
    """The source of all money."""

    TAG: ClassVar[int] = 5


Account = Balance | Escrow | Bond | Burned | Issued


class Reason(IntEnum):
    """Why money moves."""

    ISSUE = 1
    ESCROW = 2
    BOND = 3
    RELEASE = 4
    REWARD = 5
    SLASH = 6
    LATE = 7
    REFUND = 8


@dataclass(frozen=True)
class TransactionId:
    """What a transaction is about; each happens at most once."""

    reason: Reason
    subject: Digest
    """Job, challenge, or zero bytes for an issue."""
    number: Count
    """Attempt at the job, number of the issue, or 0."""
    party: PartyId
    """The party whose money moves."""


@dataclass(frozen=True)
class Posting:
    """A change of one account, in millionths of a credit; positive is received."""

    account: Account
    amount: int


@dataclass(frozen=True)
class Transaction:
    """Postings that happen together or not at all."""

    id: TransactionId
    postings: tuple[Posting, ...]


@dataclass(frozen=True)
class Ledger:
    """All accounts and all transactions so far; a value, changed only by ``post``."""

    balances: Mapping[Account, int] = field(default_factory=lambda: MappingProxyType({}))
    transactions: Mapping[TransactionId, Transaction] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """In the order of posting."""

    def of(self, account: Account) -> int:
        """Money in an account, in millionths of a credit."""
        return self.balances.get(account, 0)

    def balance(self, party: PartyId) -> Credits:
        """Money that a party can spend."""
        return Credits(self.of(Balance(party)))

    def at_risk(self, party: PartyId) -> Credits:
        """Money of a party that is locked in bonds."""
        return Credits(
            sum(
                amount
                for account, amount in self.balances.items()
                if isinstance(account, Bond) and account.party == party
            )
        )


def post(ledger: Ledger, transaction: Transaction) -> Ledger:
    """Apply a transaction, or return the ledger as it is when it holds it already.

    Raises:
        ProtocolError: the postings do not sum to zero (SET-1), the name belongs to another
            transaction (SET-2), or an account would go below zero (SET-3).
    """
    known = ledger.transactions.get(transaction.id)
    if known is not None:
        # SET-2: a name stands for one transaction.
        if known != transaction:
            raise ProtocolError("SET-2", Code.MISMATCH, got=transaction, want=known)
        return ledger
    total = sum(posting.amount for posting in transaction.postings)
    # SET-1: the postings of a transaction sum to zero.
    if total != 0:
        raise ProtocolError("SET-1", Code.MISMATCH, got=f"a sum of {total}", want="0")
    balances = dict(ledger.balances)
    for posting in transaction.postings:
        balances[posting.account] = balances.get(posting.account, 0) + posting.amount
    for account in {posting.account for posting in transaction.postings}:
        _check_covered(account, ledger.of(account), balances[account])
        if balances[account] == 0:
            del balances[account]
    return Ledger(
        MappingProxyType(balances),
        MappingProxyType({**ledger.transactions, transaction.id: transaction}),
    )


def _check_covered(account: Account, before: int, after: int) -> None:
    # SET-3: no account but the source of money goes below zero.
    if after < 0 and not isinstance(account, Issued):
        raise ProtocolError(
            "SET-3",
            Code.INSUFFICIENT,
            got=f"{before} in {type(account).__name__.lower()}",
            want=f"at least {before - after}",
        )
