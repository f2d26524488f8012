"""The terms of a job: everything that influences a bit or a payment, under one digest.

Two jobs with equal terms are the same job; the nonce keeps deliberate repetitions apart.
Marks are the points of the run that the solver commits to: mark 0 is the initial state,
mark ``m`` the state after ``min(m * cadence, steps)`` steps.

Spec: docs/spec/jobs.md (JOB-1, JOB-2).
"""

from __future__ import annotations

from dataclasses import dataclass

from identic.protocol.encoding import encode
from identic.protocol.errors import Code, ProtocolError
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Count, Credits, Digest, JobId, Millis, PartyId, StepIndex, Unsigned

VERSION = 1
KERNEL_SET = 1
MAX_CADENCE = 2048
MAX_STEPS = 1 << 40
MAX_MARKS = 1 << 20
MAX_VERIFIERS = 16
MAX_DATA = 1024
MAX_PRICE = 1 << 48
MAX_CLOCK_MS = 1 << 40


@dataclass(frozen=True)
class Prices:
    """Money of a job, in millionths of a credit."""

    solver_reward: Credits
    """Paid to the solver at settlement, from the escrow."""
    verifier_reward: Credits
    """Paid to each verifier whose verdict stands at settlement, from the escrow."""
    solver_bond: Credits
    """Locked while the solver holds the job."""
    verifier_bond: Credits
    """Locked by each verifier that is drawn."""
    challenger_bond: Credits
    """Locked by whoever opens a dispute."""


@dataclass(frozen=True)
class Clocks:
    """Durations of a job, in milliseconds."""

    move_ms: Millis
    """Time for a move of a dispute that needs no re-execution."""
    rerun_ms: Millis
    """Allowance for whatever needs re-execution; also the longest silence of a solver."""
    window_ms: Millis
    """Time between the last verdict and settlement, for challenges."""
    budget_ms: Millis
    """Each side's reserve for a whole dispute, beyond the allowances of its rounds."""


@dataclass(frozen=True)
class JobTerms:
    """What the submitter asks for and everybody else agrees to."""

    version: Count
    """1."""
    submitter: PartyId
    program: Digest
    """Digest of the program (PRG rules)."""
    initial_state: Digest
    """Root of the state before step 0."""
    data: tuple[Digest, ...]
    """Tensor digests, in the order of the program's data."""
    seed: Unsigned
    """Seed of every random number of the run."""
    steps: Count
    """Training steps, at least 1."""
    cadence: Count
    """Steps between two marks, 1 to 2,048."""
    checkpoint: Count
    """Marks between two states that the solver stores, at least 1."""
    kernel_set: Count
    """Version of the operators' arithmetic: 1."""
    verifiers: Count
    """Verifiers that re-execute the whole run, 1 to 16."""
    prices: Prices
    clocks: Clocks
    nonce: Digest
    """Any value; keeps jobs apart that are equal otherwise."""

    @property
    def last_mark(self) -> int:
        """Index of the mark that is the result; the run log has one leaf more."""
        return -(-self.steps // self.cadence)

    @property
    def marks(self) -> int:
        """Leaves of the finished run log: the initial state and every mark."""
        return self.last_mark + 1

    def step_of(self, mark: int) -> StepIndex:
        """Steps done at ``mark``, ``0 <= mark <= last_mark``."""
        return StepIndex(min(mark * self.cadence, self.steps))

    @property
    def escrow(self) -> Credits:
        """Money the submitter sets aside: all rewards the job can pay."""
        return Credits(self.prices.solver_reward + self.verifiers * self.prices.verifier_reward)

    @property
    def silence_ms(self) -> int:
        """Longest time between two messages of a solver that trains, in milliseconds."""
        return self.clocks.move_ms + self.clocks.rerun_ms


def job_id(terms: JobTerms) -> JobId:
    """Digest of the terms: the job's name everywhere (JOB-2)."""
    return JobId(tagged(Domain.TERMS, encode(terms)))


def check_terms(terms: JobTerms) -> None:
    """Refuse terms outside the limits of JOB-1.

    Raises:
        ProtocolError: JOB-1, naming the field, the value and the limits.
    """
    limits = [
        ("version", terms.version, VERSION, VERSION),
        ("kernel_set", terms.kernel_set, KERNEL_SET, KERNEL_SET),
        ("steps", terms.steps, 1, MAX_STEPS),
        ("cadence", terms.cadence, 1, MAX_CADENCE),
        ("checkpoint", terms.checkpoint, 1, MAX_STEPS),
        ("verifiers", terms.verifiers, 1, MAX_VERIFIERS),
        ("data", len(terms.data), 0, MAX_DATA),
        ("solver_reward", terms.prices.solver_reward, 0, MAX_PRICE),
        ("verifier_reward", terms.prices.verifier_reward, 0, MAX_PRICE),
        ("solver_bond", terms.prices.solver_bond, 1, MAX_PRICE),
        ("verifier_bond", terms.prices.verifier_bond, 1, MAX_PRICE),
        ("challenger_bond", terms.prices.challenger_bond, 1, MAX_PRICE),
        ("move_ms", terms.clocks.move_ms, 1, MAX_CLOCK_MS),
        ("rerun_ms", terms.clocks.rerun_ms, 1, MAX_CLOCK_MS),
        ("window_ms", terms.clocks.window_ms, 1, MAX_CLOCK_MS),
        ("budget_ms", terms.clocks.budget_ms, 1, MAX_CLOCK_MS),
    ]
    for name, value, least, most in limits:
        # JOB-1: every number of the terms lies within its limits.
        if not least <= value <= most:
            raise ProtocolError(
                "JOB-1", Code.OUT_OF_RANGE, got=f"{name} {value}", want=f"{least} to {most}"
            )
    # JOB-1: a run has at most MAX_MARKS marks, which everybody holds in memory.
    if terms.marks > MAX_MARKS:
        raise ProtocolError(
            "JOB-1", Code.OUT_OF_RANGE, got=f"{terms.marks} marks", want=f"at most {MAX_MARKS}"
        )
