"""Who pays whom: one function for each kind of transaction.

The name of each follows from the job, the attempt and the party, so that replaying a
decision never pays twice. Amounts are whole millionths of a credit; where a division
leaves a remainder it is burned or stays with the owner, as said there.

Spec: docs/spec/settlement.md (SET-4 to SET-8).
"""

from __future__ import annotations

from identic.protocol.ids import Count, Credits, Digest, JobId, PartyId
from identic.protocol.settlement.ledger import (
    Account,
    Balance,
    Bond,
    Burned,
    Escrow,
    Issued,
    Posting,
    Reason,
    Transaction,
    TransactionId,
)

LATE_DIVISOR = 8
"""A late solver leaves this part of its bond to the submitter."""
NOBODY = Digest(bytes(32))


def issue(number: int, party: PartyId, amount: int) -> Transaction:
    """Issue money to a party, once for each number (SET-4)."""
    name = TransactionId(Reason.ISSUE, NOBODY, Count(number), party)
    return _move(name, (Issued(), -amount), (Balance(party), amount))


def take_escrow(job: JobId, submitter: PartyId, amount: Credits) -> Transaction:
    """Set the job's rewards aside (SET-5)."""
    name = TransactionId(Reason.ESCROW, job, Count(0), submitter)
    return _move(name, (Balance(submitter), -amount), (Escrow(job), amount))


def refund(job: JobId, submitter: PartyId, amount: int) -> Transaction:
    """Give what is left of the escrow back, once for each job (SET-5)."""
    name = TransactionId(Reason.REFUND, job, Count(0), submitter)
    return _move(name, (Escrow(job), -amount), (Balance(submitter), amount))


def reward(job: JobId, attempt: int, party: PartyId, amount: Credits) -> Transaction:
    """Pay a solver or a verifier from the escrow (SET-5)."""
    name = TransactionId(Reason.REWARD, job, Count(attempt), party)
    return _move(name, (Escrow(job), -amount), (Balance(party), amount))


def lock_bond(subject: Digest, number: int, party: PartyId, amount: Credits) -> Transaction:
    """Lock a bond (SET-6)."""
    name = TransactionId(Reason.BOND, subject, Count(number), party)
    bond = Bond(subject, Count(number), party)
    return _move(name, (Balance(party), -amount), (bond, amount))


def release_bond(subject: Digest, number: int, party: PartyId, amount: Credits) -> Transaction:
    """Give a whole bond back (SET-6)."""
    name = TransactionId(Reason.RELEASE, subject, Count(number), party)
    bond = Bond(subject, Count(number), party)
    return _move(name, (bond, -amount), (Balance(party), amount))


def slash_bond(
    subject: Digest, number: int, party: PartyId, amount: Credits, winner: PartyId
) -> Transaction:
    """Take a whole bond: half to the winner, the rest burned, an odd millionth too (SET-7)."""
    name = TransactionId(Reason.SLASH, subject, Count(number), party)
    bond = Bond(subject, Count(number), party)
    half = amount // 2
    return _move(name, (bond, -amount), (Balance(winner), half), (Burned(), amount - half))


def charge_late(
    subject: Digest, number: int, party: PartyId, amount: Credits, submitter: PartyId
) -> Transaction:
    """Give a late solver's bond back but for an eighth, rounded down, to the submitter (SET-8)."""
    name = TransactionId(Reason.LATE, subject, Count(number), party)
    bond = Bond(subject, Count(number), party)
    share = amount // LATE_DIVISOR
    return _move(
        name, (bond, -amount), (Balance(party), amount - share), (Balance(submitter), share)
    )


def _move(name: TransactionId, *postings: tuple[Account, int]) -> Transaction:
    return Transaction(name, tuple(Posting(account, amount) for account, amount in postings))
