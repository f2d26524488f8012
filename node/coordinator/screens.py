"""The board as screens show it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from identic.node.coordinator.board import Board
from identic.node.coordinator.cases import Case
from identic.node.views import (
    DisputeDetail,
    DisputeSummary,
    JobDetail,
    JobSummary,
    LossPoint,
    PartyProgress,
)
from identic.protocol.encoding import encode
from identic.protocol.ids import Digest, PartyId
from identic.protocol.job.entries import Verdicts
from identic.protocol.job.state import Job, Phase
from identic.protocol.settlement.ledger import Escrow

MAX_LOSSES = 512
VERDICT_WORDS: Mapping[Verdicts, str] = {
    Verdicts.WRONG: "wrong",
    Verdicts.LATE: "late",
    Verdicts.CANNOT_TELL: "cannot tell",
}


def job_summary(board: Board, job: Job) -> JobSummary:
    """One line of the job board."""
    return JobSummary(
        job_id=Digest(job.id),
        phase=job.phase.value,
        submitter=job.terms.submitter,
        steps=int(job.terms.steps),
        posted_ms=int(job.posted_at),
        solver=job.solver,
        committed_step=int(job.marks[-1].step),
        attempt=int(job.attempt),
        verdicts=sum(seat.verdict is not None for seat in job.verifiers),
        verdicts_wanted=int(job.terms.verifiers),
        escrow=board.ledger.of(Escrow(job.id)),
        deadline_ms=int(job.due_at or 0),
    )


def job_detail(board: Board, job: Job, parties: tuple[PartyProgress, ...]) -> JobDetail:
    """All about one job."""
    return JobDetail(
        summary=job_summary(board, job),
        terms=encode(job.terms),
        parties=parties,
        losses=losses(job),
        dispute_ids=tuple(Digest(name) for name in job.disputes),
        log_indexes=board.indexes.get(Digest(job.id), ()),
    )


def losses(job: Job) -> tuple[LossPoint, ...]:
    """The losses committed so far, thinned evenly; the last one is always there."""
    marks = job.marks[1:]
    stride = max(1, -(-len(marks) // MAX_LOSSES))
    return tuple(LossPoint(int(m.step), float_of(int(m.loss))) for m in marks[::-stride][::-1])


def float_of(bits: int) -> float:
    """Value of a float32 bit pattern."""
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def dispute_summary(case: Case) -> DisputeSummary:
    """One line of the list of disputes."""
    dispute, ruling = case.dispute, None if case.void else case.dispute.ruling
    sides = {1: case.opened.defender, 2: case.opened.challenger}
    loser: PartyId | None = None
    if ruling is not None and ruling.loser is not None:
        loser = sides[int(ruling.loser)]
    return DisputeSummary(
        dispute_id=Digest(case.id),
        job_id=Digest(case.job),
        defender=case.opened.defender,
        challenger=case.opened.challenger,
        phase="void" if case.void else str(dispute.phase),
        level=_level(case),
        moves=len(case.moves),
        bytes_exchanged=case.bytes_exchanged,
        opened_ms=int(dispute.setup.opening.at),
        deadline_ms=int(dispute.deadline) if case.played else 0,
        verdict="" if ruling is None else VERDICT_WORDS[ruling.verdict],
        rule="" if ruling is None else ruling.rule,
        loser=loser,
    )


def dispute_detail(board: Board, case: Case) -> DisputeDetail:
    """All about one dispute."""
    indexes = board.indexes.get(Digest(case.id), ())
    return DisputeDetail(dispute_summary(case), indexes, case.transcript)


def _level(case: Case) -> str:
    dispute = case.dispute
    if dispute.ruling is not None:
        return dispute.ruling.level
    if dispute.level is not None:
        return f"{dispute.level.name} {dispute.level.subject}"
    return "evidence"


def counts(board: Board) -> dict[str, str]:
    """How many jobs there are in each phase, and what else the board holds."""
    phases = {
        phase.value: str(sum(job.phase is phase for job in board.jobs.values())) for phase in Phase
    }
    shown = {f"jobs {name}": count for name, count in phases.items() if count != "0"}
    return {
        **shown,
        "parties": str(len(board.known)),
        "disputes": str(len(board.cases)),
        "open disputes": str(sum(case.played for case in board.cases.values())),
    }
