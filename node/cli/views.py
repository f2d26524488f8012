"""From the board and the reports of parties to what screens show."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from identic.node.cli import words
from identic.node.cli.reading import LogReader
from identic.node.cli.screens import descent
from identic.node.cli.screens.contest import ClaimView, ContestView, MatchView, MemberView
from identic.node.cli.screens.contest import summary as contest_summary
from identic.node.cli.screens.ledger import AccountLine, LedgerView
from identic.node.cli.screens.progress import JobView, PartyView
from identic.node.views import PartyProgress
from identic.protocol.ids import PartyId
from identic.protocol.job.contest import Claim, Contest, Match, Member, Standing
from identic.protocol.job.messages import DisputeId
from identic.protocol.job.state import Awaiting, Job, Seat
from identic.protocol.job.terms import JobTerms
from identic.protocol.program.plan import StepPlan
from identic.protocol.settlement.ledger import (
    Balance,
    Burned,
    Escrow,
    Issued,
    Reason,
    Transaction,
)

CANNOT_TELL = "cannot tell"
"""The verdict of a party whose data or machine are not sound, and the start of its report."""

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
    if job.solver is None:
        # Reports are about an attempt that is over.
        reports = ()
    else:
        parties.append(_solver(job, told.get(job.solver)))
    parties += [_verifier(job, seat, told.get(seat.party)) for seat in job.verifiers]
    parties += [_recused(party, told.get(party)) for party in job.recused]
    seen = {job.solver, *(seat.party for seat in job.verifiers), *job.recused}
    parties += [
        _party(report.role, report)
        for report in reports
        if report.party not in seen and (report.step or CANNOT_TELL in report.activity)
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
        contest=contest_summary(contest_view(job.contest, job.terms)) if job.contest else "",
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


def _recused(party: PartyId, report: PartyProgress | None) -> PartyView:
    """A verifier that gave its seat back, with the reason that it reported."""
    name = words.party("verifier", party)
    if report is None:
        return PartyView(name, "verifier", 0, verdict=CANNOT_TELL)
    return PartyView(name, "verifier", report.step, 0.0, None, report.activity, CANNOT_TELL)


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


# ---- contests and disputes ------------------------------------------------------------------

STANDINGS: Final = {Standing.IN: "stands", Standing.FALLEN: "fell", Standing.LEFT: "left"}


def contests_of(job: Job) -> tuple[Contest, ...]:
    """All contests of a job, oldest first; the present one is the last."""
    return job.contests if job.contest is None else (*job.contests, job.contest)


def contest_view(
    contest: Contest, terms: JobTerms, role: Callable[[PartyId], str] = lambda _: ""
) -> ContestView:
    """A contest for the screen.

    Args:
        contest: of a job of ``terms``.
        terms: of the job.
        role: what a party was last; whistleblower where that is not known.
    """

    def name(party: PartyId) -> str:
        return words.party(role(party) or "whistleblower", party)

    played = {game.id for _, game in contest.games}
    return ContestView(
        attempt=int(contest.attempt),
        entry_until=int(contest.entry_until),
        over=contest.decided,
        claims=tuple(
            ClaimView(
                _claim(index), _says(claim, terms), tuple(_member(m, name) for m in claim.members)
            )
            for index, claim in enumerate(contest.claims)
        ),
        matches=tuple(_match(match, played) for match in contest.matches),
    )


def _claim(index: int) -> str:
    return f"claim {index}" if index else "the run"


def _says(claim: Claim, terms: JobTerms) -> str:
    if not claim.mark:
        return "as the solver signed it"
    return f"after step {int(terms.step_of(int(claim.mark))):,} state {claim.root.short}"


def _member(member: Member, name: Callable[[PartyId], str]) -> MemberView:
    fell_to = "" if member.fell_to is None else name(member.fell_to)
    return MemberView(name(member.party), STANDINGS[member.standing], fell_to)


def _match(match: Match, played: Collection[DisputeId]) -> MatchView:
    winner = "nobody" if match.winner is None else _claim(match.winner)
    return MatchView(
        teams=(_claim(match.challenger), _claim(match.defender)),
        disputes=tuple(game.id.name for game in match.games),
        open=sum(game.id in played for game in match.games),
        winner=winner if match.over else "",
    )


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
        transcript: where the transcript lies, or will lie; empty where it is not kept.
    """
    case = reader.board.case(dispute)
    ruling = case.dispute.ruling
    if ruling is None:
        return None
    known = reader.disputes[dispute]
    return descent.describe(
        case.dispute.setup,
        ruling,
        roles=known.roles,
        places=places,
        money=payments(known.payments, reader),
        transcript=transcript,
    )


def payments(moved: Iterable[Transaction], reader: LogReader) -> tuple[str, ...]:
    """Sentences about money: who paid whom, and why."""
    freed: dict[PartyId, int] = {}
    sentences = []
    for transaction in moved:
        if transaction.id.reason is Reason.RELEASE:
            party = transaction.id.party
            freed[party] = freed.get(party, 0) + _received(transaction)
        elif sentence := _payment(transaction, reader):
            sentences.append(sentence)
    if freed:
        each = [f"{words.money(sum_)} of {_name(reader, p)}" for p, sum_ in freed.items()]
        sentences.append(f"bonds given back: {', '.join(each)}")
    return tuple(sentences)


def _name(reader: LogReader, party: PartyId) -> str:
    return words.party(reader.role(party), party)


def _received(transaction: Transaction) -> int:
    return sum(p.amount for p in transaction.postings if p.amount > 0)


def _payment(transaction: Transaction, reader: LogReader) -> str:
    party, total = _name(reader, transaction.id.party), words.money(_received(transaction))
    to = [
        (words.money(p.amount), _name(reader, p.account.party))
        for p in transaction.postings
        if p.amount > 0 and isinstance(p.account, Balance)
    ]
    each = ", ".join(f"{amount} to {name}" for amount, name in to)
    burned = sum(p.amount for p in transaction.postings if isinstance(p.account, Burned))
    return {
        Reason.SLASH: f"slashed {total} from {party}: {each}, {words.money(burned)} burned",
        Reason.LATE: f"{party} was late; of its bond {each}",
        Reason.REWARD: f"paid {each}",
        Reason.REFUND: f"left of the escrow: {each}",
    }.get(transaction.id.reason, "")


# ---- money ----------------------------------------------------------------------------------


def ledger_view(reader: LogReader, own: PartyId | None = None) -> LedgerView:
    """All accounts.

    Args:
        reader: the log as read.
        own: the party to mark as the reader's.
    """
    ledger = reader.board.ledger
    accounts = [
        AccountLine(
            _name(reader, party) + (" (you)" if party == own else ""),
            int(ledger.balance(party)),
            int(ledger.at_risk(party)),
        )
        for party in reader.board.known
    ]
    held = ledger.balances.items()
    return LedgerView(
        accounts=tuple(accounts),
        escrow=sum(amount for account, amount in held if isinstance(account, Escrow)),
        burned=ledger.of(Burned()),
        issued=-ledger.of(Issued()),
        total=sum(ledger.balances.values()),
        entries=reader.size,
    )
