"""What the log decides by lot: the verifiers of an attempt and the step of the beacon.

Both follow from the root of the log before the entry that states them, so that anyone with
the log draws again and gets the same.

Spec: docs/spec/jobs.md (JOB-13, JOB-15).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from identic.protocol.encoding import encode
from identic.protocol.hashing import Domain, tagged
from identic.protocol.ids import Count, Digest, JobId, PartyId, StepIndex


@dataclass(frozen=True)
class Lot:
    """Input of one drawn digest."""

    seed: Digest
    """Root of the log."""
    job: JobId
    attempt: Count
    subject: PartyId | None
    """A candidate, or nobody for the beacon."""


def draw_verifiers(
    seed: Digest, job: JobId, attempt: int, pool: Iterable[PartyId], count: int
) -> tuple[PartyId, ...]:
    """Draw ``count`` parties of the pool: those with the smallest lots, in their order.

    Fewer are returned when the pool is smaller.
    """
    lots = {
        party: tagged(Domain.RANDOM, encode(Lot(seed, job, Count(attempt), party)))
        for party in pool
    }
    return tuple(sorted(lots, key=lots.__getitem__)[:count])


def draw_beacon(seed: Digest, job: JobId, attempt: int, steps: int) -> StepIndex:
    """Draw a step in ``[0, steps)``; the bias of the remainder is below ``steps / 2**256``."""
    lot = tagged(Domain.RANDOM, encode(Lot(seed, job, Count(attempt), None)))
    return StepIndex(int.from_bytes(lot, "big") % steps)
