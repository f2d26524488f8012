"""What a dispute is about: terms, program and two claims. Fixed before the first move.

Spec: docs/spec/dispute.md (DSP-2).
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.commitments import RunHead, StateHeader, header_digest
from identic.protocol.dispute.moves import WIDTH, Pair
from identic.protocol.errors import IllegalMove
from identic.protocol.ids import Count, Digest, JobId, Millis, PartyId, StepIndex
from identic.protocol.job.terms import JobTerms, job_id
from identic.protocol.program.plan import StepPlan

MAX_LOAD = 1 << 16
"""Most games at once that clocks take into account."""


@dataclass(frozen=True)
class Opening:
    """Who disputes what; an entry of the coordinator's log says the same."""

    dispute: Digest
    """Name of the dispute (JOB-23)."""
    defender: PartyId
    """A party that vouches for the run, or whose claim stands for it there (JOB-24)."""
    challenger: PartyId
    defender_head: RunHead
    """The disputed claim, cut to as many marks as both claim."""
    challenger_head: RunHead
    at: Millis
    """Unix time from which the first clocks run."""
    step_ms: Millis
    """Time that the solver took for a step, by its commitments up to the opening."""
    load: Count
    """How many games a side may have to play at once, 1 to 65,536."""


@dataclass(frozen=True)
class Setup:
    """Everything that both sides and the referee know before the first move.

    ``plan`` must be the unrolled program that ``terms.program`` names.
    """

    terms: JobTerms
    plan: StepPlan
    opening: Opening
    width: int = WIDTH
    """Most items of a ``Children`` move; smaller only in tests of wide trees."""

    def check(self) -> None:
        """Refuse claims that cannot be disputed."""
        ours, theirs = self.opening.defender_head, self.opening.challenger_head
        job = job_id(self.terms)
        # DSP-2: two parties claim different roots over the same marks of the job's run.
        if self.opening.defender == self.opening.challenger:
            raise IllegalMove("DSP-2", got="one party on both sides", want="two parties")
        if JobId(ours.job) != job or JobId(theirs.job) != job:
            raise IllegalMove("DSP-2", got=f"{ours.job.name}, {theirs.job.name}", want=job.name)
        if ours.marks != theirs.marks or not 1 <= ours.marks <= self.terms.marks:
            raise IllegalMove(
                "DSP-2",
                got=f"{ours.marks} and {theirs.marks} marks",
                want=f"equal, at most {self.terms.marks}",
            )
        if ours.root == theirs.root:
            raise IllegalMove("DSP-2", got="equal claims", want="claims that differ")
        # DSP-10: a side has at least this game to play.
        if not 1 <= self.opening.load <= MAX_LOAD:
            raise IllegalMove("DSP-10", got=f"{self.opening.load} games", want=f"1 to {MAX_LOAD}")

    @property
    def roots(self) -> Pair[Digest]:
        """The two claims."""
        return Pair(self.opening.defender_head.root, self.opening.challenger_head.root)

    @property
    def marks(self) -> int:
        """Marks under each claim."""
        return self.opening.defender_head.marks

    def header(self, step: int) -> Digest:
        """Digest of the header of the state after ``step`` steps (COM-4)."""
        return header_digest(header_after(self.terms, self.plan, step))


def header_after(terms: JobTerms, plan: StepPlan, step: int) -> StateHeader:
    """Header of the state after ``step`` steps; it follows from terms and program (COM-4)."""
    cursor = Count(step * plan.program.shards * plan.program.examples)
    return StateHeader(terms.program, terms.seed, StepIndex(step), cursor)
