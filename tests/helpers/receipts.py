"""A settled job's receipt over the small run, with real signatures and a real log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from identic.proofs import merkle
from identic.proofs.receipt import Included, Receipt
from identic.proofs.signatures import SigningKey, sign
from identic.protocol.dispute.setup import header_after
from identic.protocol.encoding import encode
from identic.protocol.hashing import Domain, sha256
from identic.protocol.ids import Count, Digest, Millis, Unsigned
from identic.protocol.job.entries import (
    Event,
    LogEntry,
    LogHead,
    Loser,
    Ruled,
    Verdicts,
    entry_hash,
)
from identic.protocol.job.messages import (
    DisputeId,
    Enrol,
    Finish,
    Message,
    RevealVerdict,
    SignedMessage,
    Statement,
)
from identic.protocol.job.terms import job_id
from tests.helpers.signed_game import COORDINATOR, head_of
from tests.helpers.small_run import Run

SOLVER = SigningKey(bytes([5]) * 32)
VERIFIER = SigningKey(bytes([6]) * 32)
MODEL = sha256(b"model file")


def said(key: SigningKey, statement: Statement, nonce: int = 0) -> SignedMessage:
    """A signed message to the coordinator."""
    message = Message(COORDINATOR.party, key.party, Unsigned(nonce), statement)
    return SignedMessage(message, sign(key, Domain.MESSAGE, message))


def finish_of(run: Run) -> Finish:
    """The solver's last message."""
    head = head_of(run, run.good.run_leaves())
    return Finish(job_id(run.terms), Count(1), head, MODEL, sha256(b"state"))


def verdict_of(run: Run) -> RevealVerdict:
    """A verifier's agreement."""
    head = head_of(run, run.good.run_leaves())
    salt, work = sha256(b"salt"), sha256(b"work")
    return RevealVerdict(job_id(run.terms), Count(1), head, agrees=True, salt=salt, work=work)


def ruling_of(run: Run, verdict: Verdicts, loser: Loser) -> Ruled:
    """How a dispute about the run ended."""
    dispute, rule = DisputeId(sha256(b"dispute")), "REF-12"
    return Ruled(dispute, job_id(run.terms), Count(1), verdict, loser, rule, sha256(b"file"))


def logged(events: Sequence[Event]) -> tuple[list[Included], LogHead]:
    """Entries of a log with some others around them."""
    others = [said(SOLVER, Enrol(), nonce) for nonce in range(5)]
    entries = [
        LogEntry(Count(index), Millis(1_000 + index), event)
        for index, event in enumerate([*others, *events, *others])
    ]
    hashes = [entry_hash(entry) for entry in entries]
    included = [
        Included(entry, merkle.path(hashes, entry.index))
        for entry in entries[len(others) : len(others) + len(events)]
    ]
    return included, LogHead(Count(len(entries)), merkle.root(hashes), Millis(2_000))


def receipt_over(
    run: Run, finish: Event, verdicts: Sequence[Event], rulings: Sequence[Event]
) -> Receipt:
    """A receipt whose log holds these events."""
    entries, log = logged([finish, *verdicts, *rulings])
    steps = run.terms.steps
    count = 1 + len(verdicts)
    return Receipt(
        version=Count(1),
        coordinator=COORDINATOR.party,
        terms=run.terms,
        program=encode(run.program),
        attempt=Count(1),
        marks=tuple(run.good.run_leaves()),
        header=header_after(run.terms, run.plan, steps),
        digests=tuple(run.good.state_digests(steps)),
        finish=entries[0],
        verdicts=tuple(entries[1:count]),
        rulings=tuple(entries[count:]),
        log=log,
        signature=sign(COORDINATOR, Domain.LOG, log),
    )


def good_receipt(run: Run) -> Receipt:
    """A receipt with nothing wrong."""
    ruling = ruling_of(run, Verdicts.WRONG, Loser.CHALLENGER)
    return receipt_over(
        run, said(SOLVER, finish_of(run)), [said(VERIFIER, verdict_of(run))], [ruling]
    )


def without_path(receipt: Receipt) -> Receipt:
    """The receipt with one hash of the finish's path changed."""
    path = receipt.finish.path
    wrong: tuple[Digest, ...] = (*path[:-1], sha256(b"other"))
    return replace(receipt, finish=replace(receipt.finish, path=wrong))
