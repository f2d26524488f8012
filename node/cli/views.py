"""From the board and the reports of parties to what screens show."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from identic.node.cli import words
from identic.node.cli.reading import LogReader, role_of
from identic.node.cli.screens import descent
from identic.node.cli.screens.ledger import AccountLine, LedgerView
from identic.node.cli.screens.progress import JobView, PartyView
from identic.node.coordinator.board import Board
from identic.node.views import PartyProgress
from identic.protocol.ids import PartyId
from identic.protocol.job.messages import DisputeId
from identic.protocol.job.state import Awaiting, Job, Seat
from identic.protocol.program.plan import StepPlan
from identic.protocol.settlement.ledger import (
    Balance,
    Bond,
    Burned,
    Escrow,
    Issued,
    Reason,
    Transaction,
)

WINDOWS = "take_windows"
"""Operator that cuts token windows out of the data, for jobs that count tokens."""


def job_view(
    job: Job, reports: Sequence[PartyProgress] = (), *, log_size: int = 0, tokens: int = 0
) -> JobView:
    """A job as the board and the parties tell it.

    Args:
        job: the job.
        reports: what parties said last about their progress; binds nobody.
        log_size: entries of the log.
        tokens: tokens in a step; 0 where the job has none.
    """
    told = {report.party: report for report in reports}
    parties = []
    if job.solver is not None:
        parties.append(_solver(job, told.get(job.solver)))
    parties += [_verifier(job, seat, told.get(seat.party)) for seat in job.verifiers]
    seen = {job.solver, *(seat.party for seat in job.verifiers)}
    parties += [
        _party(report.role, report)
        for report in reports
        if report.party not in seen and report.step
    ]
    waits = "" if job.awaiting is Awaiting.NOTHING or job.phase.over else job.awaiting.value
    return JobView(
        name=job.id.name,
        phase=job.phase.value,
        steps=int(job.terms.steps),
        parties=tuple(parties),
        losses=tuple(loss_of(mark.loss) for mark in job.marks[1:]),
        committed=int(job.marks[-1].step) if job.marks else 0,
        log_size=log_size,
        tokens=tokens,
        attempt=int(job.attempt),
        waits_for=waits,
    )


def loss_of(word: int) -> float:
    """The float32 number with this bit pattern."""
    value: float = struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0]
    return value


def _party(role: str, report: PartyProgress) -> PartyView:
    name = words.party(role, report.party)
    return PartyView(name, role, report.step, report.rate, report.loss, report.activity)


def _solver(job: Job, report: PartyProgress | None) -> PartyView:
    name = words.party("solver", job.solver)
    done = int(job.marks[-1].step) if job.marks else 0
    loss = loss_of(job.marks[-1].loss) if done else None
    if report is None or job.finish is not None:
        return PartyView(name, "solver", done, loss=loss)
    step = max(done, report.step)
    shown = report.loss if report.loss is not None else loss
    return PartyView(name, "solver", step, report.rate, shown, report.activity)


def _verifier(job: Job, seat: Seat, report: PartyProgress | None) -> PartyView:
    name = words.party("verifier", seat.party)
    verdict = verdict_of(seat)
    if report is None:
        return PartyView(name, "verifier", int(job.terms.steps) if verdict else 0, verdict=verdict)
    loss = None if verdict else report.loss
    step = int(job.terms.steps) if verdict in {"agrees", "sealed"} else report.step
    rate = 0.0 if verdict else report.rate
    return PartyView(name, "verifier", step, rate, loss, report.activity, verdict)


def verdict_of(seat: Seat) -> str:
    """A verifier's verdict in a word; empty while there is none."""
    if seat.late:
        return "late"
    if seat.verdict is not None:
        return "agrees" if seat.agrees else "disagrees"
    return "sealed" if seat.sealed is not None else ""


def tokens_of(plan: StepPlan) -> int:
    """Tokens in one step of a program that cuts windows; 0 for others."""
    for call in plan.calls:
        if call.call.op.name == WINDOWS:
            windows, length = call.call.output.shape
            return int(windows) * int(plan.program.shards) * (int(length) - 1)
    return 0


# ---- disputes -------------------------------------------------------------------------------


def dispute_view(
    reader: LogReader,
    dispute: DisputeId,
    *,
    places: descent.Places | None = None,
    transcript: str = "",
) -> descent.DisputeView | None:
    """A ruled dispute for the screen; None before the ruling.

    Args:
        reader: the board, with what is remembered about the dispute.
        dispute: which.
        places: where plan values come from in the submitter's source.
        transcript: where the transcript lies; its digest unless given.
    """
    case = reader.board.case(dispute)
    ruling = case.dispute.ruling
    if ruling is None:
        return None
    known = reader.disputes[dispute]
    job = reader.board.job(case.job)
    return descent.describe(
        case.dispute.setup,
        ruling,
        roles=known.roles,
        places=places,
        money=payments(known.payments, job),
        transcript=transcript or f"{dispute.name}.identic",
    )


def payments(moved: Iterable[Transaction], job: Job) -> tuple[str, ...]:
    """Sentences about money: who paid whom, and why."""
    return tuple(sentence for t in moved if (sentence := _payment(t, job)))


_VERBS = {
    Reason.REWARD: "paid {total} to {to}",
    Reason.REFUND: "{total} of the escrow go back to {to}",
    Reason.RELEASE: "the bond of {party} is free again: {total}",
    Reason.ESCROW: "{total} set aside by {party}",
    Reason.BOND: "{party} puts {total} at risk",
}


def _payment(transaction: Transaction, job: Job) -> str:
    party = words.party(role_of(job, transaction.id.party), transaction.id.party)
    received = [p for p in transaction.postings if p.amount > 0]
    total = words.money(sum(p.amount for p in received))
    to = [
        f"{words.money(p.amount)} to {words.party(role_of(job, p.account.party), p.account.party)}"
        for p in received
        if isinstance(p.account, Balance)
    ]
    burned = sum(p.amount for p in received if isinstance(p.account, Burned))
    if transaction.id.reason is Reason.SLASH:
        return f"slashed {total} from {party}: {', '.join(to)}, {words.money(burned)} burned"
    if transaction.id.reason is Reason.LATE:
        return f"{party} was late; of its bond {' and '.join(to)}"
    receivers = [text.partition(" to ")[2] for text in to]
    pattern = _VERBS.get(transaction.id.reason, "")
    return pattern.format(total=total, party=party, to=" and ".join(receivers))


# ---- money ----------------------------------------------------------------------------------


def party_name(board: Board, party: PartyId) -> str:
    """How screens call a party, by what it was last."""
    for job in reversed(list(board.jobs.values())):
        role = role_of(job, party)
        if role != "whistleblower":
            return words.party(role, party)
    return words.party("verifier" if party in board.enrolled else "", party)


def ledger_view(board: Board, entries: int, own: PartyId | None = None) -> LedgerView:
    """All accounts.

    Args:
        board: the board.
        entries: entries of the log that it follows from.
        own: the party to mark as the reader.
    """
    ledger = board.ledger
    accounts = [
        AccountLine(
            party_name(board, party) + (" (you)" if party == own else ""),
            int(ledger.balance(party)),
            int(ledger.at_risk(party)),
        )
        for party in board.known
    ]
    held = ledger.balances.items()
    return LedgerView(
        accounts=tuple(accounts),
        escrow=sum(amount for account, amount in held if isinstance(account, Escrow)),
        burned=ledger.of(Burned()),
        issued=-ledger.of(Issued()),
        total=sum(ledger.balances.values()),
        entries=entries,
    )


def bonds_of(board: Board, party: PartyId) -> int:
    """Money of a party in bonds, in millionths of a credit."""
    held = board.ledger.balances.items()
    return sum(n for account, n in held if isinstance(account, Bond) and account.party == party)
